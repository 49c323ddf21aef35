//! Reading headers: every version, both byte orders, split files, and files that mean harm.

mod fixtures;

use std::{fs, io::Cursor, path::Path, sync::Arc};

use fixtures::{Entry, Fixture, Folder, catalogue};
use proptest::prelude::*;
use windtunnel_live::gguf::{Fault, GgufError, Header, HeaderCache, Model, TensorType, Value};

fn read(bytes: &[u8]) -> Result<Header, GgufError> {
    Header::read(Path::new("m.gguf"), Cursor::new(bytes))
}

/// A header with every type of value, and its weights.
fn everything(version: u32, big_endian: bool) -> Vec<u8> {
    let mut f = Fixture::new("llama").form(version, big_endian);
    let values = [
        Entry::U8(200),
        Entry::I8(-5),
        Entry::U16(60_000),
        Entry::I16(-300),
        Entry::U32(4_000_000_000),
        Entry::I32(-70_000),
        Entry::F32(0.5),
        Entry::Flag(true),
        Entry::Text("grüezi".to_owned()),
        Entry::U64(1 << 40),
        Entry::I64(-(1 << 40)),
        Entry::F64(-0.25),
    ];
    for (at, value) in values.into_iter().enumerate() {
        f.key(&format!("v{at:02}"), value);
    }
    f.key("numbers", Entry::u32s([1, 2, 3]));
    f.key("words", Entry::List(8, vec![Entry::Text("a".to_owned()), Entry::Text("b".to_owned())]));
    f.key("lists", Entry::List(9, vec![Entry::u32s([1]), Entry::flags([true])]));
    f.key("many", Entry::u32s(0..5000));
    f.tensor("a", TensorType::Q4K, &[512, 3]);
    f.tensor("b", TensorType::F32, &[7]);
    f.tensor("c", TensorType::Mxfp4, &[64, 2, 5]);
    f.tensor("d", TensorType::Nvfp4, &[128]);
    let (mut bytes, weights) = f.bytes();
    bytes.resize(bytes.len() + weights as usize, 0);
    bytes
}

#[test]
fn every_version_in_both_byte_orders_says_the_same() {
    let plain = read(&everything(3, false)).expect("version 3 is read");
    for version in 1..=3 {
        for big_endian in [false, true] {
            let header = read(&everything(version, big_endian)).expect("every form is read");
            assert_eq!((header.version, header.big_endian), (version, big_endian));
            assert_eq!(header.metadata, plain.metadata);
            assert_eq!(header.tensors, plain.tensors);
        }
    }
    let texts: Vec<String> = plain.metadata.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    general.architecture = "llama"
    lists = an array of 2
    many = an array of 5000
    numbers = an array of 3
    v00 = 200
    v01 = -5
    v02 = 60000
    v03 = -300
    v04 = 4000000000
    v05 = -70000
    v06 = 0.5
    v07 = true
    v08 = "grüezi"
    v09 = 1099511627776
    v10 = -1099511627776
    v11 = -0.25
    words = an array of 2
    "#);
    let sizes: Vec<_> =
        plain.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.bytes, tensor.elements())).collect();
    assert_eq!(sizes, [("a", 864, 1536), ("b", 28, 7), ("c", 340, 640), ("d", 72, 128)]);
}

#[test]
fn short_arrays_are_kept_and_long_ones_and_words_only_counted() {
    let header = read(&everything(3, false)).expect("it is read");
    let list = |key: &str| header.metadata[key].as_list().expect("a list").clone();
    assert_eq!(list("numbers").items, [1, 2, 3].map(Value::Unsigned));
    assert_eq!((list("many").len, list("many").items.len()), (5000, 0));
    assert_eq!((list("words").len, list("words").items.len()), (2, 0));
}

#[test]
fn every_type_has_its_number_and_its_size() {
    for kind in TensorType::ALL.iter().copied() {
        assert_eq!(TensorType::numbered(kind.number()), Some(kind));
        assert_eq!(TensorType::named(kind.name()), Some(kind));
        assert_eq!(kind.row_bytes(kind.block() * 3), Some(kind.block_bytes() * 3));
    }
    // Types that ggml has taken back.
    for number in [4, 5, 31, 32, 33, 36, 37, 38, 43, 1000] {
        assert_eq!(TensorType::numbered(number), None);
    }
}

#[test]
fn a_truncated_header_says_at_which_byte() {
    let whole = everything(3, false);
    let header = read(&whole).expect("it is whole");
    let ends = header.tensors.iter().map(|tensor| header.weights_at + tensor.offset + tensor.bytes);
    for end in 0..ends.max().unwrap_or(0) as usize {
        let wrong = read(&whole[..end]).expect_err("a truncated file is not read");
        assert!(matches!(wrong.fault, Fault::Truncated { .. }), "{end}: {wrong}");
        assert!(wrong.offset <= whole.len() as u64);
    }
}

#[test]
fn harmful_numbers_are_not_believed() {
    let with = |at: usize, bytes: &[u8]| {
        let mut file = everything(3, false);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read(&file).expect_err("it is not believed").to_string()
    };
    let huge = u64::MAX.to_le_bytes();
    let messages = [
        with(0, b"PK\x03\x04"),
        with(4, &9_u32.to_le_bytes()),
        with(8, &huge),
        with(16, &huge),
        with(24, &huge),
        // The type of the first value, behind a key of twenty letters.
        with(52, &77_u32.to_le_bytes()),
        with(56, &huge),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    m.gguf: byte 0: the file begins with "PK\x03\x04", not with "GGUF": it is not a model in GGUF form
    m.gguf: byte 4: GGUF version 9 is not known; versions 1 to 3 are
    m.gguf: byte 16: the number of tensors is 18446744073709551615, at most 131072 is believed: the file is damaged
    m.gguf: byte 24: the number of keys is 18446744073709551615, at most 65536 is believed: the file is damaged
    m.gguf: byte 32: the length of a key is 18446744073709551615, at most 65535 is believed: the file is damaged
    m.gguf: byte 52: value type 77 does not exist; 0 to 12 do
    m.gguf: byte 64: the length of a text is 18446744073709551615, at most 67108864 is believed: the file is damaged
    "#);
}

/// What is said of a header with this key, or this tensor.
fn complaint(change: impl FnOnce(&mut Fixture) -> &mut Fixture) -> String {
    let mut f = Fixture::new("llama");
    change(&mut f);
    read(&f.bytes().0).expect_err("it is refused").to_string()
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let nested = (0..4).fold(Entry::u32s([1]), |inner, _| Entry::List(9, vec![inner]));
    let messages = [
        complaint(|f| f.key("general.alignment", Entry::U32(33))),
        complaint(|f| f.key("x", Entry::U32(1)).key("x", Entry::U32(2))),
        complaint(|f| f.key("deep", nested)),
        complaint(|f| f.tensor("t", TensorType::F32, &[8]).tensor("t", TensorType::F32, &[8])),
        complaint(|f| f.tensor("t", TensorType::F32, &[1 << 20, 1 << 10])),
        complaint(|f| f.tensor(&"n".repeat(300), TensorType::F32, &[1])),
        complaint(|f| f.tensor("t", TensorType::F32, &[1, 1, 1, 1, 1])),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    m.gguf: byte 102: `general.alignment` is 33, and should be a power of two up to 1048576
    m.gguf: byte 86: `x` occurs twice
    m.gguf: byte 121: the nesting of an array is 4, at most 3 is believed: the file is damaged
    m.gguf: byte 102: `t` occurs twice
    m.gguf: byte 128: a tensor needs 4294967296 bytes, and the file ends after 0: is its download complete?
    m.gguf: byte 77: the length of a tensor's name is 300, at most 256 is believed: the file is damaged
    m.gguf: byte 82: the number of dimensions of a tensor is 5, at most 4 is believed: the file is damaged
    "#);
}

#[test]
fn a_split_model_is_followed() {
    let folder = Folder::new("split");
    let part = |at: u16, count: u16, tensor: &str| {
        let mut f = Fixture::new("llama");
        f.key("split.no", Entry::U16(at)).key("split.count", Entry::U16(count));
        f.tensor(tensor, TensorType::F16, &[256, 4]);
        f
    };
    let name = |at: u16| folder.join(&format!("m-{at:05}-of-00003.gguf"));
    for (at, tensor) in [(0, "token_embd.weight"), (1, "blk.0.attn_q.weight"), (2, "blk.1.attn_q.weight")] {
        part(at, 3, tensor).write(&name(at + 1));
    }
    let cache = HeaderCache::new();
    let model = Model::open(&name(1), &cache).expect("all parts are there");
    assert_eq!((model.files(), model.tensors().count()), (3, 3));
    assert_eq!(model.tensor("blk.1.attn_q.weight").map(|tensor| tensor.bytes), Some(2048));
    let wrong = |path: &Path| Model::open(path, &cache).expect_err("it is refused").to_string();
    let second = wrong(&name(2));
    assert!(second.contains("part of 3; name the first one"), "{second}");
    part(1, 3, "blk.1.attn_q.weight").write(&name(3));
    let mixed = wrong(&name(1));
    assert!(mixed.contains("should be part 2 (from 0) of 3 and says that it is part 1 of 3"), "{mixed}");
    fs::remove_file(name(3)).expect("the last part can be removed");
    let missing = wrong(&name(1));
    assert!(missing.contains("m-00003-of-00003.gguf: byte 0: the file cannot be read"), "{missing}");
}

#[test]
fn a_header_is_parsed_once_until_its_file_changes() {
    let folder = Folder::new("cache");
    let path = Fixture::new("llama").write(&folder.join("m.gguf"));
    let cache = HeaderCache::new();
    let first = cache.header(&path).expect("it is read");
    let again = cache.header(&path).expect("it is known");
    assert!(Arc::ptr_eq(&first, &again));
    catalogue::qwen3_14b().write(&path);
    let changed = cache.header(&path).expect("it is read again");
    assert_eq!(changed.architecture(), "qwen3");
    fs::remove_file(&path).expect("it can be removed");
    cache.header(&path).expect_err("what is gone is not remembered");
}

/// How many of each kind are tried: `WINDTUNNEL_CASES`, for a longer search.
fn cases() -> u32 {
    std::env::var("WINDTUNNEL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Whatever is changed in a header, it is read or refused, and an error's place is in the file.
    #[test]
    fn no_damage_makes_the_reader_panic(
        version in 1_u32..=3,
        big_endian: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
        cut: bool,
    ) {
        let mut file = everything(version, big_endian);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if cut {
            file.truncate(keep.index(file.len()));
        }
        if let Err(wrong) = read(&file) {
            prop_assert!(!wrong.to_string().is_empty());
        }
    }

    /// Bytes that never were a header.
    #[test]
    fn noise_is_refused(mut noise in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read(&noise).is_err());
        noise.splice(0..0, *b"GGUF\x03\0\0\0");
        let _ = read(&noise);
    }
}
