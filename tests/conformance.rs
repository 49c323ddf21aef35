//! The same requests in the tunnel and through the daemon: the scheduler decides the same, in the same order.
//!
//! The daemon runs as a process on a simulated card, the load generator sends it the requests of a scenario, and what its
//! journal says of decisions is compared with the journal of the simulation. Requests come far enough apart that a busy
//! machine does not change their order.

mod serving;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serving::{Serving, folder, text};

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
const CHAT: &str = r#"
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

/// A family of the two.
const FAMILY: &str = r#"
[families.any]
variants = [{ model = "large", quality = "preferred" }, { model = "other", quality = "compact" }]
"#;

/// A short queue, and promises that are kept.
const STRICT: &str = r#"
[policy.classes.batch]
max_queued = 2

[policy.classes.interactive]
admission = "deadline"
"#;

/// The best variant, one that is there, and two chats that have to take turns.
const TURNS: &str = r#"
title = "families and turns in the tunnel and through the daemon"
base = "card.toml"

[run]
replications = 1
drain = true
horizon = "60s"

[[workload]]
name = "user"
class = "interactive"
family = "any"
prompt_tokens = 12
arrivals = { process = "at", requests = [{ at = "0.3s", output_tokens = 30 }, { at = "8.5s", output_tokens = 10 }] }

[[workload]]
name = "helper"
class = "background"
family = "any"
prompt_tokens = 12
arrivals = { process = "at", requests = [{ at = "2s", output_tokens = 20 }, { at = "8.8s", output_tokens = 10 }] }

[[workload]]
name = "coder"
class = "interactive"
model = "other"
prompt_tokens = 8
arrivals = { process = "at", requests = [{ at = "4s", output_tokens = 40 }, { at = "6s", output_tokens = 20 }] }

[[workload]]
name = "writer"
class = "interactive"
model = "large"
prompt_tokens = 8
arrivals = { process = "at", requests = [{ at = "4.3s", output_tokens = 15 }] }
"#;

/// A queue that is full, a deadline that cannot be met, a wait that is too long, a client that gives up.
const REFUSALS: &str = r#"
title = "refusals in the tunnel and through the daemon"
base = "card.toml"

[run]
replications = 1
drain = true
horizon = "60s"

[[workload]]
name = "index"
class = "batch"
model = "vectors"
kind = "embedding"
arrivals = { process = "at", requests = [
    { at = "0.3s", inputs = 96 }, { at = "0.5s", inputs = 8 }, { at = "0.7s", inputs = 8 }, { at = "3s", inputs = 8 },
] }

[[workload]]
name = "user"
class = "interactive"
model = "other"
prompt_tokens = 8
output_tokens = 60
arrivals = { process = "at", times = ["4s", "7.5s"] }

[[workload]]
name = "hurried"
class = "interactive"
model = "other"
prompt_tokens = 8
output_tokens = 40
deadline = "700ms"
arrivals = { process = "at", times = ["4.3s", "7.8s"] }

[[workload]]
name = "restless"
class = "background"
model = "other"
prompt_tokens = 8
output_tokens = 10
max_wait = "300ms"
arrivals = { process = "at", times = ["4.6s"] }

[[workload]]
name = "impatient"
class = "interactive"
model = "large"
prompt_tokens = 8
output_tokens = 100
patience = "800ms"
arrivals = { process = "at", times = ["10.5s"] }
"#;

fn windtunnel(folder: &Path, arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_windtunnel")).current_dir(folder).args(arguments).output();
    let out = command.expect("it runs");
    assert!(out.status.success(), "{arguments:?}: {}{}", text(&out.stdout), text(&out.stderr));
    out
}

/// What differs by the moment at which something happens.
const TIMES: [&str; 5] = ["latency=", "wait=", "predicted=", "retry=", "after="];

/// What a line says of a decision: its word, and what follows without times and sizes.
fn decision(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    let word = words.next()?;
    let kept: Vec<&str> = match word {
        "load" | "loaded" | "unloaded" => words.take(3).collect(),
        "evict" => words.take(7).collect(),
        "guard" => words.take(2).collect(),
        "dispatch" | "complete" | "mode" | "variant" | "requeue" | "crash" | "loadfail" | "refuse" | "timeout"
        | "fail" | "cancel" => words.filter(|word| !TIMES.iter().any(|time| word.starts_with(time))).collect(),
        _ => return None,
    };
    Some(format!("{word} {}", kept.join(" ")))
}

fn decisions(folder: &Path, journal: &str) -> Vec<String> {
    text(&windtunnel(folder, &["events", journal]).stdout).lines().filter_map(decision).collect()
}

/// Decides a story in the tunnel and through the daemon; what was decided by both.
fn decided_by_both(name: &str, card: &str, story: &str) -> Vec<String> {
    let folder = folder("conformance", name);
    fs::write(folder.join("card.toml"), card).expect("the folder can be written");
    fs::write(folder.join("story.toml"), story).expect("the folder can be written");
    let live = card.replace("name = \"gpu\"", "name = \"gpu\"\nbackend = \"simulated\"");
    fs::write(folder.join("daemon.toml"), live).expect("the folder can be written");
    windtunnel(&folder, &["sim", "story.toml", "--journal", "tunnel.jsonl", "--quiet"]);

    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.current_dir(&folder).args(["serve", "--config", "daemon.toml", "--listen", "127.0.0.1:0", "--quiet"]);
    command.args(["--journal", "live.jsonl", "--state-dir", "state"]);
    let mut daemon = Serving::start(&mut command);
    windtunnel(&folder, &["load", "story.toml", "--url", &daemon.url, "--quiet"]);
    daemon.signal("-TERM");
    assert!(daemon.child.wait().expect("it ends").success());

    let (tunnel, live) = (decisions(&folder, "tunnel.jsonl"), decisions(&folder, "live.jsonl"));
    assert_eq!(live, tunnel);
    windtunnel(&folder, &["replay", "live.jsonl"]);
    tunnel
}

fn has(decisions: &[String], beginning: &str) {
    assert!(decisions.iter().any(|line| line.starts_with(beginning)), "{beginning} is in the story: {decisions:#?}");
}

#[test]
fn a_chat_with_indexing_beside_it_and_a_model_that_makes_room() {
    let decided = decided_by_both("chat", CARD, CHAT);
    has(&decided, "evict");
    has(&decided, "guard");
}

#[test]
fn families_and_turns_between_chats_that_do_not_fit_together() {
    let decided = decided_by_both("turns", &format!("{CARD}{FAMILY}"), TURNS);
    has(&decided, "variant");
    has(&decided, "evict");
}

#[test]
fn what_is_refused_or_waits_too_long() {
    let decided = decided_by_both("refusals", &format!("{CARD}{STRICT}"), REFUSALS);
    has(&decided, "refuse");
    has(&decided, "timeout");
    has(&decided, "cancel");
}
