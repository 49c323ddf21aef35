//! `windtunnel fuzz` on a daemon's configuration: what it does not say is found out or assumed, and said.

#[path = "../live/tests/fixtures/mod.rs"]
mod fixtures;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use fixtures::{Folder, catalogue};
use serde_json::{Value, json};
use windtunnel_config::DaemonFile;
use windtunnel_core::{Bytes, DeviceId, ModelId, Ppm, Profile, Span};
use windtunnel_live::profiles::{Store, folder as profiles_of, subjects};

/// What a user might serve: every kind of model, no service anywhere, keys, secrets, and a file that is not there.
const CONFIGURATION: &str = r#"
[server]
llama_server = "bin/llama-server"
state_dir = "state"
args = ["--api-key", "shibboleth"]
[[keys]]
name = "phone"
key = "shibboleth"
[[devices]]
name = "gpu"
backend = "cuda"
memory = "16GiB"
[models.qwen]
gguf = "models/qwen3-14b.gguf"
ctx = 8192
slots = 2
capabilities = ["chat", "tools"]
env = { TOKEN = "shibboleth" }
[models.gone]
gguf = "models/gone.gguf"
[models.vectors]
footprint = "512MiB"
batch = { max = 16 }
capabilities = ["embedding"]
[models.own]
footprint = "3GiB"
service = { kind = "slots", decode_alpha = "5ms" }
predicted = { decode_alpha = "6ms" }
[families.any]
variants = [{ model = "qwen", quality = "preferred" }, { model = "own", quality = "compact" }]
[policy]
background_share = 0.25
"#;

fn fuzz(path: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    // Nothing that the user of this machine has learned or configured may matter.
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    command.arg("fuzz").arg(path).args(["--seed", "1", "--quiet"]).args(more).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn searched(path: &Path, worlds: &str) -> Value {
    let out = fuzz(path, &["--worlds", worlds, "--format", "json"]);
    assert_eq!(out.status.code(), Some(0), "{}{}", text(&out.stdout), text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap_or_else(|wrong| panic!("{wrong}: {}", text(&out.stdout)))
}

fn written(name: &str, content: &str) -> Folder {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.join("models")).expect("a folder for models can be made");
    catalogue::qwen3_14b().write(&folder.join("models/qwen3-14b.gguf"));
    fs::write(folder.join("my.toml"), content).expect("a file can be written");
    folder
}

fn lines(found: &Value) -> Vec<String> {
    let assumed = found["assumed"].as_array().expect("a list");
    assumed.iter().map(|line| line.as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_daemons_configuration_is_searched_and_what_it_does_not_say_is_said() {
    let folder = written("fuzz-daemon", CONFIGURATION);
    let found = searched(&folder.join("my.toml"), "12");
    assert!(found["steps"].as_u64() > Some(1_000) && found["completed"].as_u64() > Some(10), "{found:#}");
    assert!(found["loads"].as_u64() > Some(0) && found["evictions"].as_u64() > Some(0), "{found:#}");
    let lines = lines(&found);
    let of = |start: &str| -> Vec<String> {
        lines.iter().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect()
    };
    let qwen = of("models.qwen: ");
    assert!(qwen[0].starts_with("takes ") && qwen[0].ends_with(", as its file tells"), "{qwen:?}");
    assert!(qwen[1].starts_with("a token takes 0.03"), "in proportion to its size: {qwen:?}");
    let gone = of("models.gone: ");
    assert_eq!(gone[0], "takes 4096MiB; its file could not be read");
    assert_eq!(
        gone[1],
        "a token takes 0.02s, one of a prompt 0.0005s, as a model of ten billion parameters takes on a common card"
    );
    let vectors = of("models.vectors: ");
    assert_eq!(vectors.len(), 1, "its footprint is its own: {vectors:?}");
    assert!(vectors[0].starts_with("a batch takes 0.000417s and 0.000417s an input, "), "{vectors:?}");
    assert_eq!(of("models.own: "), [""; 0]);
    assert_eq!(
        of("devices.gpu: "),
        [
            "loads take 1s and read 2GiB/s, since none was seen",
            "processes end within 200ms of being asked, their memory is free 100ms later"
        ]
    );
    assert_eq!(lines.len(), 7, "{lines:#?}");
}

#[test]
fn what_earlier_runs_learned_is_taken_for_the_truth() {
    let folder = written("fuzz-learned", CONFIGURATION);
    let path = folder.join("my.toml");
    let daemon = DaemonFile::load(&path).and_then(|file| file.resolve(&[], &[])).expect("a configuration");
    let known = subjects(&daemon, |_| None);
    let subject = &known[&(ModelId(0), DeviceId(0))];
    let (mut store, _) = Store::open(&profiles_of(&folder.join("state"))).expect("a store");
    let profile = Profile {
        model: ModelId(0),
        device: DeviceId(0),
        factor: Ppm::new(3_000_000),
        observations: 40,
        footprint: Some(Bytes::from_mib(9_000)),
        load_time: Some(Span::from_secs(9)),
    };
    store.put(subject, &profile).expect("a profile can be kept");
    let lines = lines(&searched(&path, "2"));
    for expected in [
        "models.qwen: takes 9000MiB, as was measured",
        "models.qwen: a token takes 0.06s, one of a prompt 0.0015s, as earlier runs have shown",
        "devices.gpu: loads read 1000 MiB a second, as the slowest did that was seen",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
    }
}

#[test]
fn a_configuration_without_devices_is_searched_on_those_of_this_machine() {
    let folder = written("fuzz-no-devices", "[models.m]\ngguf = 'models/qwen3-14b.gguf'\nctx = 4096\n");
    let out = fuzz(&folder.join("my.toml"), &["--worlds", "3"]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}{}", text(&out.stderr));
    assert!(said.starts_with("assumed: models.m: takes "), "{said}");
    assert!(said.contains("assumed: devices.") && said.ends_with("every rule holds\n"), "{said}");
}

#[test]
fn settings_are_those_of_a_configuration_and_mistakes_are_told_at_their_place() {
    let folder = written("fuzz-settings", CONFIGURATION);
    let path = folder.join("my.toml");
    let set = searched_with(&path, &["--set", "models.gone.footprint=1GiB"]);
    assert!(!lines(&set).iter().any(|line| line.contains("could not be read")), "{set:#}");
    let unknown = fuzz(&path, &["--worlds", "1", "--set", "server.bodi_limit=1MiB"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `body_limit`?"), "{}", text(&unknown.stderr));
    fs::write(&path, CONFIGURATION.replace("slots = 2", "slats = 2")).expect("a file can be written");
    let wrong = fuzz(&path, &["--worlds", "1"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("did you mean `slots`?"), "{}", text(&wrong.stderr));
}

fn searched_with(path: &Path, more: &[&str]) -> Value {
    let out = fuzz(path, &[&["--worlds", "1", "--format", "json"], more].concat());
    assert_eq!(out.status.code(), Some(0), "{}{}", text(&out.stdout), text(&out.stderr));
    let found: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(found["found"], json!([]));
    found
}

/// What holds for a search holds for a scenario that starts from the configuration, but for what it says itself.
#[test]
fn a_scenario_starts_from_a_daemons_configuration() {
    let folder = written("base-daemon", CONFIGURATION);
    let scenario = "base = 'my.toml'\n[run]\nhorizon = '60s'\n[models.gone]\nfootprint = '2GiB'\nservice = { kind = 'slots', decode_alpha = '3ms' }\n[[workload]]\nname = 'w'\nmodel = 'qwen'\nprompt_tokens = 100\noutput_tokens = 20\narrivals = { process = 'poisson', rate = 0.2 }\n[[workload]]\nname = 'g'\nclass = 'background'\nmodel = 'gone'\noutput_tokens = 20\narrivals = { process = 'poisson', rate = 0.2 }\n";
    fs::write(folder.join("s.toml"), scenario).expect("a file can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    let out = command.arg("sim").arg(folder.join("s.toml")).args(["--format", "json"]).output();
    let out = out.expect("the program starts");
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let report: Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    assert!(report["workload"]["w"]["completed"]["mean"].as_f64() > Some(1.0), "{}", report["workload"]["w"]);
    assert!(report["model"]["qwen"]["loads"]["mean"].as_f64() > Some(0.0), "{}", report["model"]["qwen"]);
    for part in ["my.toml assumed: models.qwen: a token takes 0.03", "assumed: devices.gpu: loads take 1s", "bench"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(!said.contains("models.gone") && !said.contains("models.own"), "what is said is not assumed: {said}");
}
