//! What operators run beside a daemon, as processes: `config import`, `status`, `bench`.

mod serving;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use serving::{Serving, text};

/// A simulated card with a model for chats and one for vectors, whose times are what a measurement has to find.
const CARD: &str = r#"
[server]
state_dir = "state"
journal = "run.jsonl"

[[devices]]
name = "gpu"
backend = "simulated"
memory = "8GiB"
load = { fixed = "300ms" }

[models.chat]
footprint = "4GiB"
slots = 4
pinned = true
preload = true
service = { kind = "slots", prefill_fixed = "20ms", prefill_per_token = "1ms", decode_alpha = "12ms", decode_beta = "6ms" }

[models.vectors]
footprint = "512MiB"
batch = { max = 32 }
capabilities = ["embedding"]
service = { kind = "batch", alpha = "80ms", beta = "10ms" }
"#;

fn folder(name: &str) -> PathBuf {
    serving::folder("operator", name)
}

fn daemon(arguments: &[&str]) -> Serving {
    let mut command = windtunnel(&["serve", "--listen", "127.0.0.1:0", "--state-dir"]);
    Serving::start(command.arg(folder("daemon").join("state")).args(arguments).stderr(Stdio::null()))
}

fn windtunnel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    // Nothing that the user of this machine has learned or configured may matter.
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    windtunnel(arguments).stdin(Stdio::null()).output().expect("it runs")
}

#[test]
fn an_imported_configuration_is_one_that_the_daemon_reads() {
    let folder = folder("import");
    let written = folder.join("windtunnel.toml").display().to_string();
    let import = ["config", "import", "gridcore", "tests/import/gridcore.yaml", "--output", &written];
    let out = run(&import);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("gridcore.yaml:14: `runtimes.llamacpp.port_range`"), "{}", text(&out.stderr));

    let check = run(&["check", &written]);
    // The model files are not there, which is another thing than a configuration that cannot be used.
    assert_eq!(check.status.code(), Some(1), "{}{}", text(&check.stdout), text(&check.stderr));

    fs::write(&written, "mine").expect("it can be written");
    let again = run(&import);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"), "{}", text(&again.stderr));
    assert_eq!(fs::read_to_string(&written).expect("it is there"), "mine");
    assert_eq!(run(&[&import[..], &["--force"]].concat()).status.code(), Some(0));
    let replaced = fs::read_to_string(&written).expect("it is there");
    let printed = run(&import[..4]);
    assert_eq!(replaced, text(&printed.stdout));
    for force in [&[][..], &["--force"]] {
        let dash = run(&[&import[..4], &["--output", "-"], force].concat());
        assert_eq!((dash.status.code(), text(&dash.stdout)), (Some(0), replaced.clone()));
    }
}

#[test]
fn status_tells_of_a_daemon_and_of_none() {
    let daemon = daemon(&["--simulated"]);
    let out = run(&["status", "--url", &daemon.url]);
    let page = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    for part in ["serving", "gpu0", "nobody waits", "GiB: "] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let json = run(&["status", "--url", &daemon.url, "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json["status"]["devices"][0]["device"], "gpu0", "{json}");
    assert!(json["events"]["last"].is_u64(), "{json}");

    let watch = run(&["status", "--url", &daemon.url, "--watch"]);
    assert_eq!(watch.status.code(), Some(2));
    assert!(text(&watch.stderr).contains("needs a terminal"), "{}", text(&watch.stderr));

    let url = daemon.url.clone();
    drop(daemon);
    let silent = run(&["status", "--url", &url]);
    assert_eq!(silent.status.code(), Some(1));
    assert!(text(&silent.stderr).contains("no daemon answers at"), "{}", text(&silent.stderr));
    assert_eq!(run(&["status", "--url", "nonsense"]).status.code(), Some(2));
    // What cannot be shown is asked of nobody.
    for wrong in ["--watch", "--format=csv"] {
        let out = run(&["status", "--url", &url, wrong]);
        assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    }
}

/// Whether it is within a third of what it truly is, and a little more.
fn near(found: &Value, truth: f64, slack: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - truth).abs() <= truth / 3.0 + slack)
}

/// What a measurement of the card finds.
fn measured(config: &str) -> Value {
    let rest = ["--prompt-tokens", "160", "--output-tokens", "24", "--rounds", "1", "--format", "json"];
    let out = run(&[&["bench", "--config", config], &rest[..]].concat());
    assert_eq!(out.status.code(), Some(0), "{}{}", text(&out.stdout), text(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("it is JSON")
}

/// Whether the times of the card are found: a prompt takes 20 ms and 1 ms a token, a token 18 ms alone.
fn finds_the_card(found: &Value) -> bool {
    let service = &found["models"][0]["service"];
    let number = |name: &str| service[name].as_f64().unwrap_or(f64::NAN);
    let alone = number("decode_alpha_ms") + number("decode_beta_ms");
    near(&service["prefill_per_token_ms"], 1.0, 0.1)
        && near(&service["prefill_fixed_ms"], 20.0, 10.0)
        && near(&alone.into(), 18.0, 1.0)
}

/// Whoever shares the machine makes everything slower and nothing faster, so no time is shorter than the card's, and a
/// measurement that was disturbed is made again.
#[test]
fn a_measurement_finds_the_times_of_a_simulated_card() {
    let folder = folder("bench");
    let config = folder.join("card.toml");
    fs::write(&config, CARD).expect("it can be written");
    let config = config.display().to_string();
    let mut tries = Vec::new();
    let found = loop {
        let found = measured(&config);
        if finds_the_card(&found) {
            break found;
        }
        tries.push(found["models"][0]["service"].clone());
        assert!(tries.len() < 10, "the card is not found: {tries:#?}");
    };
    let [chat, vectors] = [&found["models"][0], &found["models"][1]];
    assert_eq!((&chat["model"], &vectors["model"]), (&"chat".into(), &"vectors".into()));
    assert_eq!(vectors["service"]["kind"], "batch", "{vectors}");
    let points = found["points"].as_array().expect("a list");
    let of = |what: &'static str| points.iter().filter(move |point| point["measured"] == what);
    let sizes = |what| of(what).filter_map(|point| point["size"].as_f64()).collect::<Vec<_>>();
    assert_eq!(sizes("inputs"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(sizes("generations"), [1.0, 2.0, 4.0]);
    for (what, fixed, each) in [("inputs", 80.0, 10.0), ("prompt tokens", 20.0, 1.0), ("generations", 18.0, 0.0)] {
        for point in of(what) {
            let (size, millis) = (point["size"].as_f64().unwrap_or(f64::NAN), point["ms"].as_f64().unwrap_or(f64::NAN));
            assert!(millis >= fixed + each * size - 2.0, "{point}");
        }
    }
    assert_eq!(chat["holds_bytes"], 4_u64 << 30, "{chat}");
    assert!(chat["load_seconds"].as_f64().is_some_and(|seconds| seconds > 0.25), "{chat}");

    // What users did is in their journal, and the list of processes is that of the daemon that serves them.
    assert!(!folder.join("run.jsonl").exists());
    let state = fs::read_dir(folder.join("state")).expect("there is a state");
    assert_eq!(state.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["bench"]);
    assert!(!folder.join("state/bench/journal").exists());
}

#[test]
fn a_model_that_cannot_be_measured_keeps_no_other_from_it() {
    let daemon = daemon(&["--simulated"]);
    let rest = ["--prompt-tokens", "16", "--output-tokens", "4", "--rounds", "1", "--format", "json"];
    let out = run(&[&["bench", "nobody", "small", "nobody-either", "--url", &daemon.url], &rest[..]].concat());
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("\"nobody\"") && said.contains("\"nobody-either\""), "{said}");
    let found: Value = serde_json::from_slice(&out.stdout).expect("it is JSON");
    assert_eq!(found["models"][0]["model"], "small", "{found}");
}

#[test]
fn a_model_that_is_not_there_is_not_measured() {
    let config = folder("no-model").join("card.toml");
    fs::write(&config, CARD).expect("it can be written");
    let out = run(&["bench", "chta", "--config", &config.display().to_string()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("chat"), "{}", text(&out.stderr));
    let silent = run(&["bench", "chat", "--url", "http://127.0.0.1:1"]);
    assert_eq!(silent.status.code(), Some(1), "{}", text(&silent.stderr));
}
