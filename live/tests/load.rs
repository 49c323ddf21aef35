//! The load generator against an endpoint that answers as it is told.

mod endpoint;

use std::{
    collections::VecDeque,
    fs::{self, File},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use endpoint::{Answer, Asked, Endpoint, event, tokens, whole};
use windtunnel_config::{Scenario, ScenarioFile};
use windtunnel_core::{Span, Time};
use windtunnel_live::load::{
    Address, Call, Fields, Gauge, Lag, Length, LoadError, Plan, Prompts, Recording, Rest, Settings, Watch, run,
};
use windtunnel_reports::{
    Report, RunFigures,
    journal::{EndCause, Header, ModelFacts, SCHEMA, Source, WarmupRule, WorkloadFacts, report_from_journals},
    metrics::Quantile,
};

const SCENARIO: &str = r#"
run.horizon = "60s"
[[devices]]
name = "d"
[models.m]
service = { kind = "slots", decode_alpha = "1ms" }
aliases = ["other"]
[[workload]]
name = "w"
model = "m"
arrivals = { process = "at", times = ["0s"] }
"#;

/// Calls at their times, and clients that ask again at once.
#[derive(Default)]
struct Listed {
    calls: VecDeque<Call>,
    /// How often each client asks again.
    again: u32,
    /// Before this call the plan itself is held up for so long.
    held_up: Option<(Time, Duration)>,
    ends: Vec<(Call, Option<Time>, Time)>,
}

impl Plan for Listed {
    fn next(&self) -> Option<Time> {
        self.calls.front().map(|call| call.at)
    }

    fn take(&mut self) -> Option<Call> {
        let call = self.calls.pop_front()?;
        if let Some((_, pause)) = self.held_up.take_if(|(at, _)| call.at >= *at) {
            thread::sleep(pause);
        }
        Some(call)
    }

    fn ended(&mut self, call: &Call, started: Option<Time>, ended: Time) {
        self.ends.push((*call, started, ended));
        if call.client.is_some() && self.again > 0 {
            self.again -= 1;
            self.calls.push_back(Call { at: ended, ..*call });
        }
    }
}

fn call(millis: u64) -> Call {
    Call {
        at: Time::from_nanos(millis * 1_000_000),
        patience: None,
        workload: 0,
        client: None,
        inputs: 1,
        prompt_tokens: 12,
        output_tokens: 3,
    }
}

fn calls(count: u64, every: u64) -> Listed {
    Listed { calls: (0..count).map(|number| call(number * every)).collect(), ..Listed::default() }
}

/// What a test changes of a load.
struct Load {
    more: &'static str,
    timeout: Duration,
    length: Length,
    journal: Option<PathBuf>,
}

impl Default for Load {
    fn default() -> Load {
        let length = Length { horizon: None, jobs: None, rest: Rest::Awaited };
        Load { more: "", timeout: Duration::from_secs(60), length, journal: None }
    }
}

struct Loaded {
    report: Report,
    run: RunFigures,
    lag: Lag,
}

impl Load {
    fn on(&self, url: &str, plan: &mut Listed) -> Result<Loaded, LoadError> {
        let scenario = scenario(self.more);
        let settings = Settings {
            address: Address::parse(url).expect("a URL"),
            key: Some("secret".to_owned()),
            prompts: Prompts::Distinct,
            fields: Fields::Extended,
            timeout: self.timeout,
            cool_down: Duration::ZERO,
            seed: 1,
        };
        let journal = self.journal.as_ref().map(|path| -> Box<dyn std::io::Write + Send> {
            Box::new(File::create(path).expect("the journal is created"))
        });
        let mut recording = Recording::new(journal);
        let gauge = Gauge::default();
        let watch = Watch { stop: &|| false, gauge: &gauge };
        let header = header(&scenario);
        let lag = run(&settings, &scenario, header, self.length, plan, &mut recording, watch)?;
        let run = recording.into_run();
        Ok(Loaded { report: Report::from_runs(vec![run.clone()]), run, lag })
    }
}

fn scenario(more: &str) -> Scenario {
    let file = ScenarioFile::parse(&format!("{SCENARIO}{more}"), Path::new("test.toml")).expect("it is TOML");
    file.resolve(&[]).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn header(scenario: &Scenario) -> Header {
    let workload = |workload: &windtunnel_config::Workload| WorkloadFacts {
        name: workload.name.clone(),
        arrivals: "as listed".to_owned(),
        closed_loop: false,
        class: workload.class.unwrap_or(scenario.configuration.policy.default_class),
        capacity: None,
    };
    Header {
        schema: SCHEMA,
        program: "0".to_owned(),
        source: Source::Live,
        title: "a test".to_owned(),
        seed: 1,
        replication: 0,
        horizon: None,
        jobs: None,
        warmup: WarmupRule::Fixed(Span::ZERO),
        wall_clock: None,
        devices: Vec::new(),
        models: vec![ModelFacts { name: "m".to_owned(), capacity: Vec::new(), at_once: 1 }],
        workloads: scenario.workloads.iter().map(workload).collect(),
        remarks: std::collections::BTreeMap::new(),
    }
}

impl Loaded {
    fn figure(&self, name: &str) -> f64 {
        self.report.figure(name).unwrap_or_else(|| panic!("there is no {name}")).mean
    }

    /// How many ended in each way, by the names of reasons.
    fn reasons(&self) -> Vec<(String, f64)> {
        let workload = self.report.workload.get("w").expect("the workload");
        workload.flow.reasons.iter().map(|(name, count)| (name.to_owned(), count.mean)).collect()
    }

    fn remarks(&self) -> String {
        self.report.remarks.join("\n")
    }

    /// Nothing is out of order, lost or counted twice.
    fn sound(&self) {
        assert_eq!(self.report.invariants.violated, 0, "{:?}", self.report.invariants);
    }
}

const SOON: Duration = Duration::from_millis(1);

#[test]
fn every_call_is_asked_once_and_counted_from_its_time() {
    let endpoint = Endpoint::start(usize::MAX, |_, asked| tokens(SOON, "", asked));
    let mut plan = calls(300, 2);
    let journal = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every-call.jsonl");
    let load = Load { journal: Some(journal.clone()), ..Load::default() };
    let loaded = load.on(&endpoint.url, &mut plan).expect("it runs");
    let asked = endpoint.asked();
    assert_eq!((asked.len(), loaded.figure("workload.w.completed")), (300, 300.0));
    assert_eq!(loaded.run.end.cause, EndCause::Exhausted);
    let first = &asked[0];
    assert_eq!((first.path.as_str(), &first.body["model"]), ("/v1/chat/completions", &"m".into()));
    assert_eq!((&first.body["max_tokens"], &first.body["ignore_eos"]), (&3.into(), &true.into()));
    assert_eq!((&first.body["stream"], &first.body["stream_options"]["include_usage"]), (&true.into(), &true.into()));
    assert!(first.headers.contains("authorization: bearer secret"), "{}", first.headers);
    let prompts: std::collections::BTreeSet<String> =
        asked.iter().map(|asked| asked.body["messages"][0]["content"].to_string()).collect();
    assert_eq!(prompts.len(), 300, "no two prompts are the same");
    assert!(prompts.iter().all(|prompt| prompt.split(' ').count() == 12));
    let (token, all) = (loaded.figure("workload.w.ttft_p50"), loaded.figure("workload.w.p50"));
    // Quantiles are known to a 64th of their value.
    assert!(token >= 0.001 && token <= all * (1.0 + 1.0 / 32.0), "{token} {all}");
    loaded.sound();
    let (read, warnings) = report_from_journals(&[&journal]).expect("it is a journal");
    assert_eq!((read.to_json(), warnings.len()), (loaded.report.to_json(), 0));
    assert!(!fs::read_to_string(&journal).expect("it is there").contains("secret"));
    assert!(
        loaded.remarks().contains("300 of 300 answers do not tell how long they had waited"),
        "{}",
        loaded.remarks()
    );
}

#[test]
fn a_server_that_stalls_holds_nobody_up() {
    let endpoint = Endpoint::start(usize::MAX, |number, asked| match number {
        0 => tokens(Duration::from_millis(600), "", asked),
        _ => tokens(SOON, "", asked),
    });
    let loaded = Load::default().on(&endpoint.url, &mut calls(100, 2)).expect("it runs");
    assert!(loaded.figure("workload.w.max") >= 0.6);
    assert!(loaded.figure("workload.w.p50") < 0.4, "the others do not wait for it");
    loaded.sound();
}

#[test]
fn latency_counts_from_the_intended_time_and_the_own_lag_is_told() {
    let endpoint = Endpoint::start(usize::MAX, |_, asked| tokens(SOON, "", asked));
    let late = Duration::from_millis(400);
    let mut plan = calls(100, 2);
    plan.held_up = Some((call(100).at, late));
    let loaded = Load::default().on(&endpoint.url, &mut plan).expect("it runs");
    let longest = loaded.lag.max().expect("requests were sent");
    assert!(longest >= Span::from_millis(400), "{longest}");
    assert!(loaded.figure("workload.w.max") >= 0.4);
    // What was due while the generator slept, 50 requests, was late as well: from 400 ms down to 300 ms.
    assert!(loaded.lag.quantile(Quantile::ppm(550_000)).expect("requests were sent") >= 3e8);
    assert!(loaded.figure("workload.w.p90") >= 0.3);
    assert!(loaded.remarks().contains("the load generator itself was too slow"), "{}", loaded.remarks());
    loaded.sound();
}

#[test]
fn clients_ask_again_when_their_last_request_has_ended() {
    // The first answers take so long that they are under way together on a slow machine too.
    let endpoint = Endpoint::start(usize::MAX, |number, asked| match number {
        0..3 => tokens(Duration::from_secs(1), "", asked),
        _ => tokens(SOON, "", asked),
    });
    let client = |client| Call { client: Some(client), ..call(0) };
    let mut plan = Listed { calls: (0..3).map(client).collect(), again: 57, ..Listed::default() };
    let loaded = Load::default().on(&endpoint.url, &mut plan).expect("it runs");
    assert_eq!((endpoint.asked().len(), loaded.figure("workload.w.completed")), (60, 60.0));
    assert_eq!(endpoint.most_at_once(), 3);
    assert!(plan.ends.iter().all(|(call, started, ended)| started.is_some() && ended > &call.at));
    loaded.sound();
}

#[test]
fn a_client_without_patience_goes_away() {
    let endpoint = Endpoint::start(usize::MAX, |_, asked| tokens(Duration::from_secs(50), "", asked));
    let impatient = Call { patience: Some(Span::from_millis(80)), ..call(0) };
    let mut plan = Listed { calls: [impatient].into(), ..Listed::default() };
    let loaded = Load::default().on(&endpoint.url, &mut plan).expect("it runs");
    assert_eq!((loaded.figure("workload.w.cancelled"), loaded.reasons().len()), (1.0, 0));
    let stay = plan.ends[0].2.since(Time::ZERO);
    assert!(stay >= Span::from_millis(80) && stay < Span::from_secs(40), "{stay}");
    for _ in 0..1000 {
        if endpoint.gone() == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(endpoint.gone(), 1, "its connection is closed");
    loaded.sound();
}

#[test]
fn what_is_refused_or_fails_is_counted_by_reason() {
    let no = Duration::ZERO;
    let broken = move |asked: &Asked, keep: usize| tokens(no, "", asked)[..keep].to_vec();
    let endpoint = Endpoint::start(usize::MAX, move |number, asked| -> Answer {
        match number {
            0 => whole(
                no,
                "429 Too Many Requests",
                "x-windtunnel-reason: deadline_unreachable\r\nretry-after: 3\r\n",
                "{}",
            ),
            1 => whole(no, "503 Service Unavailable", "", r#"{"error":{"message":"Loading model","code":503}}"#),
            2 => whole(no, "503 Service Unavailable", "x-windtunnel-reason: queue_expired\r\n", "{}"),
            3 => whole(no, "500 Internal Server Error", "", "oh"),
            4 => broken(asked, 4),
            5 => Vec::from([(no, b"HTTP/1.1 200 OK\r\n".to_vec())]),
            6 => {
                let mut answer = broken(asked, 4);
                let error = r#"{"error":{"message":"it died","code":"runtime_crashed"}}"#;
                answer.extend([(no, event(error)), (no, b"0\r\n\r\n".to_vec())]);
                answer
            }
            7 => tokens(Duration::from_secs(50), "", asked),
            _ => tokens(no, "", asked),
        }
    });
    let load = Load { timeout: Duration::from_secs(3), ..Load::default() };
    let loaded = load.on(&endpoint.url, &mut calls(9, 100)).expect("it runs");
    let mut reasons = loaded.reasons();
    reasons.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("crashed", 1.0),
        ("deadline_unreachable", 1.0),
        ("disconnected", 2.0),
        ("max_wait", 1.0),
        ("model_broken", 1.0),
        ("rejected_by_runtime", 1.0),
        ("wedged", 1.0),
    ];
    assert_eq!(reasons, expected.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(loaded.figure("workload.w.completed"), 1.0);
    for part in [
        "429 deadline_unreachable",
        "503 Loading model",
        "a connection that broke before the answer",
        "an answer that broke off",
        "runtime_crashed in an answer",
    ] {
        assert!(loaded.remarks().contains(part), "{part}: {}", loaded.remarks());
    }
    loaded.sound();
}

const EMBEDDINGS: &str =
    "kind = \"embedding\"\nclass = \"background\"\ndeadline = \"1.0005s\"\nmax_wait = \"2s\"\ndrop_hopeless = true\n";

#[test]
fn embeddings_are_arrays_with_what_the_workload_says() {
    let endpoint = Endpoint::start(usize::MAX, |number, asked| {
        let inputs = asked.body["input"].as_array().map_or(0, Vec::len);
        let given = if number == 1 { inputs - 1 } else { inputs };
        let data = vec![r#"{"embedding":[0.5]}"#; given].join(",");
        whole(SOON, "200 OK", "content-type: application/json\r\n", &format!(r#"{{"data":[{data}]}}"#))
    });
    let mut plan = calls(2, 50);
    plan.calls.iter_mut().for_each(|call| call.inputs = 40);
    let load = Load { more: EMBEDDINGS, ..Load::default() };
    let loaded = load.on(&endpoint.url, &mut plan).expect("it runs");
    let asked = endpoint.asked();
    assert_eq!(asked[0].path, "/v1/embeddings");
    let texts = asked[0].body["input"].as_array().expect("an array");
    assert_eq!(texts.len(), 40);
    assert_ne!(texts[0], texts[1]);
    for header in [
        "x-windtunnel-class: background",
        "x-windtunnel-deadline-ms: 1001",
        "x-windtunnel-max-wait-ms: 2000",
        "x-windtunnel-drop-hopeless: true",
    ] {
        assert!(asked[0].headers.contains(header), "{header}: {}", asked[0].headers);
    }
    assert_eq!(loaded.figure("workload.w.completed"), 1.0);
    assert_eq!(loaded.reasons(), [("rejected_by_runtime".to_owned(), 1.0)], "one vector is missing");
}

#[test]
fn waits_are_those_that_the_endpoint_tells() {
    let endpoint = Endpoint::start(usize::MAX, |_, asked| {
        tokens(Duration::from_millis(100), "x-windtunnel-queue-ms: 0.002\r\nx-windtunnel-model: other\r\n", asked)
    });
    let loaded = Load::default().on(&endpoint.url, &mut calls(20, 10)).expect("it runs");
    let wait = loaded.figure("workload.w.wait_mean");
    assert!(wait > 1.9e-6 && wait < 2.1e-6, "{wait}");
    assert!(loaded.figure("workload.w.service_p50") >= 0.1);
    assert!(!loaded.remarks().contains("do not tell"), "{}", loaded.remarks());
    // Nobody waits once the answers have begun.
    assert!(loaded.report.run.queue.mean < loaded.report.run.in_system.mean / 2.0, "{:?}", loaded.report.run);
    loaded.sound();
}

#[test]
fn connections_that_the_endpoint_closes_are_opened_again() {
    let endpoint = Endpoint::start(3, |_, asked| tokens(Duration::ZERO, "", asked));
    let loaded = Load::default().on(&endpoint.url, &mut calls(60, 5)).expect("it runs");
    assert_eq!(loaded.figure("workload.w.completed"), 60.0, "{}", loaded.remarks());
}

#[test]
fn what_is_under_way_at_the_horizon_is_unfinished_or_waited_for() {
    let slow = |_: usize, asked: &Asked| tokens(Duration::from_millis(700), "", asked);
    let horizon = Some(Span::from_millis(300));
    for (rest, unfinished, cause) in
        [(Rest::Unfinished, 5.0, EndCause::Horizon), (Rest::Awaited, 0.0, EndCause::Drained)]
    {
        let endpoint = Endpoint::start(usize::MAX, slow);
        let load = Load { length: Length { horizon, jobs: None, rest }, ..Load::default() };
        let loaded = load.on(&endpoint.url, &mut calls(10, 66)).expect("it runs");
        assert_eq!(loaded.figure("workload.w.offered"), 5.0);
        assert_eq!((loaded.figure("workload.w.unfinished"), loaded.run.end.cause), (unfinished, cause));
    }
    let endpoint = Endpoint::start(usize::MAX, slow);
    let length = Length { horizon: None, jobs: Some(4), rest: Rest::Unfinished };
    let loaded = Load { length, ..Load::default() }.on(&endpoint.url, &mut calls(10, 10)).expect("it runs");
    assert_eq!((loaded.figure("workload.w.offered"), loaded.run.end.cause), (4.0, EndCause::Jobs));
}

#[test]
fn an_endpoint_that_is_not_there_is_said_before_anything_is_sent() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", taken.local_addr().expect("it is bound"));
    drop(taken);
    let wrong = Load::default().on(&url, &mut calls(1, 1)).err().expect("nobody answers").to_string();
    assert!(wrong.contains("is the server running?"), "{wrong}");
    let wrong = Load { more: "kind = \"audio\"\n", ..Load::default() }.on(&url, &mut calls(1, 1)).err();
    assert!(wrong.expect("there is no sound").to_string().contains("of w: there is no sound"));
}
