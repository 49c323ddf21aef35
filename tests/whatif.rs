//! `windtunnel whatif`: a journal of simulated cards is met again by the simulation, and other settings are judged.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

const SCENARIO: &str = r#"
title = "requests that share noisy batches"
[run]
horizon = "20s"
warmup = "0s"
replications = 2
[[devices]]
name = "gpu"
[models.m]
batch = { max = 8 }
service = { kind = "batch", alpha = "4ms", beta = "1ms", noise = "exponential" }
[policy]
interactive_idle = "5ms"
background_max_starvation = "100ms"
[policy.classes.interactive]
max_queued = 40
[[workload]]
name = "requests"
model = "m"
PATIENCE
arrivals = { process = "poisson", rate = 400 }
[[workload]]
name = "documents"
class = "background"
model = "m"
kind = "embedding"
inputs = { uniform = [1, 40] }
arrivals = { process = "poisson", rate = 3 }
"#;

/// Two models that do not fit beside each other, a game that comes and goes, and a load that fails; with room for FAULT.
const MEMORY: &str = r#"
title = "two models, one card"
[run]
horizon = "400s"
warmup = "0s"
[[devices]]
name = "gpu"
memory = "16GiB"
load = { fixed = "500ms", bandwidth = "8GiB/s" }
stop = "200ms"
release = "100ms"
[models.chat]
footprint = "6GiB"
measured = true
slots = 1
service = { kind = "batch", alpha = "400ms", beta = "100ms", noise = "exponential" }
[models.agent]
footprint = "10GiB"
measured = true
slots = 1
service = { kind = "batch", alpha = "200ms", beta = "100ms", noise = "exponential" }
[policy]
hot_ttl = "2s"
min_residency = "2s"
[[faults]]
kind = "foreign_memory"
curve = [["100s", "2GiB"], ["150s", "0GiB"]]
[[faults]]
kind = "failed_load"
model = "agent"
at = "200s"
FAULT
[[workload]]
name = "user"
model = "chat"
arrivals = { process = "poisson", rate = 0.1 }
[[workload]]
name = "agents"
class = "background"
model = "agent"
arrivals = { process = "poisson", rate = 0.3 }
"#;

/// Generations side by side; TIMES are those of the card.
const SLOTS: &str = r#"
title = "four slots"
[run]
horizon = "400s"
warmup = "0s"
[[devices]]
name = "gpu"
[models.m]
slots = 4
service = { kind = "slots", TIMES }
[[workload]]
name = "requests"
model = "m"
prompt_tokens = { uniform = [50, 800] }
output_tokens = { lognormal = { median = 60, cv = 0.5 } }
arrivals = { process = "poisson", rate = 1.6 }
"#;

fn windtunnel(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_windtunnel")).args(arguments).output();
    command.expect("the program starts")
}

/// A scenario and the journal of it, in a folder of its own that goes with the test.
struct Recorded(PathBuf);

impl Recorded {
    /// Of clients with this patience, as TOML.
    fn new(name: &str, patience: &str) -> Recorded {
        Recorded::of(name, &SCENARIO.replace("PATIENCE", patience))
    }

    fn of(name: &str, scenario: &str) -> Recorded {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).expect("the folder is made");
        let recorded = Recorded(folder);
        fs::write(recorded.path("scenario.toml"), scenario).expect("the scenario is written");
        let out = windtunnel(&["sim", &recorded.path("scenario.toml"), "--journal", &recorded.path("run.jsonl")]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        recorded
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the path is text").to_owned()
    }

    fn whatif(&self, arguments: &[&str]) -> Value {
        let journal = self.path("run.jsonl");
        let out = windtunnel(&[&["whatif", &journal, "--format", "json"], arguments].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("one JSON object")
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // What is left behind lies in the build folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn close(class: &Value) {
    for figure in ["wait_p50", "wait_p99", "latency_p50", "latency_p99"] {
        let (recorded, simulated) = (&class["fidelity"]["recorded"][figure], &class["fidelity"]["simulated"][figure]);
        let (recorded, simulated) = (number(recorded), number(simulated));
        assert!(
            (recorded - simulated).abs() <= 0.02 * recorded,
            "{figure}: {recorded} recorded, {simulated} simulated"
        );
    }
}

#[test]
fn without_a_change_nothing_differs_and_the_recording_is_met() {
    let recorded = Recorded::new("whatif-same", "");
    for arguments in [vec![], vec!["--scenario".to_owned(), recorded.path("scenario.toml")]] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let json = recorded.whatif(&arguments);
        let classes = json["classes"].as_array().expect("a list");
        assert_eq!(classes.len(), 2);
        for class in classes {
            assert_eq!(class["verdict"], "same", "{class}");
            assert_eq!((number(&class["latency"]["mean"]), number(&class["completed"]["mean"])), (0.0, 0.0));
            assert_eq!(class["latency"]["blocks"], 20);
            close(class);
        }
        assert!(number(&classes[0]["fidelity"]["requests"]) > 10_000.0, "{}", classes[0]);
    }
}

#[test]
fn twice_the_speed_is_better_and_half_of_it_worse() {
    let recorded = Recorded::new("whatif-speed", "");
    for (alpha, beta, verdict) in [("2ms", "0.5ms", "better"), ("8ms", "2ms", "worse")] {
        let service = format!("models.m.service={{kind=\"batch\",alpha=\"{alpha}\",beta=\"{beta}\"}}");
        let json = recorded.whatif(&["--set", &service]);
        let class = &json["classes"][0];
        assert_eq!(class["verdict"], verdict, "{class}");
        let (low, high) = (number(&class["latency"]["low"]), number(&class["latency"]["high"]));
        assert!(if verdict == "better" { high < 0.0 } else { low > 0.0 }, "{class}");
    }
}

#[test]
fn what_is_not_known_is_said() {
    let recorded = Recorded::new("whatif-remarks", "patience = { exponential = \"1s\" }");
    let json = recorded.whatif(&["--set", "policy.classes.interactive.max_queued=unlimited"]);
    let remarks = json["remarks"].to_string();
    for part in [
        "a step never ran to its end: its service is drawn",
        "clients gave up and do so again",
        "--scenario gives the cards",
    ] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
    assert!(number(&json["drawn"]["residuals"]) > 0.0);
    let table = windtunnel(&["whatif", &recorded.path("run.jsonl"), "--set", "devices.gpu.count=2", "--quiet"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("interactive") && table.contains("better") && table.contains("latency p99"), "{table}");
    for (arguments, part) in [
        (["--set", "workload.requests.deadline=1s"], "requests are those of the journal"),
        (["--set", "policy.background_shar=0.1"], "did you mean `background_share`"),
        (["--format", "csv"], "prints a table or JSON"),
    ] {
        let out = windtunnel(&[&["whatif", &recorded.path("run.jsonl")], &arguments[..]].concat());
        assert_eq!(out.status.code(), Some(2));
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn loads_evictions_and_other_programs_are_met_again() {
    let recorded = Recorded::of("whatif-memory", &MEMORY.replace("FAULT", ""));
    let scenario = recorded.path("scenario.toml");
    let again = recorded.whatif(&["--scenario", &scenario]);
    for class in again["classes"].as_array().expect("a list") {
        assert_eq!(class["verdict"], "same", "{class}");
        assert!(number(&class["fidelity"]["requests"]) > 20.0, "{class}");
        close(class);
    }
    // A card that holds both: nobody waits for a load any more, and the median shows it.
    let roomy = recorded.whatif(&["--scenario", &scenario, "--set", "devices.gpu.memory=24GiB"]);
    let user = &roomy["classes"][0];
    assert_eq!((&user["class"], &user["verdict"]), (&"interactive".into(), &"better".into()), "{user}");
    let median = &user["difference"]["latency_p50"];
    let (by, low, high) = (number(&median["by"]), number(&median["low"]), number(&median["high"]));
    assert!(low <= by && by <= high && high < 0.0, "{median}");
    let table = windtunnel(&[
        "whatif",
        &recorded.path("run.jsonl"),
        "--scenario",
        &scenario,
        "--quiet",
        "--set",
        "devices.gpu.memory=24GiB",
    ]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.lines().any(|line| line.contains("latency p50") && line.contains(" to -")), "{table}");
}

#[test]
fn what_a_slow_hour_did_to_requests_is_not_done_to_them_again() {
    let fault = "[[faults]]\nkind = \"slow_device\"\nfactor = 3\nat = \"50s\"\nfor = \"200s\"\n[[faults]]\nkind = \"crash\"\nmodel = \"agent\"\nat = \"300s\"";
    let recorded = Recorded::of("whatif-faults", &MEMORY.replace("FAULT", fault));
    let again = recorded.whatif(&["--scenario", &recorded.path("scenario.toml")]);
    let classes = again["classes"].as_array().expect("a list");
    classes.iter().for_each(|class| assert_eq!(class["verdict"], "same", "{class}"));
    close(&classes[0]);
    let remarks = again["remarks"].to_string();
    for part in
        ["faults of the scenario that strike work are left out", "a process failed; failures are not played again"]
    {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
}

#[test]
fn what_was_a_generations_own_makes_up_for_a_model_that_is_off() {
    let times = |factor: f64| {
        let [fixed, token, alpha, beta] = [20.0, 0.5, 10.0, 4.0].map(|ms| ms * factor);
        let times = format!(
            "prefill_fixed = \"{fixed}ms\", prefill_per_token = \"{token}ms\", decode_alpha = \"{alpha}ms\", decode_beta = \"{beta}ms\""
        );
        SLOTS.replace("TIMES", &times)
    };
    let recorded = Recorded::of("whatif-slots", &times(1.0));
    // Told that everything takes half as long, each request is found to take twice what the model says.
    let off = recorded.path("off.toml");
    fs::write(&off, times(0.5)).expect("the scenario is written");
    let again = recorded.whatif(&["--scenario", &off]);
    let class = &again["classes"][0];
    assert!(number(&class["fidelity"]["requests"]) > 500.0, "{class}");
    close(class);
    let faster = recorded.whatif(&[
        "--scenario",
        &off,
        "--set",
        "models.m.service={kind=\"slots\",prefill_fixed=\"5ms\",prefill_per_token=\"0.125ms\",decode_alpha=\"2.5ms\",decode_beta=\"1ms\"}",
    ]);
    let class = &faster["classes"][0];
    assert_eq!(class["verdict"], "better", "{class}");
    let (was, is) = (number(&class["again"]["latency_p50"]), number(&class["changed"]["latency_p50"]));
    assert!(is < 0.55 * was, "half of every time: {was} and {is}");
}

/// A daemon calls its processor `cpu`, and its models are loaded when somebody asks for them.
#[test]
fn a_device_without_a_number_and_the_loads_on_it_are_met_again() {
    let scenario = SCENARIO
        .replace("PATIENCE", "")
        .replace("name = \"gpu\"", "name = \"gpu\"\nload = { fixed = \"3s\" }")
        .replace("[models.m]", "[models.m]\nresident = false")
        .replace("max_queued = 40", "max_queued = \"unlimited\"");
    let recorded = Recorded::of("whatif-cpu", &scenario);
    let journal = fs::read_to_string(recorded.path("run.jsonl")).expect("the journal is read");
    assert!(journal.contains("\"gpu0\""), "the card is named in the journal");
    fs::write(recorded.path("run.jsonl"), journal.replace("\"gpu0\"", "\"cpu\"")).expect("the journal is written");
    let again = recorded.whatif(&[]);
    let remarks = again["remarks"].to_string();
    assert!(remarks.contains("loads take as long as they did, whatever loads beside them: m on cpu0 3s"), "{remarks}");
    assert!(!remarks.contains("NOT MATCHED"), "{remarks}");
    for class in again["classes"].as_array().expect("a list") {
        assert!(number(&class["fidelity"]["recorded"]["wait_p99"]) > 2.0, "requests wait for the load: {class}");
        close(class);
    }
    let other = recorded.path("other.toml");
    fs::write(&other, scenario.replace("name = \"gpu\"", "name = \"elsewhere\"")).expect("the scenario is written");
    let lost = recorded.whatif(&["--scenario", &other])["remarks"].to_string();
    assert!(lost.contains("NOT MATCHED") && lost.contains("m on cpu"), "{lost}");
}
