//! Simulated runtimes under a real scheduler: a model is loaded, answers, and makes room for another.

use std::{
    net::TcpStream,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

use tokio::sync::mpsc;
use windtunnel_config::{Scenario, ScenarioFile};
use windtunnel_core::{Estimate, ExitCause, Measured, ModelId, Outcome, Sent, Span, Started};
use windtunnel_live::{
    Clock, Desk, Dispatcher, Endpoint, Order, Ticket, Told,
    dispatcher::{Listener, Setting, telling},
    fake::{Simulated, SimulatedControls, SimulatedSettings},
    journal::Journal,
};

use crate::{
    client::{LONG, ask, request},
    ear::hear,
    header::header,
    job,
};

const SCENARIO: &str = r#"
devices = [{ name = "gpu", memory = "16GiB", load = { fixed = "20ms", bandwidth = "500GiB/s" }, stop = "10ms", release = "30ms" }]
models.chat = { footprint = "10GiB", slots = 2, service = { kind = "slots", decode_alpha = "1ms" } }
models.code = { footprint = "9GiB", slots = 1, service = { kind = "slots", decode_alpha = "1ms" } }
models.vectors = { footprint = "1GiB", batch = { max = 64 }, service = { kind = "batch", alpha = "1ms" } }
workload = [{ name = "tests", model = "chat", arrivals = { process = "at", times = ["1s"] } }]
"#;

struct Bench {
    dispatcher: Dispatcher,
    desk: Desk<()>,
    controls: SimulatedControls<()>,
    runtime: tokio::runtime::Runtime,
}

fn scenario() -> Scenario {
    let file = ScenarioFile::parse(SCENARIO, Path::new("config.toml")).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut scenario = file.resolve(&[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    scenario.configuration.labels = vec!["tests".to_owned()];
    scenario
}

fn started(scenario: &Scenario) -> Started {
    let estimate = |(model, footprint): (u32, &windtunnel_config::Footprint)| Estimate {
        model: ModelId(model),
        device: windtunnel_core::DeviceId(0),
        footprint: footprint.truth.unwrap(),
        load_time: Span::from_millis(40),
    };
    let estimates = (0..).zip(&scenario.footprints).map(estimate).collect();
    let configuration = scenario.configuration.clone();
    Started { configuration, profiles: Vec::new(), estimates, residents: Vec::new() }
}

fn bench(name: &str) -> Bench {
    let scenario = scenario();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let setting = Setting {
        header: header(name),
        started: started(&scenario),
        recorder: Journal::open(&folder.join("run.jsonl"), u64::MAX).unwrap(),
        learned: Box::new(|_| {}),
        batches: mpsc::unbounded_channel().0,
        measured: Box::new(|_| {}),
        broken: Box::new(|violation| panic!("{violation}")),
    };
    let controls = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&controls);
    let handle = runtime.handle().clone();
    let simulated = move |desk| {
        let simulated = Simulated::new(desk, SimulatedSettings::from(&scenario), handle);
        *kept.lock().unwrap() = Some(simulated.controls());
        simulated
    };
    let (dispatcher, desk) = Dispatcher::start(Clock::start(), setting, simulated).unwrap();
    let controls = controls.lock().unwrap().take().unwrap();
    Bench { dispatcher, desk, controls, runtime }
}

impl Bench {
    fn submit(&self, model: u32) -> Listener {
        let (tell, told) = telling();
        self.desk.submit(job::chat(model), Ticket { tell, work: None });
        told
    }

    /// Has a model asked, and does what the gateway does.
    fn chat(&self, model: u32) -> serde_json::Value {
        let mut told = self.submit(model);
        let order = granted(&mut told);
        let answer = completion(&order.running.endpoint);
        self.desk.finished(&order.running, Measured { first_token: None, output_tokens: 2 });
        let finish = std::iter::from_fn(|| hear(&mut told)).find_map(|told| match told {
            Told::Finished(finish) => Some(*finish),
            Told::Taken(_) | Told::Waits(_) | Told::Granted(_) => None,
        });
        assert_eq!(finish.expect("the end comes").outcome, Outcome::Completed);
        answer
    }

    fn close(self) {
        self.desk.close();
        assert!(self.dispatcher.join(), "the scheduler's thread ends in good order");
    }
}

fn granted(told: &mut Listener) -> Order {
    loop {
        match hear(told).expect("the dispatcher tells") {
            Told::Granted(order) => return *order,
            Told::Finished(finish) => panic!("{finish:?}"),
            Told::Taken(_) | Told::Waits(_) => {}
        }
    }
}

fn completion(endpoint: &Endpoint) -> serde_json::Value {
    let key = format!("Authorization: Bearer {}\r\n", endpoint.key);
    let body = r#"{"prompt":"a b","max_tokens":2}"#;
    ask(endpoint.address, &request("POST", "/v1/completions", &key, body)).json()
}

#[test]
fn models_that_do_not_fit_together_take_turns_and_each_answers_under_its_name() {
    let bench = bench("simulated-turns");
    for (model, name) in [(0, "chat"), (1, "code"), (0, "chat")] {
        let answer = bench.chat(model);
        assert_eq!((answer["model"].as_str(), &answer["usage"]["completion_tokens"]), (Some(name), &2.into()));
    }
    let view = bench.runtime.block_on(bench.desk.view()).unwrap();
    assert_eq!(view.devices[0].instances.len(), 1, "{view:?}");
    bench.close();
}

#[test]
fn a_crash_is_said_and_the_next_request_has_the_model_loaded_again() {
    let bench = bench("simulated-crash");
    let mut told = bench.submit(0);
    let order = granted(&mut told);
    assert!(bench.controls.crash(order.running.instance, ExitCause::Signal(11)));
    assert!(!bench.controls.crash(order.running.instance, ExitCause::Signal(11)), "it is gone");
    let started = Instant::now();
    while TcpStream::connect(order.running.endpoint.address).is_ok() {
        assert!(started.elapsed() < LONG, "nobody listens any more");
    }
    bench.desk.failed(&order.running, windtunnel_core::GrantFailure::Crashed, Sent::Nothing);
    let again = granted(&mut told);
    assert_ne!(again.running.instance, order.running.instance);
    assert_eq!(completion(&again.running.endpoint)["model"], "chat");
    bench.close();
}
