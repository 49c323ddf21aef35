//! Models that name their files: what they take in scenarios, and the commands that look at them and at a daemon's
//! configuration.

#[path = "../live/tests/fixtures/mod.rs"]
mod fixtures;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use fixtures::{Folder, catalogue};
use serde_json::Value;

fn windtunnel(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    // Nothing that the user of this machine has learned or configured may matter.
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    command.args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What it printed, as JSON; it has to end with `code`.
fn json(arguments: &[&str], code: i32) -> Value {
    let out = windtunnel(&[arguments, &["--format", "json"]].concat());
    assert_eq!(out.status.code(), Some(code), "{}{}", text(&out.stdout), text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap_or_else(|wrong| panic!("{wrong}: {}", text(&out.stdout)))
}

/// A folder with a model whose footprint on a card is known to be 9732 MiB, give or take, and a file beside it.
fn folder(name: &str, file: &str, content: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    fs::create_dir_all(folder.join("models")).expect("a folder for models can be made");
    catalogue::qwen3_14b().write(&folder.join("models/qwen3-14b.gguf"));
    let path = folder.join(file);
    fs::write(&path, content).expect("a file can be written");
    let path = path.display().to_string();
    (folder, path)
}

const SCENARIO: &str = r#"
run = { horizon = "20s", replications = 1, drain = true }
[[devices]]
name = "gpu"
memory = "16GiB"
load = { bandwidth = "3GiB/s" }
[models.qwen]
gguf = "models/qwen3-14b.gguf"
ctx = 8192
slots = 2
args = ["-fa", "on"]
service = { kind = "slots", decode_alpha = "8ms" }
[[workload]]
name = "chat"
model = "qwen"
output_tokens = 20
arrivals = { process = "constant", rate = 1 }
[[sweep]]
key = "models.qwen.ctx"
values = [8192, 16384]
[[expect]]
metric = "device.gpu0.memory_peak"
between = ["9.3GiB", "10.5GiB"]
"#;

/// What a model took at most, in MiB.
fn peak(report: &Value) -> f64 {
    report["device"]["gpu0"]["memory_peak"]["mean"].as_f64().expect("a peak is a number") / f64::from(1 << 20)
}

#[test]
fn a_model_file_stands_for_its_footprint_in_every_command() {
    let (_folder, path) = folder("every-command", "scenario.toml", SCENARIO);
    let simulated = peak(&json(&["sim", &path], 0));
    assert!((9_635.0..10_705.0).contains(&simulated), "{simulated} MiB for 9732");
    let tested = windtunnel(&["test", &path]);
    assert_eq!(tested.status.code(), Some(0), "{}{}", text(&tested.stdout), text(&tested.stderr));
    let swept = json(&["sweep", &path], 0);
    let peaks: Vec<f64> = swept["points"].as_array().expect("points").iter().map(peak).collect();
    let [small, large] = peaks[..] else { panic!("two points: {swept}") };
    // 8 Ki tokens more at 160 KiB each.
    assert!((small - simulated).abs() < 1.0 && (large - small - 1_280.0).abs() < 64.0, "{small} {large}");
    let fuzzed = windtunnel(&["fuzz", &path, "--worlds", "2", "--seed", "1", "--quiet"]);
    assert_eq!(fuzzed.status.code(), Some(0), "{}{}", text(&fuzzed.stdout), text(&fuzzed.stderr));
    let as_it_is = windtunnel(&["fuzz", "--as-is", &path]);
    assert_eq!(as_it_is.status.code(), Some(0), "{}{}", text(&as_it_is.stdout), text(&as_it_is.stderr));
    let set = peak(&json(&["sim", &path, "--set", "models.qwen.footprint=1GiB"], 0));
    assert!((set - 1024.0).abs() < 1.0, "a footprint that is given counts: {set}");
}

#[test]
fn a_recorded_run_is_simulated_again_with_the_files_of_its_scenario() {
    let (folder, path) = folder("whatif", "scenario.toml", SCENARIO);
    let journal = folder.join("run.jsonl").display().to_string();
    assert_eq!(windtunnel(&["sim", &path, "--journal", &journal, "--quiet"]).status.code(), Some(0));
    let out = windtunnel(&["whatif", &journal, "--scenario", &path, "--set", "policy.interactive_idle=1s", "--quiet"]);
    assert_eq!(out.status.code(), Some(0), "{}{}", text(&out.stdout), text(&out.stderr));
}

#[test]
fn a_model_file_that_tells_nothing_is_said_at_its_line() {
    for (from, to, told) in [
        ("models/qwen3-14b.gguf", "models/none.gguf", "models/none.gguf: byte 0: the file cannot be read"),
        ("models/qwen3-14b.gguf", "scenario.toml", "the file begins with "),
        ("\"-fa\", \"on\"", "\"-ctk\", \"q9\"", "`-ctk` is given `q9`, and should be one of"),
    ] {
        let (_folder, path) = folder("wrong-file", "scenario.toml", &SCENARIO.replacen(from, to, 1));
        let out = windtunnel(&["sim", &path]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        let place = format!("{path}:8:8: `models.qwen.gguf` gives no footprint: ");
        assert!(said.contains(&place) && said.contains(told), "{said}");
    }
}

#[test]
fn a_bases_model_files_lie_beside_the_base() {
    let base = "[server]\nlisten = '127.0.0.1:1'\nargs = ['-c', '65536']\n\
        [models.qwen]\ngguf = 'models/qwen3-14b.gguf'\n";
    let (folder, _) = folder("base", "config.toml", base);
    fs::create_dir_all(folder.join("tests")).expect("a folder can be made");
    let scenario = SCENARIO.replace("gguf = \"models/qwen3-14b.gguf\"\n", "").replace("ctx = 8192\n", "");
    let path = folder.join("tests/scenario.toml");
    fs::write(&path, format!("base = '../config.toml'\n{scenario}")).expect("a file can be written");
    let report = json(&["sim", &path.display().to_string(), "--set", "devices.gpu.memory=40GiB"], 0);
    assert!(peak(&report) > 17_000.0, "the context is that of the base: {}", peak(&report));
}

const CONFIGURATION: &str = r#"
[server]
llama_server = "bin/llama-server"
state_dir = "state"
[[keys]]
name = "phone"
file = "phone.key"
[[devices]]
name = "gpu"
backend = "simulated"
memory = "16GiB"
[models.qwen]
gguf = "models/qwen3-14b.gguf"
ctx = 8192
slots = 2
aliases = ["gpt-4o"]
[models.small]
footprint = "2GiB"
[models.large]
footprint = "12GiB"
"#;

#[test]
fn models_are_listed_with_what_they_take() {
    let (_folder, path) = folder("models", "config.toml", CONFIGURATION);
    let listed = json(&["models", "--config", &path], 0);
    let models = listed["models"].as_array().expect("a list").clone();
    let told = |at: usize, key: &str| models[at][key].clone();
    assert_eq!(models.len(), 3);
    assert_eq!(
        (told(0, "model"), told(0, "architecture"), told(0, "context")),
        ("qwen".into(), "qwen3".into(), 8192.into())
    );
    assert_eq!((told(0, "from"), told(1, "from")), ("estimated".into(), "configured".into()));
    assert_eq!(told(1, "footprint_bytes").as_u64(), Some(2 << 30));
    let csv = text(&windtunnel(&["models", "--config", &path, "--format", "csv"]).stdout);
    assert!(csv.starts_with("model,device,architecture,") && csv.lines().count() == 4, "{csv}");
    let unknown = windtunnel(&["models", "--config", &path, "qwem"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("has no model \"qwem\"; did you mean `qwen`?"), "{}", text(&unknown.stderr));
}

#[test]
fn a_footprint_is_explained_row_by_row() {
    let (folder, path) = folder("explain", "config.toml", CONFIGURATION);
    let by_alias = json(&["models", "--config", &path, "--explain", "gpt-4o"], 0);
    let model = &by_alias["models"][0];
    let rows = model["rows"].as_array().expect("rows");
    let device: u64 = rows.iter().filter(|row| row["side"] == "device").filter_map(|row| row["bytes"].as_u64()).sum();
    assert_eq!(Some(device), model["charged_bytes"].as_u64());
    let file = folder.join("models/qwen3-14b.gguf").display().to_string();
    let of_file = |more: &[&str]| {
        let arguments = [&["models", "--explain", "--backend", "cuda", file.as_str()], more].concat();
        let out = windtunnel(&arguments);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let said = of_file(&["--", "-c", "8192", "-np", "2"]);
    assert!(said.starts_with("qwen3-14b on cuda: qwen3, 8192 tokens in 2 slots\n"), "{said}");
    assert!(said.contains("device      1280.00 MiB  cache, full"), "{said}");
    assert!(of_file(&["--", "-c", "4096"]).contains("640.00 MiB  cache, full"));
    let refused = windtunnel(&["models", "--config", &path, "qwen", "--", "-c", "1"]);
    assert_eq!(refused.status.code(), Some(2));
    let missing = windtunnel(&["models", "no/such.gguf"]);
    assert_eq!((missing.status.code(), text(&missing.stderr).contains("no/such.gguf")), (Some(2), true));
}

#[test]
fn check_says_what_fits_with_what_and_what_is_missing() {
    let (folder, path) = folder("check", "config.toml", CONFIGURATION);
    let checked = json(&["check", &path], 1);
    let missing = folder.join("phone.key").display().to_string();
    assert_eq!(checked["problems"], serde_json::json!([format!("keys.phone needs {missing}, which does not exist")]));
    let together = &checked["together"][0];
    assert_eq!((together["device"].clone(), together["budget_bytes"].clone()), ("gpu0".into(), (31_u64 << 29).into()));
    let fits: Vec<(String, bool)> = together["pairs"]
        .as_array()
        .expect("pairs")
        .iter()
        .map(|pair| (pair["models"].to_string(), pair["fits"].as_bool().expect("fits or not")))
        .collect();
    let expected = [
        (r#"["qwen","small"]"#.to_owned(), true),
        (r#"["qwen","large"]"#.to_owned(), false),
        (r#"["small","large"]"#.to_owned(), true),
    ];
    assert_eq!(fits, expected);
    assert_eq!(together["side_by_side"]["models"], serde_json::json!(["qwen", "small"]));
    fs::write(folder.join("phone.key"), "secret\n").expect("a key can be written");
    let out = windtunnel(&["check", &path]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.ends_with("all is well\n") && said.contains("qwen and large take turns: together "), "{said}");
    assert!(!said.contains("secret"));
}

#[test]
fn check_names_runtimes_files_and_models_that_cannot_be_had() {
    let configuration = CONFIGURATION
        .replace("file = \"phone.key\"", "key = \"s\"")
        .replace("backend = \"simulated\"", "backend = \"cpu\"")
        .replace("memory = \"16GiB\"", "memory = \"6GiB\"")
        .replace("models/qwen3-14b", "models/none");
    let (folder, path) = folder("problems", "config.toml", &configuration);
    let problems = json(&["check", &path], 1)["problems"].clone();
    let problems: Vec<&str> = problems.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let runtime = folder.join("bin/llama-server").display().to_string();
    let file = folder.join("models/none.gguf").display().to_string();
    assert_eq!(problems.len(), 3, "{problems:#?}");
    assert!(problems[0].starts_with(&format!("the runtime {runtime} is not there")), "{problems:#?}");
    assert!(problems[1].starts_with(&format!("models.qwen on gpu0: {file}: byte 0: ")), "{problems:#?}");
    assert_eq!(problems[2], "models.large fits no device, even alone");
}

#[test]
fn check_sees_that_one_device_has_two_names() {
    let twice = "[[devices]]\nname = 'a'\nbackend = 'cpu'\n[[devices]]\nname = 'b'\nbackend = 'cpu'\n\
        [models.m]\nfootprint = '1MiB'\n[server]\nllama_server = '/bin/sh'\nstate_dir = 'state'\n";
    let (_folder, path) = folder("twice", "config.toml", twice);
    let problems = json(&["check", &path], 1)["problems"].to_string();
    assert!(problems.starts_with("[\"device b0: another device of the configuration is the same one"), "{problems}");
}

#[test]
fn a_configuration_that_is_not_there_is_named_with_its_places() {
    let nowhere = Folder::new("nowhere");
    let out = Command::new(env!("CARGO_BIN_EXE_windtunnel"))
        .arg("check")
        .current_dir(nowhere.join(""))
        .env("HOME", nowhere.join("home"))
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .expect("the program starts");
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        said.contains("there is none at windtunnel.toml or ") && said.contains("home/.config/windtunnel/config.toml"),
        "{said}"
    );
}

#[test]
fn profiles_are_listed_and_pruned() {
    let (folder, path) = folder("profiles", "config.toml", CONFIGURATION);
    let profiles: PathBuf = folder.join("state/profiles");
    let empty = windtunnel(&["profiles", "--config", &path]);
    assert_eq!((empty.status.code(), text(&empty.stdout)), (Some(0), "no model was learned of yet\n".to_owned()));
    fs::create_dir_all(&profiles).expect("a folder can be made");
    fs::write(profiles.join("torn.json"), "{").expect("a file can be written");
    let out = windtunnel(&["profiles", "--config", &path]);
    assert!(text(&out.stderr).contains("torn.json is not used: "), "{}", text(&out.stderr));
    let state = folder.join("state").display().to_string();
    let pruned = json(&["profiles", "prune", "--state-dir", &state], 0);
    let removed = pruned["profiles"][0]["removed"].as_str().expect("a path").to_owned();
    assert!(removed.ends_with("torn.damaged") && !PathBuf::from(removed).exists());
}
