//! The header of one file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read, Seek},
    path::{Path, PathBuf},
};

use super::{
    error::{Fault, Found, GgufError},
    source::Source,
    tensor::{Tensor, TensorType},
    value::Value,
};

/// No header has more keys; real ones have fewer than a hundred.
const KEYS: u64 = 1 << 16;
/// No header has more tensors; the largest models have some thousands.
const TENSORS: u64 = 1 << 17;
/// No key is longer, in bytes (the format's own limit).
const KEY_LENGTH: u64 = (1 << 16) - 1;
/// No tensor's name is longer, in bytes; ggml's own limit is 64.
const NAME_LENGTH: u64 = 256;
/// Where the weights start and each tensor starts is a multiple of this, unless the header says otherwise.
const ALIGNMENT: u64 = 32;

/// The header of one GGUF file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The file.
    pub path: PathBuf,
    /// The version of the format, 1 to 3.
    pub version: u32,
    /// Whether numbers have their most significant byte first.
    pub big_endian: bool,
    /// Everything the file says of itself.
    pub metadata: BTreeMap<String, Value>,
    /// Its tensors in the order of the file.
    pub tensors: Vec<Tensor>,
    /// Bytes from the start of the file to its weights.
    pub weights_at: u64,
    /// The size of the file in bytes.
    pub file_bytes: u64,
}

impl Header {
    /// Reads the header of the file at `path`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is no GGUF file, is damaged or not complete.
    pub fn open(path: &Path) -> Result<Header, GgufError> {
        let file = File::open(path).map_err(|wrong| GgufError::io(path, 0, &wrong))?;
        Header::read(path, file)
    }

    /// Reads a header from `reader`, which `path` names in errors.
    ///
    /// # Errors
    ///
    /// As those of [`Header::open`].
    pub fn read<R: Read + Seek>(path: &Path, reader: R) -> Result<Header, GgufError> {
        let mut source = Source::new(path, reader)?;
        let version = preamble(&mut source)?;
        let tensors = source.count("the number of tensors")?;
        source.limit("the number of tensors", tensors, TENSORS)?;
        let keys = source.count("the number of keys")?;
        source.limit("the number of keys", keys, KEYS)?;
        let metadata = metadata(&mut source, keys)?;
        let alignment = alignment(&source, &metadata)?;
        let tensors = descriptions(&mut source, tensors)?;
        let weights_at = source.at().next_multiple_of(alignment);
        within(&source, &tensors, weights_at)?;
        let (path, big_endian, file_bytes) = (path.to_owned(), source.big_endian, source.len());
        Ok(Header { path, version, big_endian, metadata, tensors, weights_at, file_bytes })
    }

    /// What kind of model the file holds, as llama.cpp names it: `llama`, `gemma4`, `clip`.
    pub fn architecture(&self) -> &str {
        self.metadata.get("general.architecture").and_then(Value::as_text).unwrap_or("unknown")
    }

    /// The value of a key of the architecture: `block_count` is `llama.block_count` for a `llama`.
    pub fn of_architecture(&self, key: &str) -> Option<&Value> {
        self.metadata.get(&format!("{}.{key}", self.architecture()))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

/// Magic and version; settles the byte order and the width of counts.
fn preamble<R: Read + Seek>(source: &mut Source<R>) -> Result<u32, GgufError> {
    let magic = source.bytes("a GGUF file")?;
    if &magic != b"GGUF" {
        return Err(GgufError { offset: 0, ..source.wrong(Fault::Magic(Found(magic))) });
    }
    let number = source.u32("the version")?;
    // No version fills more than two bytes; one that seems to was written in the other byte order.
    source.big_endian = number > 0xffff;
    let version = if source.big_endian { number.swap_bytes() } else { number };
    if !(1..=3).contains(&version) {
        return Err(GgufError { offset: 4, ..source.wrong(Fault::Version(version)) });
    }
    source.wide = version > 1;
    Ok(version)
}

fn metadata<R: Read + Seek>(source: &mut Source<R>, keys: u64) -> Result<BTreeMap<String, Value>, GgufError> {
    let mut metadata = BTreeMap::new();
    for _ in 0..keys {
        let before = source.at();
        let key = source.text("a key", "the length of a key", KEY_LENGTH)?;
        let value = Value::read(source)?;
        if metadata.contains_key(&key) {
            return Err(GgufError { offset: before, ..source.wrong(Fault::Twice(key)) });
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn alignment<R: Read + Seek>(source: &Source<R>, metadata: &BTreeMap<String, Value>) -> Result<u64, GgufError> {
    const KEY: &str = "general.alignment";
    let Some(value) = metadata.get(KEY) else {
        return Ok(ALIGNMENT);
    };
    let good = value.as_u64().filter(|bytes| bytes.is_power_of_two() && *bytes <= 1 << 20);
    good.ok_or_else(|| {
        let right = "a power of two up to 1048576";
        source.wrong(Fault::Key { key: KEY.to_owned(), found: value.to_string(), right })
    })
}

fn descriptions<R: Read + Seek>(source: &mut Source<R>, count: u64) -> Result<Vec<Tensor>, GgufError> {
    let mut names = BTreeSet::new();
    let mut tensors = Vec::new();
    for _ in 0..count {
        let before = source.at();
        let tensor = description(source)?;
        if !names.insert(tensor.name.clone()) {
            return Err(GgufError { offset: before, ..source.wrong(Fault::Twice(tensor.name)) });
        }
        tensors.push(tensor);
    }
    Ok(tensors)
}

fn description<R: Read + Seek>(source: &mut Source<R>) -> Result<Tensor, GgufError> {
    let name = source.text("the name of a tensor", "the length of a tensor's name", NAME_LENGTH)?;
    let dimensions = source.u32("the dimensions of a tensor")?;
    source.limit("the number of dimensions of a tensor", dimensions.into(), 4)?;
    let mut dims = [1; 4];
    for dim in dims.iter_mut().take(dimensions as usize) {
        *dim = source.count("a dimension of a tensor")?;
    }
    let number = source.u32("the type of a tensor")?;
    let Some(kind) = TensorType::numbered(number) else {
        return Err(source.wrong(Fault::TensorType { tensor: name, found: number }));
    };
    let offset = source.u64("the place of a tensor")?;
    let bytes = size(source, &name, kind, dims)?;
    Ok(Tensor { name, kind, dims, offset, bytes })
}

fn size<R: Read + Seek>(source: &Source<R>, name: &str, kind: TensorType, dims: [u64; 4]) -> Result<u64, GgufError> {
    let [row, ..] = dims;
    if !row.is_multiple_of(kind.block()) {
        let (tensor, block) = (name.to_owned(), kind.block());
        return Err(source.wrong(Fault::Row { tensor, row, block }));
    }
    let elements = dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
    let bytes = elements
        .and_then(|_| dims[1..].iter().try_fold(kind.row_bytes(row)?, |product: u64, dim| product.checked_mul(*dim)));
    bytes.ok_or_else(|| source.wrong(Fault::TooLarge { what: "the size of a tensor", found: u64::MAX, limit: 1 << 63 }))
}

/// Complains of the first tensor that reaches beyond the end of its file.
fn within<R: Read + Seek>(source: &Source<R>, tensors: &[Tensor], weights_at: u64) -> Result<(), GgufError> {
    for tensor in tensors {
        let start = weights_at.saturating_add(tensor.offset);
        let left = source.len().saturating_sub(start);
        if tensor.bytes > left {
            let fault = Fault::Truncated { what: "a tensor", wanted: tensor.bytes, left };
            return Err(GgufError { offset: start, ..source.wrong(fault) });
        }
    }
    Ok(())
}
