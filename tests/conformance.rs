//! The same requests in the tunnel and through the daemon: the scheduler decides the same, in the same order.
//!
//! The daemon runs as a process on a simulated card, the load generator sends it the requests of a scenario, and what its
//! journal says of decisions is compared with the journal of the simulation. Requests come far enough apart that a busy
//! machine does not change their order.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

const CARD: &str = r#"
[[devices]]
name = "gpu"
memory = "16GiB"
load = { fixed = "0.4s", bandwidth = "8GiB/s" }
stop = "200ms"
release = "100ms"

[models.large]
footprint = "9GiB"
slots = 2
service = { kind = "slots", prefill_fixed = "20ms", prefill_per_token = "0.1ms", decode_alpha = "20ms", decode_beta = "2ms" }

[models.other]
footprint = "8GiB"
slots = 1
service = { kind = "slots", prefill_fixed = "20ms", prefill_per_token = "0.1ms", decode_alpha = "15ms" }

[models.vectors]
footprint = "1GiB"
batch = { max = 32 }
capabilities = ["embedding"]
service = { kind = "batch", alpha = "60ms", beta = "5ms" }

[policy]
interactive_idle = "1s"
hot_ttl = "2s"
background_max_starvation = "700ms"
min_residency = "1s"
"#;

/// A chat, indexing beside it through the guard, and a model that has to make room and come back.
const STORY: &str = r#"
title = "the same in the tunnel and through the daemon"
base = "card.toml"

[run]
replications = 1
drain = true
horizon = "60s"

[[workload]]
name = "user"
class = "interactive"
model = "large"
prompt_tokens = 12
arrivals = { process = "at", requests = [
    { at = "0.3s", output_tokens = 40 }, { at = "2.6s", output_tokens = 30 }, { at = "9s", output_tokens = 20 },
] }

[[workload]]
name = "index"
class = "background"
model = "vectors"
kind = "embedding"
arrivals = { process = "at", requests = [{ at = "0.8s", inputs = 96 }, { at = "4.1s", inputs = 40 }] }

[[workload]]
name = "batch"
class = "batch"
model = "other"
output_tokens = 25
prompt_tokens = 8
arrivals = { process = "at", times = ["5.2s", "5.45s"] }
"#;

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conformance").join(name);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn windtunnel(folder: &Path, arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_windtunnel")).current_dir(folder).args(arguments).output();
    let out = command.expect("it runs");
    assert!(out.status.success(), "{arguments:?}: {}{}", text(&out.stdout), text(&out.stderr));
    out
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Ends the daemon when the test fails.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What a line says of a decision: its word, and what follows without times and sizes.
fn decision(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let word = words.next()?;
    let kept: Vec<&str> = match word {
        "dispatch" => words.collect(),
        "load" | "loaded" | "unloaded" => words.take(3).collect(),
        "complete" => words.filter(|word| !word.starts_with("latency=") && !word.starts_with("wait=")).collect(),
        "evict" => words.take(7).collect(),
        "guard" => words.take(2).collect(),
        "mode" | "variant" | "requeue" | "crash" | "loadfail" | "refuse" | "timeout" | "fail" => words.collect(),
        _ => return None,
    };
    Some(format!("{word} {}", kept.join(" ")))
}

fn decisions(folder: &Path, journal: &str) -> Vec<String> {
    text(&windtunnel(folder, &["events", journal]).stdout).lines().filter_map(decision).collect()
}

#[test]
fn the_daemon_decides_as_the_tunnel_does() {
    let folder = folder("story");
    fs::write(folder.join("card.toml"), CARD).expect("the folder can be written");
    fs::write(folder.join("story.toml"), STORY).expect("the folder can be written");
    let live = CARD.replace("name = \"gpu\"", "name = \"gpu\"\nbackend = \"simulated\"");
    fs::write(folder.join("daemon.toml"), live).expect("the folder can be written");
    windtunnel(&folder, &["sim", "story.toml", "--journal", "tunnel.jsonl", "--quiet"]);

    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.current_dir(&folder).args(["serve", "--config", "daemon.toml", "--listen", "127.0.0.1:0", "--quiet"]);
    command.args(["--journal", "live.jsonl", "--state-dir", "state"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut daemon = Daemon(command.spawn().expect("it starts"));
    let mut url = String::new();
    BufReader::new(daemon.0.stdout.take().expect("stdout is piped"))
        .read_line(&mut url)
        .expect("it says where it listens");
    windtunnel(&folder, &["load", "story.toml", "--url", url.trim(), "--quiet"]);
    let ended = Command::new("kill").args(["-TERM", &daemon.0.id().to_string()]).status().expect("kill is there");
    assert!(ended.success() && daemon.0.wait().expect("it ends").success());

    let (tunnel, live) = (decisions(&folder, "tunnel.jsonl"), decisions(&folder, "live.jsonl"));
    assert!(tunnel.iter().any(|line| line.starts_with("evict")), "the story has an eviction: {tunnel:#?}");
    assert!(tunnel.iter().any(|line| line.starts_with("guard")), "the guard is in the story: {tunnel:#?}");
    assert_eq!(live, tunnel);
    windtunnel(&folder, &["replay", "live.jsonl"]);
}
