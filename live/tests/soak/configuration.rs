//! The daemon's configurations: models that do well, and models that each do something wrong now and then.

use std::{fmt::Write, path::Path};

use crate::fixtures::small;

const SERVER: &str = env!("CARGO_BIN_EXE_fake-llama-server");

/// The models that every configuration has.
pub const MODELS: [&str; 8] = ["chat", "code", "dies", "mute", "breaks", "stubborn", "flaky", "vectors"];
/// Models that come and go.
pub const MORE: [&str; 2] = ["guest", "visitor"];

/// How much memory there is for models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Enough for all.
    Ample,
    /// So many MiB beyond what is in use on this machine now.
    Beyond(u64),
}

/// What is wrong with a model, as arguments of the fake server.
fn faults(model: &str) -> &'static str {
    match model {
        "dies" => r#""--fake-answers", "dies:3:signal=11", "--fake-spared", "10", "--fake-times", "1""#,
        "mute" => r#""--fake-answers", "mute", "--fake-spared", "6", "--fake-times", "1""#,
        "breaks" => {
            r#""--fake-answers", "broken:2", "--fake-spared", "10", "--fake-times", "2", "--fake-frames", "split""#
        }
        "stubborn" => r#""--fake-term", "ignored", "--fake-requests-a-connection", "5""#,
        "flaky" => r#""--fake-load-ends", "code=1", "--fake-once", "flaky-once""#,
        _ => r#""--fake-load-says", "progress""#,
    }
}

/// Writes a configuration, with these of the models that come and go.
pub fn write(folder: &Path, size: Size, more: &[&str]) {
    std::fs::write(folder.join("windtunnel.toml"), text(folder, size, more)).expect("the folder can be written");
}

/// One with a mistake in it.
pub fn write_wrong(folder: &Path) {
    let text = text(folder, Size::Ample, &[]).replace("slots = 2", "slotz = 2");
    std::fs::write(folder.join("windtunnel.toml"), text).expect("the folder can be written");
}

fn text(folder: &Path, size: Size, more: &[&str]) -> String {
    let file = folder.join("model.gguf");
    if !file.exists() {
        let (_, fixture) = small::all().swap_remove(5);
        fixture.write(&file);
    }
    let limit = match size {
        Size::Ample => String::new(),
        Size::Beyond(mib) => format!("limit = \"{}MiB\"\n", in_use_mib() + mib),
    };
    let mut text = format!(
        r#"[server]
llama_server = "{SERVER}"
journal_limit = "128KiB"
start_stall = "3s"
wedged_after = "2s"
stop_grace = "300ms"
keepalive_after = "200ms"
keepalive_every = "200ms"

[policy]
hot_ttl = "200ms"
interactive_idle = "200ms"
min_residency = "0s"
background_max_starvation = "200ms"

[[devices]]
name = "cpu"
backend = "cpu"
headroom = "16MiB"
{limit}
[families.any]
variants = [{{ model = "chat", quality = "preferred" }}, {{ model = "code", quality = "compact" }}]
"#
    );
    let listed = MODELS.iter().chain(more);
    for (at, model) in listed.enumerate() {
        let kind = match *model {
            "vectors" => "batch = { max = 8 }\ncapabilities = [\"embedding\"]".to_owned(),
            _ => format!("slots = {}", 1 + at % 3),
        };
        let service = r#""--fake-load", "50ms", "--fake-service", "slots:1ms,5us,1ms,100us,5ms""#;
        // Memory that is really taken, so that limits mean something.
        let memory = r#""--fake-balloon", "48MiB""#;
        let faults = faults(model);
        write!(
            text,
            "\n[models.{model}]\ngguf = \"{}\"\nctx = 8192\n{kind}\nargs = [{service}, {memory}, {faults}]\n",
            file.display()
        )
        .expect("a text can be written to");
    }
    text
}

fn in_use_mib() -> u64 {
    let facts = std::fs::read_to_string("/proc/meminfo").expect("this is Linux");
    let kib = |name: &str| -> u64 {
        let line = facts.lines().find_map(|line| line.strip_prefix(name)).expect("the fact is there");
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("it is a number")
    };
    (kib("MemTotal") - kib("MemAvailable")) >> 10
}
