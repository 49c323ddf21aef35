//! `windtunnel load` and `windtunnel sweep --live` as users meet them, against an endpoint that answers as it is told.

#[path = "../live/tests/endpoint/mod.rs"]
mod endpoint;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use endpoint::{Asked, Endpoint, tokens, whole};
use serde_json::Value;

/// Chats and documents at random moments, and clients that think.
const SCENARIO: &str = r#"
title = "a mixed load"
[run]
horizon = "1500ms"
warmup = "0s"
seed = 5
replications = 3
drain = true
[[devices]]
name = "gpu"
[models.m]
service = { kind = "slots", decode_alpha = "1us" }
slots = 4
[models.vectors]
batch = { max = 32 }
service = { kind = "batch", alpha = "1us", beta = "1us" }
[[workload]]
name = "chat"
model = "m"
prompt_tokens = { lognormal = { median = 20, cv = 1.0 } }
output_tokens = { uniform = [1, 4] }
arrivals = { process = "poisson", rate = 60 }
[[workload]]
name = "documents"
class = "background"
model = "vectors"
kind = "embedding"
inputs = { uniform = [1, 9] }
prompt_tokens = 5
arrivals = { process = "constant", rate = 20 }
[[workload]]
name = "agents"
model = "m"
output_tokens = 2
arrivals = { process = "clients", count = 4, think = { exponential = "10ms" } }
"#;

fn windtunnel(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_windtunnel")).args(arguments).output();
    command.expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|wrong| panic!("{wrong}: {}", text(&out.stderr)))
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the folder is made");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the path is text").to_owned()
    }

    fn file(&self, name: &str, content: &str) -> String {
        fs::write(self.path(name), content).expect("the file is written");
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind lies in the build folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SOON: Duration = Duration::from_millis(2);

/// Answers everything that is asked.
fn willing(_: usize, asked: &Asked) -> endpoint::Answer {
    match asked.body["input"].as_array() {
        None => tokens(SOON, "", asked),
        Some(inputs) => {
            let data = vec!["{}"; inputs.len()].join(",");
            whole(SOON, "200 OK", "", &format!(r#"{{"data":[{data}]}}"#))
        }
    }
}

/// The submissions in a journal that are not of clients: when, by whom, and how large.
fn submissions(journal: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(journal).expect("the journal is there");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let submitted = records.take_while(|record| record.get("end").is_none()).filter_map(|record| {
        let submission = &record["input"]["input"]["submitted"]["submission"];
        let open = submission.is_object() && submission["client"].is_null();
        open.then(|| {
            let sizes = (&submission["inputs"], &submission["prompt_tokens"], &submission["class"]);
            format!("{} {} {sizes:?}", record["input"]["t"], submission["label"])
        })
    });
    submitted.collect()
}

#[test]
fn a_scenario_is_sent_with_the_draws_of_the_simulator() {
    let folder = Folder::new("load-draws");
    // In the journal of a client every request has a class.
    let scenario =
        folder.file("s.toml", &SCENARIO.replace("name = \"chat\"", "name = \"chat\"\nclass = \"interactive\""));
    let (simulated, seen) = (folder.path("sim.jsonl"), folder.path("seen.jsonl"));
    let out = windtunnel(&["sim", &scenario, "--journal", &simulated, "--set", "run.replications=1"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let endpoint = Endpoint::start(usize::MAX, willing);
    let report = folder.path("report");
    let load = ["load", "--url", &endpoint.url, &scenario, "--journal", &seen, "--report", &report, "--format", "json"];
    let out = windtunnel(&load);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let (drawn, sent) = (submissions(&simulated), submissions(&seen));
    assert!(drawn.len() > 80, "{}", drawn.len());
    assert_eq!(sent, drawn);
    let json = json(&out);
    assert_eq!(json["source"], "live");
    assert_eq!(json["workload"]["chat"]["completed"], json["workload"]["chat"]["offered"]);
    assert_eq!(json["invariants"]["violated"], 0, "{}", json["invariants"]);
    assert!(json["remarks"].to_string().contains("written by a load generator"), "{}", json["remarks"]);
    let again = windtunnel(&["report", &seen, "--format", "json"]);
    assert_eq!(text(&again.stdout), text(&out.stdout), "the journal has the same figures");
    assert_eq!(fs::read_to_string(format!("{report}/report.json")).expect("a report"), text(&out.stdout));
    let tokens: BTreeSet<u64> = endpoint.asked().iter().filter_map(|asked| asked.body["max_tokens"].as_u64()).collect();
    assert_eq!(tokens, BTreeSet::from([1, 2, 3, 4]));
}

#[test]
fn clients_of_a_closed_loop_are_never_more_than_they_are() {
    let folder = Folder::new("load-clients");
    let open = SCENARIO.find("[[workload]]\nname = \"chat\"").expect("it is there");
    let closed = SCENARIO.find("[[workload]]\nname = \"agents\"").expect("it is there");
    let scenario = folder.file("s.toml", &format!("{}{}", &SCENARIO[..open], &SCENARIO[closed..]));
    let endpoint = Endpoint::start(usize::MAX, willing);
    let out = windtunnel(&["load", "--url", &endpoint.url, &scenario, "--format", "json"]);
    let json = json(&out);
    let completed = json["workload"]["agents"]["completed"]["mean"].as_f64().expect("a count");
    assert!(completed > 40.0 && completed == endpoint.asked().len() as f64, "{completed}");
    assert!((2..=4).contains(&endpoint.most_at_once()), "{}", endpoint.most_at_once());
}

#[test]
fn one_workload_needs_no_file() {
    let endpoint = Endpoint::start(usize::MAX, |number, asked| match number {
        0 => whole(SOON, "429 Too Many Requests", "x-windtunnel-reason: queue_full\r\n", "{}"),
        _ => willing(number, asked),
    });
    let load = ["load", "--url", &format!("{}/v1", endpoint.url), "--model", "org/m:q4", "--for", "1s", "--rate", "40"];
    let more = ["--prompt-tokens", "7", "--output-tokens", "3", "--plain", "--cache", "on", "--key", "secret"];
    let out = windtunnel(&[&load[..], &more].concat());
    let table = text(&out.stdout);
    assert!(
        out.status.success() && table.contains("live, seed 1, 1 run, ended by horizon"),
        "{table} {}",
        text(&out.stderr)
    );
    assert!(table.contains("queue full") && table.contains("load generator: requests were sent"), "{table}");
    let asked = endpoint.asked();
    assert!(asked.len() > 10, "{}", asked.len());
    assert!(asked.iter().all(|one| one.path == "/v1/chat/completions" && one.headers.contains("bearer secret")));
    assert!(asked.iter().all(|one| one.body["model"] == "org/m:q4" && one.body.get("ignore_eos").is_none()));
    assert!(asked.iter().all(|one| one.body["messages"] == asked[0].body["messages"]), "they begin alike");
}

#[test]
fn what_cannot_be_done_is_said_at_once() {
    let folder = Folder::new("load-wrong");
    let scenario = folder.file("s.toml", SCENARIO);
    let http = "http://127.0.0.1:9";
    for (arguments, part) in [
        (vec!["load", "--url", "https://127.0.0.1:9", &scenario], "https"),
        (vec!["load", "--url", http, "--model", "m"], "is the server running?"),
        (vec!["load", "--url", http], "--model"),
        (vec!["load", "--url", http, "--model", "m", "--key-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (vec!["load", "--url", http, "--model", "m", "--timeout", "soon"], "--timeout soon"),
        (vec!["load", "--url", http, &scenario, "--rate", "3"], "--rate"),
        (vec!["load", "--url", http, &scenario, "--journal", &scenario], "would overwrite the scenario"),
        (vec!["sweep", &scenario, "--key", "x"], "--live"),
        (vec!["sweep", &scenario, "--live", http, "--devices", "1,2"], "--devices"),
        (vec!["sweep", "--live", http], "devices.gpu.count"),
    ] {
        let out = windtunnel(&arguments);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_to_string(&scenario).expect("it is there"), SCENARIO);
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let endpoint = Endpoint::start(usize::MAX, |number, asked| match number {
        3 => tokens(Duration::from_secs(60), "", asked),
        _ => willing(number, asked),
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
    command.args(["load", "--url", &endpoint.url, "--model", "m", "--rate", "200", "--for", "10m", "--format", "json"]);
    command.args(["--set", "run.warmup=0s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    for _ in 0..3_000 {
        if endpoint.asked().len() > 60 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill is there");
    assert!(sent.success());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let json = json(&out);
    assert_eq!(json["run"]["ended"]["interrupted"], 1);
    assert!(json["workload"]["requests"]["completed"]["mean"].as_f64().expect("a count") > 30.0);
    assert!(text(&out.stderr).contains("requests that were sent had ended"), "{}", text(&out.stderr));
    for _ in 0..1_000 {
        if endpoint.gone() > 0 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert!(endpoint.gone() > 0, "nothing is left under way");
}

const SWEEP: &str = r#"
[[sweep]]
key = "workload.chat.arrivals.rate"
values = [20, 40]
[sweep.target]
metric = "workload.chat.p50"
at_most = "20s"
"#;

#[test]
fn a_sweep_runs_against_an_endpoint() {
    let folder = Folder::new("load-sweep");
    let documents = SCENARIO.find("[[workload]]\nname = \"documents\"").expect("it is there");
    let scenario = folder.file("s.toml", &format!("{}{SWEEP}", &SCENARIO[..documents]));
    let endpoint = Endpoint::start(usize::MAX, willing);
    let report = folder.path("report");
    let sweep = ["sweep", &scenario, "--live", &endpoint.url, "--format", "json", "--report", &report];
    let out = windtunnel(&[&sweep[..], &["--set", "run.replications=2", "--set", "run.horizon=400ms"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    assert!(said.contains("2 points, 2 replications each, one after another: 1.6s"), "{said}");
    let json = json(&out);
    let rates: Vec<&Value> = json["points"].as_array().expect("points").iter().map(|one| &one["set"]).collect();
    assert_eq!(rates.len(), 2, "{json}");
    assert_eq!(rates[1]["workload.chat.arrivals.rate"], 40);
    let point = &json["points"][0];
    assert_eq!((&point["source"], &point["run"]["replications"]), (&"live".into(), &2.into()));
    let knee = &json["knees"][0];
    assert_eq!((&knee["capacity"], &knee["at_target"]["shape"]), (&Value::Null, &"not_bracketed".into()));
    let probes = knee["at_target"]["probes"].as_array().expect("probes");
    assert!(probes.iter().all(|probe| probe["verdict"] == "pass" && probe["replications"] == 2), "{probes:?}");
    assert!(Path::new(&report).join("sweep.json").exists());
    let distinct: BTreeSet<String> = endpoint.asked().iter().map(|one| one.body["messages"].to_string()).collect();
    assert_eq!(distinct.len(), endpoint.asked().len(), "no run repeats the prompts of another");
}

/// Cards and services are the endpoint's: a file need not have any.
#[test]
fn workloads_are_enough_and_their_journal_has_nothing_to_replay() {
    let folder = Folder::new("load-bare");
    let bare = "[run]\nhorizon = '1s'\nwarmup = '0s'\n[[workload]]\nname = 'chat'\nmodel = 'org/m:q4'\noutput_tokens = 2\narrivals = { process = 'poisson', rate = 40 }\n";
    let (scenario, seen) = (folder.file("s.toml", bare), folder.path("seen.jsonl"));
    let endpoint = Endpoint::start(usize::MAX, |number, asked| match number {
        0 => whole(SOON, "404 Not Found", "x-windtunnel-reason: model_not_found\r\n", "{}"),
        _ => willing(number, asked),
    });
    let out = windtunnel(&["load", "--url", &endpoint.url, &scenario, "--journal", &seen, "--format", "json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let chat = &json(&out)["workload"]["chat"];
    assert_eq!((&chat["failed"]["mean"], &chat["rejected"]["mean"]), (&1.0.into(), &0.0.into()), "{chat}");
    assert!(endpoint.asked().iter().all(|asked| asked.body["model"] == "org/m:q4"));
    for command in ["replay", "whatif"] {
        let out = windtunnel(&[command, &seen]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("written by a load generator; it has no decisions to replay"), "{command}: {said}");
    }
    let sweep = format!("{bare}[[sweep]]\nkey = 'workload.chat.arrivals.rate'\nvalues = [20, 40]\n");
    let sweep = folder.file("sweep.toml", &sweep);
    let out = windtunnel(&["sweep", &sweep, "--live", &endpoint.url, "--set", "run.horizon=300ms"]);
    let table = text(&out.stdout);
    assert!(out.status.success() && table.contains("point  rate  offered/s"), "{table}{}", text(&out.stderr));
    assert!(!table.contains("card"), "{table}");
}
