//! The dispatcher with runtimes that answer at once: what is told to whom, and a journal that replays.

#[path = "scheduled/ear.rs"]
mod ear;
#[path = "scheduled/header.rs"]
mod header;
#[path = "scheduled/job.rs"]
mod job;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::mpsc::{self, UnboundedReceiver};
use windtunnel_config::ScenarioFile;
use windtunnel_core::{
    Attempt, DeviceId, Estimate, ExitCause, InstanceId, JobKind, Measured, ModelId, Outcome, Request, Started,
    Submission,
};
use windtunnel_live::{
    Clock, Desk, Dispatcher, Endpoint, Lines, LoadOrder, Runtimes, Ticket, Told,
    dispatcher::{Listener, Setting, TroubleCause, telling},
    journal::Journal,
};
use windtunnel_replay::{Rules, replay};

use ear::hear;
use header::header;
use job::chat;

const CONFIGURATION: &str = r#"
devices = [{ name = "gpu", memory = "16GiB" }]
models.chat = { footprint = "10GiB", slots = 2, service = { kind = "slots", decode_alpha = "10ms" } }
models.code = { footprint = "9GiB", slots = 1, service = { kind = "slots", decode_alpha = "10ms" } }
models.vectors = { footprint = "1GiB", batch = { max = 64 }, service = { kind = "batch", alpha = "10ms" } }
workload = [{ name = "tests", model = "chat", arrivals = { process = "at", times = ["1s"] } }]
"#;

/// What processes do that are asked to end.
#[derive(Clone, Copy)]
enum Stops {
    InOrder,
    /// They die of something else just then.
    Dying,
}

/// Loads and stops at once, and remembers the order.
struct AtOnce {
    desk: Desk<&'static str>,
    stops: Stops,
    log: Arc<Mutex<Vec<String>>>,
}

impl Runtimes for AtOnce {
    fn load(&mut self, order: LoadOrder) {
        self.log.lock().unwrap().push(format!("load {}", order.model));
        let endpoint = Endpoint {
            address: ([127, 0, 0, 1], 9).into(),
            key: String::new(),
            requests_a_connection: None,
            progress: Arc::default(),
            lines: Arc::new(Lines::new(1)),
        };
        self.desk.loaded(order.attempt, order.instance, None, endpoint);
    }

    fn stop(&mut self, attempt: Attempt, instance: InstanceId) {
        self.log.lock().unwrap().push(format!("stop {instance}"));
        match self.stops {
            Stops::InOrder => {}
            Stops::Dying => self.desk.exited(instance, ExitCause::Signal(11)),
        }
        self.desk.stopped(attempt, instance);
    }

    fn abort_load(&mut self, _attempt: Attempt, _instance: InstanceId) {}

    fn read(&mut self, device: DeviceId) {
        let snapshot = windtunnel_core::Snapshot {
            device,
            total: None,
            used: Some(windtunnel_core::Bytes::ZERO),
            processes: Vec::new(),
        };
        self.desk.snapshot(snapshot);
    }
}

struct Bench {
    dispatcher: Dispatcher,
    desk: Desk<&'static str>,
    batches: UnboundedReceiver<windtunnel_live::BatchOrder<&'static str>>,
    log: Arc<Mutex<Vec<String>>>,
    journal: PathBuf,
}

fn started() -> Started {
    let file = ScenarioFile::parse(CONFIGURATION, std::path::Path::new("config.toml")).unwrap();
    let scenario = file.resolve(&[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    let estimate = |(model, footprint): (u32, &windtunnel_config::Footprint)| Estimate {
        model: ModelId(model),
        device: DeviceId(0),
        footprint: footprint.truth.unwrap(),
        load_time: windtunnel_core::Span::from_secs(1),
    };
    let estimates = (0..).zip(&scenario.footprints).map(estimate).collect();
    let mut configuration = scenario.configuration;
    configuration.labels = vec!["tests".to_owned()];
    Started { configuration, profiles: Vec::new(), estimates, residents: Vec::new() }
}

fn bench(name: &str, limit: u64) -> Bench {
    bench_with(name, limit, Stops::InOrder)
}

fn bench_with(name: &str, limit: u64, stops: Stops) -> Bench {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let journal = folder.join("run.jsonl");
    let log = Arc::new(Mutex::new(Vec::new()));
    let (send, batches) = mpsc::unbounded_channel();
    let setting = Setting {
        header: header(name),
        started: started(),
        recorder: Journal::open(&journal, limit).unwrap(),
        learned: Box::new(|_| {}),
        batches: send,
        measured: Box::new(|_| {}),
        broken: Box::new(|violation| panic!("{violation}")),
    };
    let own = Arc::clone(&log);
    let (dispatcher, desk) =
        Dispatcher::start(Clock::start(), setting, |desk| AtOnce { desk, stops, log: own }).unwrap();
    Bench { dispatcher, desk, batches, log, journal }
}

impl Bench {
    fn submit(&self, model: u32, kind: JobKind, inputs: u32) -> Listener {
        let (tell, told) = telling();
        let work = (kind == JobKind::Embedding).then(|| Arc::new("texts"));
        self.desk.submit(Submission { kind, inputs, ..chat(model) }, Ticket { tell, work });
        told
    }

    fn close(self) -> (Vec<String>, PathBuf) {
        self.desk.close();
        assert!(self.dispatcher.join(), "the scheduler's thread ends in good order");
        let log = self.log.lock().unwrap().clone();
        (log, self.journal)
    }
}

/// The next that is told, but for why it waits.
fn next(told: &mut Listener) -> Told {
    loop {
        match hear(told).expect("the dispatcher tells") {
            Told::Waits(_) => {}
            other => return other,
        }
    }
}

fn answer(bench: &Bench, told: &mut Listener) {
    assert!(matches!(next(told), Told::Taken(_)));
    let Told::Granted(order) = next(told) else { panic!("a grant comes next") };
    bench.desk.finished(&order.running, Measured { first_token: None, output_tokens: 5 });
    let Told::Finished(finish) = next(told) else { panic!("the end comes next") };
    assert_eq!(finish.outcome, Outcome::Completed);
    assert!(hear(told).is_none(), "nothing is told after the end");
}

#[test]
fn a_job_is_granted_runs_and_ends_and_the_journal_replays() {
    let bench = bench("granted", u64::MAX);
    for model in [0, 1, 0] {
        let mut told = bench.submit(model, JobKind::Chat, 1);
        answer(&bench, &mut told);
    }
    let (log, journal) = bench.close();
    assert_eq!(log.iter().filter(|line| line.starts_with("load")).count(), 3, "{log:?}");
    let outcome = replay([std::fs::File::open(journal).map(std::io::BufReader::new).unwrap()], Rules::default());
    let outcome = outcome.unwrap();
    assert!(outcome.equal && outcome.tally.effects > 20, "{outcome}");
}

#[test]
fn steps_of_several_jobs_go_to_whoever_runs_batches() {
    let mut bench = bench("batches", u64::MAX);
    let mut first = bench.submit(2, JobKind::Embedding, 40);
    assert!(matches!(next(&mut first), Told::Taken(_)));
    let mut inputs = 0;
    while inputs < 40 {
        let order = bench.batches.blocking_recv().expect("a batch comes");
        inputs += order.steps.iter().map(|(step, _)| step.weight).sum::<u32>();
        assert!(order.steps.iter().all(|(_, ticket)| ticket.work.as_deref() == Some(&"texts")));
        bench.desk.finished(&order.running, Measured { first_token: None, output_tokens: 0 });
    }
    assert!(matches!(next(&mut first), Told::Finished(_)));
    bench.close();
}

#[test]
fn a_client_that_goes_while_its_step_runs_has_it_broken_off() {
    let bench = bench("gone", u64::MAX);
    let mut told = bench.submit(0, JobKind::Chat, 1);
    let Told::Taken(job) = next(&mut told) else { panic!("it is taken first") };
    let Told::Granted(order) = next(&mut told) else { panic!("a grant comes next") };
    bench.desk.gone(job);
    let started = std::time::Instant::now();
    while !order.running.abort.is_cancelled() {
        assert!(started.elapsed() < Duration::from_secs(5), "the grant is broken off");
        std::thread::yield_now();
    }
    bench.desk.failed(&order.running, windtunnel_core::GrantFailure::Aborted, windtunnel_core::Sent::Nothing);
    bench.close();
}

#[test]
fn what_a_model_died_of_is_known_although_it_was_asked_to_end() {
    let bench = bench_with("dies", u64::MAX, Stops::Dying);
    let mut told = bench.submit(0, JobKind::Chat, 1);
    assert!(matches!(next(&mut told), Told::Taken(_)));
    let Told::Granted(order) = next(&mut told) else { panic!("a grant comes next") };
    bench.desk.finished(&order.running, Measured { first_token: None, output_tokens: 5 });
    bench.desk.operate(Request::Unload { instance: order.running.instance });
    let started = std::time::Instant::now();
    let trouble = loop {
        if let Some(trouble) = bench.desk.trouble(ModelId(0)) {
            break trouble;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "its end should be known");
        std::thread::sleep(Duration::from_millis(2));
    };
    assert_eq!(trouble.cause, Some(TroubleCause::Exit(ExitCause::Signal(11))));
    let (log, _) = bench.close();
    assert_eq!(log.len(), 2, "{log:?}");
}

#[test]
fn the_last_lines_before_a_pause_reach_the_disk() {
    let bench = bench("pause", u64::MAX);
    let mut told = bench.submit(0, JobKind::Chat, 1);
    answer(&bench, &mut told);
    let started = std::time::Instant::now();
    while !std::fs::read_to_string(&bench.journal).unwrap().contains(r#""finish""#) {
        assert!(started.elapsed() < Duration::from_secs(20), "the end of the job is not in the journal");
        std::thread::sleep(Duration::from_millis(5));
    }
    bench.close();
}

#[test]
fn files_follow_one_another_and_replay_together_and_alone() {
    let bench = bench("files", 20_000);
    for _ in 0..200 {
        let mut told = bench.submit(0, JobKind::Chat, 1);
        answer(&bench, &mut told);
        std::thread::sleep(Duration::from_millis(2));
    }
    let (_, journal) = bench.close();
    let folder = journal.parent().unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    // `run.0002.jsonl` sorts before `run.jsonl`.
    files.retain(|path| *path != journal);
    assert!(files.len() > 1, "{files:?}");
    let open = |path: &PathBuf| std::fs::File::open(path).map(std::io::BufReader::new).unwrap();
    let together = replay([&journal].into_iter().chain(&files).map(open), Rules::default()).unwrap();
    assert!(together.equal && together.tally.runs == 1, "{together}");
    let alone = replay([open(&files[0])], Rules::default()).unwrap();
    assert!(alone.equal && alone.tally.effects > 0, "{alone}");
}
