//! Placement, caches and arguments, figure by figure.

mod fixtures;

use std::{io::Cursor, path::Path};

use fixtures::{Entry, Fixture, catalogue, small};
use proptest::prelude::*;
use windtunnel_core::Bytes;
use windtunnel_live::{
    footprint::{Arguments, Backend, Footprint, GpuLayers, Outputs, Part, Platform, Pool, Side, estimate},
    gguf::{Header, Model, TensorType},
};

const CARD: Platform = Platform::card(Backend::Cuda);

fn model(fixture: &Fixture) -> Model {
    let (mut bytes, weights) = fixture.bytes();
    // Only small layouts are made in memory; large ones are told from a hole behind their header.
    bytes.resize(bytes.len() + usize::try_from(weights).expect("a small layout"), 0);
    Model::of(Header::read(Path::new("m.gguf"), Cursor::new(bytes)).expect("a fixture is a model"))
}

fn arguments(line: &str) -> Arguments {
    let words: Vec<&str> = line.split_whitespace().collect();
    Arguments::parse(&words).expect("the arguments are fine")
}

fn footprint(fixture: &Fixture, line: &str, platform: Platform) -> Footprint {
    estimate(&model(fixture), None, &arguments(line), platform).expect("the fixture has a shape")
}

fn small(name: &str) -> Fixture {
    small::all().into_iter().find(|(known, _)| *known == name).expect("the fixture exists").1
}

/// What a part takes on the device, in KiB.
fn kib(footprint: &Footprint, part: Part) -> u64 {
    footprint.of(part, Side::Device).get() >> 10
}

#[test]
fn the_table_of_explain_shows_every_figure() {
    let footprint = footprint(&small("gpt-oss"), "-c 8192 -np 2 -ngl 99", CARD);
    insta::assert_snapshot!(footprint.to_string(), @r#"
    device        16.01 MiB  weights            tensors that are computed with and lie on the device
    host           2.13 MiB  embeddings         tensors that are only looked up
    device        12.00 MiB  cache, full        3 layers x 2 x 4096 cells x (128 f16 + 128 f16)
    device         2.25 MiB  cache, window      3 layers x 2 x 768 cells x (128 f16 + 128 f16)
    device        11.75 MiB  compute            512 tokens of 512: 8 MiB with masks of 5 MiB, 4 MiB of experts
    host           6.75 MiB  compute            inputs of 512 tokens with masks of 5 MiB
    host           0.03 MiB  outputs            2 rows of 4096 f32
    device       165.00 MiB  overhead           context and kernels of the backend
    host          84.39 MiB  overhead           the process: code, tokenizer, buffers of the server
    device       207.01 MiB  in all
    host          93.30 MiB  in all
    charged      207.01 MiB  in all             the device's side
    "#);
}

#[test]
fn arguments_are_read_in_all_their_forms() {
    let all = arguments("-c 8192 -np 2 -ctk q8_0 --cache-type-v=q4_0 -ub 256 -ngl 12 --embedding --swa-full");
    assert_eq!((all.context, all.slots, all.pool), (8192, 2, Pool::Divided));
    assert_eq!((all.keys, all.values, all.ubatch), (TensorType::Q8_0, TensorType::Q4_0, 256));
    assert_eq!((all.gpu_layers, all.outputs, all.swa_full), (GpuLayers::Count(12), Outputs::Embeddings, true));
    let none = arguments("--temp 1.0 --host 127.0.0.1");
    assert_eq!((none.slots, none.pool, none.gpu_layers), (4, Pool::Shared, GpuLayers::All));
    for line in ["-ngl all", "-ngl auto", "--n-gpu-layers -1", "--gpu-layers=all"] {
        assert_eq!(arguments(line).gpu_layers, GpuLayers::All, "{line}");
    }
    assert_eq!(arguments("-np 3 -kvu").pool, Pool::Shared);
    assert_eq!(arguments("-no-kvu").pool, Pool::Divided);
    assert_eq!(arguments("-c 4096 -c 2048").context, 2048);
    assert_eq!(arguments("-ncmoe 3 -ot a=CPU,b=CUDA0").overrides.len(), 5);
}

#[test]
fn arguments_that_the_runtime_would_not_take_are_refused() {
    let refused = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Arguments::parse(&words).expect_err("it is refused").to_string()
    };
    let lines = ["-c many", "-ngl some", "-ctk q6_K", "-fa maybe", "-ot (=CPU", "-ub 0", "-c", "-np 99999999999"];
    insta::assert_snapshot!(lines.map(refused).join("\n"), @r#"
    `-c` is given `many`, and should be a number
    `-ngl` is given `some`, and should be a number of layers, `all` or `auto`
    `-ctk` is given `q6_K`, and should be one of f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0, q5_1
    `-fa` is given `maybe`, and should be `on`, `off` or `auto`
    `-ot` is given `(=CPU`, and should be PATTERN=BUFFER, PATTERN a regular expression
    `-ub` is given `0`, and should be a number
    `-c` is given nothing, and should be a number
    `-np` is given `99999999999`, and should be a number
    "#);
}

#[test]
fn the_context_is_the_pool_of_all_slots() {
    let fixture = small("glm4moe");
    // Six layers (one that predicts is kept too) of 2 x 64 elements for keys and as many for values, 2 bytes each.
    let cells = |line| kib(&footprint(&fixture, line, CARD), Part::FullCache) * 1024 / (6 * 512);
    assert_eq!(cells("-c 8192 -np 1"), 8192);
    assert_eq!(cells("-c 8192 -np 4"), 8192);
    assert_eq!(cells("-c 1000 -np 1"), 1024);
    assert_eq!(cells("-c 1000 -np 3"), 3 * 512);
    assert_eq!(cells("-c 1000 -np 3 -kvu"), 1024);
    assert_eq!(cells("-c 0 -np 1"), 32768);
}

#[test]
fn windows_need_their_length_and_a_batch() {
    let fixture = small("gpt-oss");
    // Three layers have a window of 128 tokens, 512 bytes a cell.
    let cells = |line| kib(&footprint(&fixture, line, CARD), Part::WindowCache) * 1024 / (3 * 512);
    assert_eq!(cells("-c 8192 -np 1"), 768);
    assert_eq!(cells("-c 8192 -np 2"), 2 * 768);
    assert_eq!(cells("-c 8192 -np 2 -kvu"), 768);
    assert_eq!(cells("-c 8192 -np 1 -ub 1024"), 1280);
    assert_eq!(cells("-c 512 -np 1"), 512);
    assert_eq!(cells("-c 8192 -np 1 --swa-full"), 8192);
}

#[test]
fn states_are_for_slots_and_not_for_tokens() {
    let fixture = small("mamba2");
    let states = |line| kib(&footprint(&fixture, line, CARD), Part::States);
    assert_eq!(states("-c 1024 -np 1"), states("-c 32768 -np 1"));
    assert_eq!(states("-np 3"), 3 * states("-np 1"));
    // Eight layers of 3 x (1024 + 2 x 128) and 128 x 1024 elements.
    assert_eq!(states("-np 1"), 8 * (3 * 1280 + 128 * 1024) * 4 / 1024);
}

#[test]
fn latent_attention_keeps_keys_only() {
    let footprint = footprint(&small("deepseek2"), "-c 4096 -np 1", CARD);
    assert_eq!(kib(&footprint, Part::LatentCache), 6 * 4096 * 320 * 2 / 1024);
    assert_eq!(kib(&footprint, Part::FullCache), 0);
}

#[test]
fn an_encoder_keeps_nothing_and_has_no_second_embedding() {
    let footprint = footprint(&small("nomic-bert"), "-c 2048 -np 4", CARD);
    assert_eq!(kib(&footprint, Part::FullCache), 0);
    assert!(!footprint.rows.iter().any(|row| row.formula.contains("once more")));
}

#[test]
fn weights_are_conserved_wherever_they_lie() {
    let fixture = small("glm4moe");
    let weights = |line| {
        let footprint = footprint(&fixture, line, CARD);
        let sides = [Side::Device, Side::Host].map(|side| footprint.of(Part::Weights, side).get());
        (sides[0], sides[0] + sides[1])
    };
    let (most, all) = weights("-ngl 99");
    let mut before = most;
    for line in ["-ngl 6", "-ngl 3", "-ngl 1", "-ngl 0"] {
        let (device, sum) = weights(line);
        assert_eq!(sum, all, "{line}");
        assert!(device < before, "{line}");
        before = device;
    }
    assert_eq!(before, 0);
    let moe = weights("--cpu-moe");
    assert_eq!(moe, weights(r"-ot \.ffn_(up|down|gate)_exps=CPU"));
    assert_eq!(moe, weights("--n-cpu-moe 6"));
    assert!(weights("--n-cpu-moe 3").0 > moe.0 && moe.1 == all);
    assert_eq!(weights("-dev none"), (0, all));
}

#[test]
fn the_first_rule_that_fits_a_tensor_decides() {
    let fixture = small("glm4moe");
    let device = |line| footprint(&fixture, line, CARD).of(Part::Weights, Side::Device);
    assert_eq!(device("-ot exps=CUDA0,exps=CPU"), device(""));
    assert_eq!(device("-ot exps=CPU,exps=CUDA0"), device("--cpu-moe"));
}

#[test]
fn a_cache_on_the_host_costs_the_device_nothing() {
    let footprint = footprint(&small("glm4moe"), "-c 8192 -np 1 --no-kv-offload", CARD);
    assert_eq!(kib(&footprint, Part::FullCache), 0);
    assert_eq!(footprint.of(Part::FullCache, Side::Host), Bytes::from_mib(24));
}

#[test]
fn quantised_caches_take_what_their_blocks_take() {
    let fixture = small("glm4moe");
    let cache = |line| kib(&footprint(&fixture, line, CARD), Part::FullCache);
    let plain = cache("-c 8192 -np 1");
    assert_eq!(cache("-c 8192 -np 1 -ctk q8_0 -ctv q8_0") * 64, plain * 34);
    assert_eq!(cache("-c 8192 -np 1 -ctv q4_0") * 128, plain * (64 + 18));
}

#[test]
fn values_that_are_stored_transposed_are_as_wide_as_the_widest() {
    let mut f = Fixture::new("gemma4");
    f.numbers(&[("block_count", 2), ("embedding_length", 64), ("attention.head_count", 2), ("context_length", 1024)]);
    f.numbers(&[("attention.key_length", 64), ("attention.key_length_swa", 32), ("attention.sliding_window", 256)]);
    f.numbers(&[("attention.value_length", 64), ("attention.value_length_swa", 32)]);
    f.own("attention.sliding_window_pattern", Entry::flags([true, false]));
    f.tensor("token_embd.weight", TensorType::F16, &[64, 32]);
    let window = |line| footprint(&f, line, CARD).of(Part::WindowCache, Side::Device).get();
    assert_eq!(window("-c 1024 -np 1 -fa off") * 4, window("-c 1024 -np 1 -fa on") * 6);
}

#[test]
fn unified_memory_counts_both_sides_and_a_card_its_own() {
    let fixture = small("falcon-h1");
    let card = footprint(&fixture, "-np 1 -c 4096", CARD);
    let unified = footprint(&fixture, "-np 1 -c 4096", Platform::unified(Backend::Metal));
    assert_eq!(card.charged(), card.device());
    assert_eq!(unified.charged(), unified.device().plus(unified.host()));
    assert_eq!(footprint(&fixture, "-np 1 -c 4096", Platform::host()).device(), Bytes::ZERO);
}

#[test]
fn a_header_without_a_shape_is_refused_with_a_reason() {
    let mut f = Fixture::new("llama");
    f.numbers(&[("block_count", 100_000)]);
    let wrong = estimate(&model(&f), None, &Arguments::default(), CARD).expect_err("it has no shape");
    insta::assert_snapshot!(wrong.to_string(), @r#"
    m.gguf: `llama.block_count` is 100000, and should be a number from 1 to 512: give the model a `footprint` instead
    "#);
}

#[test]
fn the_catalogue_has_the_sizes_of_the_published_files() {
    // Bytes of the published files, whose headers hold up to 16 MB of tokens that the layouts leave out.
    for (fixture, published) in [(catalogue::qwen3_14b(), 9_001_752_960_u64), (catalogue::gemma4_12b(), 6_975_879_296)]
    {
        let (header, weights) = fixture.bytes();
        let left_out = published - weights - header.len() as u64;
        assert!(left_out < 17 << 20, "{left_out}");
    }
}

/// What weights, caches and states take on the device.
fn kept(model: &Model, context: u32, layers: u32) -> u64 {
    let arguments = arguments(&format!("-c {context} -np 1 -ngl {layers}"));
    let footprint = estimate(model, None, &arguments, CARD).expect("the fixture has a shape");
    let parts = [Part::Weights, Part::FullCache, Part::WindowCache, Part::LatentCache, Part::States];
    parts.map(|part| footprint.of(part, Side::Device).get()).iter().sum()
}

#[test]
fn more_context_and_more_layers_take_no_less() {
    for (name, fixture) in small::all() {
        let model = model(&fixture);
        for layers in 0..8 {
            for context in [1, 300, 5000, 40_000] {
                let here = kept(&model, context, layers);
                assert!(kept(&model, context + 700, layers) >= here, "{name} {context} {layers}");
                assert!(kept(&model, context, layers + 1) >= here, "{name} {context} {layers}");
            }
        }
    }
}

proptest! {
    /// Whatever numbers a header holds and arguments say, the estimate is made or refused, and never overflows.
    #[test]
    fn no_numbers_make_the_estimate_panic(
        numbers in prop::collection::vec(prop_oneof![0_u32..8, any::<u32>()], 16),
        architecture in prop::sample::select(vec!["llama", "gemma4", "qwen35moe", "deepseek2", "mamba2", "rwkv7", "lfm2", "nomic-bert"]),
        context: u32, slots in 1_u32..100_000, ubatch in 1_u32..100_000, layers in 0_u32..200,
        flash in prop::sample::select(vec!["on", "off"]),
    ) {
        const KEYS: [&str; 16] = [
            "embedding_length", "attention.head_count", "attention.head_count_kv", "attention.key_length",
            "attention.sliding_window", "attention.sliding_window_pattern", "ssm.inner_size", "ssm.state_size",
            "ssm.conv_kernel", "ssm.group_count", "expert_used_count", "embedding_length_per_layer_input",
            "attention.shared_kv_layers", "nextn_predict_layers", "full_attention_interval", "wkv.head_size",
        ];
        let mut f = Fixture::new(architecture);
        f.numbers(&[("block_count", layers)]);
        let pairs: Vec<(&str, u32)> = KEYS.into_iter().zip(numbers).collect();
        f.numbers(&pairs);
        f.tensor("token_embd.weight", TensorType::F16, &[32, 8]).block(0, "ffn_up", TensorType::F16, &[32, 8]);
        let context = context % (1 << 31);
        let line = format!("-c {context} -np {slots} -ub {ubatch} -ngl {layers} -fa {flash}");
        if let Ok(footprint) = estimate(&model(&f), None, &arguments(&line), CARD) {
            let parts = footprint.device().plus(footprint.host());
            prop_assert_eq!(parts, footprint.total());
            prop_assert!(!footprint.to_string().is_empty());
        }
    }
}
