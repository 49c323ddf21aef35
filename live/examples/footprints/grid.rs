//! Which runs are compared.

use std::{error::Error, fs, path::Path};

use windtunnel_core::Bytes;
use windtunnel_live::footprint::{Backend, Platform};

use super::{
    Outcome,
    compare::Comparison,
    fixtures::{Fixture, Folder, catalogue, small},
    server::{Server, Until},
};

/// The largest tensor that the software Vulkan device takes.
const SOFTWARE_LIMIT: Bytes = Bytes::from_mib(128);

/// Loads `model` over the grid.
pub fn loads(server: &Server, model: &Path) -> Result<Vec<(String, Outcome)>, Box<dyn Error>> {
    let mut outcomes = Vec::new();
    let blocks = ["-ngl all", "-ngl 10", "-ngl 0"];
    let places = if server.device.is_some() { &blocks[..] } else { &[] };
    for place in places.iter().copied().chain(["-dev none"]) {
        for pool in ["-c 2048 -np 1", "-c 8192 -np 1", "-c 8192 -np 4", "-c 8192 -np 4 -kvu", "-c 16384 -np 3"] {
            for cache in ["", " -ctk q8_0 -ctv q8_0"] {
                outcomes.push(load(server, model, &format!("{place} {pool}{cache}")));
            }
        }
    }
    for more in
        ["-c 8192 -np 1 -fa off", "-c 8192 -np 1 -ub 1024", "-c 8192 -np 1 -b 128", "-c 8192 -np 2 --swa-full", ""]
    {
        for place in if server.device.is_some() { &["-ngl all", "-dev none"][..] } else { &["-dev none"] } {
            outcomes.push(load(server, model, &format!("{place} {more}")));
        }
    }
    Ok(outcomes)
}

fn load(server: &Server, model: &Path, what: &str) -> (String, Outcome) {
    let words = format!("{} --no-mmap --cache-ram 0 --ctx-checkpoints 0", what.trim());
    // A long prompt takes its time without a device; one cache type is enough for what it shows.
    let answers = what.starts_with("-dev none") && !what.contains("q8_0");
    let until = if answers { Until::Ready } else { Until::Buffers };
    (what.trim().to_owned(), compared(server, model, &words, until))
}

fn compared(server: &Server, model: &Path, words: &str, until: Until) -> Outcome {
    let arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let reported = server.run(model, &arguments, until)?;
    Comparison::new(model, &arguments, platform(server), reported)
}

fn platform(server: &Server) -> Platform {
    match server.device.as_deref() {
        None => Platform::host(),
        Some(name) if name.starts_with("CUDA") => Platform::card(Backend::Cuda),
        Some(name) if name.starts_with("ROCm") => Platform::card(Backend::Hip),
        Some(name) if name.starts_with("MTL") || name.starts_with("Metal") => Platform::unified(Backend::Metal),
        Some(name) if name.contains("llvmpipe") => Platform::card(Backend::Vulkan).with_largest_tensor(SOFTWARE_LIMIT),
        Some(_) => Platform::card(Backend::Vulkan),
    }
}

/// Asks the server what it would take for models that are a header only.
pub fn layouts(server: &Server) -> Result<Vec<(String, Outcome)>, Box<dyn Error>> {
    let folder = Folder::new("layouts");
    let mut outcomes = Vec::new();
    for Layout { name, fixture, tokens, lines, until } in everything() {
        let path = write(&folder, name, fixture, tokens);
        for line in lines {
            let outcome = compared(server, &path, line, until);
            outcomes.push((format!("{name} {line}"), outcome));
        }
        fs::remove_file(&path)?;
    }
    Ok(outcomes)
}

fn write(folder: &Folder, name: &str, mut fixture: Fixture, tokens: u64) -> std::path::PathBuf {
    fixture.vocabulary(tokens);
    fixture.write(&folder.join(&format!("{name}.gguf")))
}

/// A file with a header only, and what to run with it.
struct Layout {
    name: &'static str,
    fixture: Fixture,
    tokens: u64,
    lines: &'static [&'static str],
    until: Until,
}

/// Large ones are only asked about; small ones are loaded, weights of zeros and all.
fn everything() -> Vec<Layout> {
    let pools: &[&str] =
        &["-c 8192 -np 2", "-c 32768 -np 1", "-c 8192 -np 4 -kvu -ctk q8_0 -ctv q8_0", "-c 8192 -np 1 -ngl 20"];
    let experts: &[&str] = &[
        "-c 8192 -np 1",
        "-c 8192 -np 4",
        "-c 8192 -np 1 --cpu-moe",
        "-c 8192 -np 1 --n-cpu-moe 20",
        "-c 8192 -np 1 -ngl 20",
    ];
    let until = Until::Projection;
    let large = |name, fixture, tokens, lines| Layout { name, fixture, tokens, lines, until };
    let mut all = vec![
        large("qwen3-14b", catalogue::qwen3_14b(), 151_936, pools),
        large("gemma4-e2b", catalogue::gemma4_e2b(), 262_144, &pools[..3]),
        large("gemma4-12b", catalogue::gemma4_12b(), 262_144, pools),
        large("qwen3.5-moe-128-experts", catalogue::qwen35_moe(0, 128, 32_000), 32_000, experts),
    ];
    let (lines, until): (&[&str], _) = (&["-c 16384 -np 1", "-c 16384 -np 3"], Until::Buffers);
    let small = small::all().into_iter();
    all.extend(small.map(|(name, fixture)| Layout { name, fixture, tokens: small::TOKENS, lines, until }));
    all
}
