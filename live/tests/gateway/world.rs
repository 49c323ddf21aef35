//! A gateway with everything around it: a scheduler, a child by script, and loads that end when a test says so.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use windtunnel_config::ScenarioFile;
use windtunnel_core::{
    Attempt, Bytes, DeviceId, Estimate, InstanceId, LoadFailure, ModelId, Snapshot, Span, Stage, Started, View,
};
use windtunnel_live::{
    Clock, Desk, Dispatcher, Endpoint, Lines, LoadOrder, Runtimes,
    dispatcher::Setting,
    gateway::{Answered, Catalogue, Gateway, Operations, Phase, Settings, SlotWatch, Work},
    journal::Journal,
};

use super::{client::Client, header::header, upstream::Upstream};

/// The key of the child.
pub const CHILD_KEY: &str = "child-key";

const CONFIGURATION: &str = r#"
devices = [{ name = "gpu", memory = "16GiB" }]
models.chat = { footprint = "10GiB", slots = 2, aliases = ["gpt", "org/chat:latest"], service = { kind = "slots", decode_alpha = "10ms" } }
models.code = { footprint = "9GiB", slots = 1, service = { kind = "slots", decode_alpha = "10ms" } }
models.tiny = { footprint = "1GiB", slots = 1, service = { kind = "slots", decode_alpha = "10ms" } }
models.small = { footprint = "1GiB", slots = 1, service = { kind = "slots", decode_alpha = "10ms" } }
models.vectors = { footprint = "1GiB", batch = { max = 64 }, service = { kind = "batch", alpha = "10ms" } }
families.talk = { variants = [{ model = "chat", quality = "preferred" }, { model = "small", quality = "compact" }] }
workload = [{ name = "tests", model = "chat", arrivals = { process = "at", times = ["1s"] } }]
"#;

/// When loads end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    AtOnce,
    /// Later ones never.
    FirstAtOnce,
    Never,
    Fail,
}

struct Hands {
    desk: Desk<Work>,
    child: SocketAddr,
    loads: Loads,
    kept: Kept,
    /// Connections that the child has open.
    open: Arc<AtomicUsize>,
    log: Arc<Mutex<Vec<String>>>,
}

/// How connections to the child are kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub most: u32,
    pub idle: Duration,
}

impl Kept {
    /// None, so that the child sees every request alone.
    pub const NONE: Kept = Kept { most: 0, idle: Duration::ZERO };
    /// For longer than a test runs.
    pub const LONG: Kept = Kept { most: 2, idle: Duration::from_secs(3600) };
}

impl Runtimes for Hands {
    fn load(&mut self, order: LoadOrder) {
        self.log.lock().unwrap().push(format!("load {}", order.model));
        let is_first = self.log.lock().unwrap().len() == 1;
        let endpoint = Endpoint {
            address: self.child,
            key: CHILD_KEY.to_owned(),
            requests_a_connection: None,
            progress: Arc::default(),
            lines: Arc::new(Lines::lasting(self.kept.most, self.kept.idle)),
        };
        match self.loads {
            Loads::FirstAtOnce if !is_first => {}
            Loads::AtOnce | Loads::FirstAtOnce => self.desk.loaded(order.attempt, order.instance, None, endpoint),
            Loads::Fail => self.desk.load_failed(order.attempt, order.instance, LoadFailure::Crashed),
            Loads::Never => {}
        }
    }

    fn stop(&mut self, attempt: Attempt, instance: InstanceId) {
        self.log.lock().unwrap().push(format!("stop {instance}"));
        // A child ends when nobody is connected any more.
        let (desk, open, started) = (self.desk.clone(), Arc::clone(&self.open), Instant::now());
        std::thread::spawn(move || {
            while open.load(Ordering::SeqCst) > 0 && started.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            desk.stopped(attempt, instance);
        });
    }

    fn abort_load(&mut self, attempt: Attempt, instance: InstanceId) {
        self.desk.load_failed(attempt, instance, LoadFailure::Stopped);
    }

    fn read(&mut self, device: DeviceId) {
        let snapshot = Snapshot { device, total: None, used: Some(Bytes::ZERO), processes: Vec::new() };
        self.desk.snapshot(snapshot);
    }
}

/// What the gateway told of its requests, and the phase it is told.
pub struct Around {
    pub answered: Mutex<Vec<Answered>>,
    pub phase: Mutex<Phase>,
}

impl Operations for Around {
    fn metrics(&self, _view: &View) -> String {
        "# EOF\n".to_owned()
    }

    fn events(&self, after: u64) -> (u64, Vec<String>) {
        (after + 2, vec!["one".to_owned(), "two".to_owned()])
    }

    fn reload(&self) -> Result<String, String> {
        Err("line 3: no such key `modles`; meant `models`?".to_owned())
    }

    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap()
    }

    fn answered(&self, answered: &Answered) {
        self.answered.lock().unwrap().push(answered.clone());
    }
}

/// Everything together.
pub struct World {
    pub upstream: Upstream,
    pub desk: Desk<Work>,
    pub gateway: Gateway,
    pub around: Arc<Around>,
    pub log: Arc<Mutex<Vec<String>>>,
    pub address: SocketAddr,
    pub shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
    dispatcher: Dispatcher,
    journal: PathBuf,
}

/// Settings with which nothing takes long.
pub fn settings() -> Settings {
    Settings {
        keepalive: Duration::from_millis(20),
        slot_watch: SlotWatch {
            first: Duration::from_millis(1),
            look: Duration::from_millis(500),
            limit: Duration::from_secs(20),
        },
        death_notice: Duration::from_millis(20),
        drain: Duration::from_secs(20),
        ..Settings::default()
    }
}

fn started() -> Started {
    let file = ScenarioFile::parse(CONFIGURATION, Path::new("config.toml")).unwrap();
    let scenario = file.resolve(&[]).unwrap_or_else(|wrong| panic!("{wrong}"));
    let estimate = |(model, footprint): (u32, &windtunnel_config::Footprint)| Estimate {
        model: ModelId(model),
        device: DeviceId(0),
        footprint: footprint.truth.unwrap(),
        load_time: Span::from_secs(1),
    };
    let estimates = (0..).zip(&scenario.footprints).map(estimate).collect();
    let mut configuration = scenario.configuration;
    configuration.labels = ["anonymous", "first", "second"].map(str::to_owned).to_vec();
    Started { configuration, profiles: Vec::new(), estimates, residents: Vec::new() }
}

impl World {
    /// A world in which loads end at once.
    pub async fn new(name: &str, upstream: Upstream) -> World {
        World::with(name, upstream, settings(), Loads::AtOnce).await
    }

    pub async fn with(name: &str, upstream: Upstream, settings: Settings, loads: Loads) -> World {
        World::changed(name, upstream, settings, loads, |_| {}).await
    }

    /// A world that keeps connections to its child.
    pub async fn keeping(name: &str, upstream: Upstream, kept: Kept) -> World {
        World::build(name, upstream, settings(), Loads::AtOnce, kept, |_| {}).await
    }

    /// A world whose configuration is changed before it starts.
    pub async fn changed(
        name: &str,
        upstream: Upstream,
        settings: Settings,
        loads: Loads,
        change: impl FnOnce(&mut Started),
    ) -> World {
        World::build(name, upstream, settings, loads, Kept::NONE, change).await
    }

    async fn build(
        name: &str,
        upstream: Upstream,
        settings: Settings,
        loads: Loads,
        kept: Kept,
        change: impl FnOnce(&mut Started),
    ) -> World {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("gateway").join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        let journal = folder.join("run.jsonl");
        let mut started = started();
        change(&mut started);
        let catalogue = Catalogue::of(&started.configuration, &[]);
        let (send, batches) = mpsc::unbounded_channel();
        let setting = Setting {
            header: header(name),
            started,
            recorder: Journal::open(&journal, u64::MAX).unwrap(),
            learned: Box::new(|_| {}),
            batches: send,
            measured: Box::new(|_| {}),
            broken: Box::new(|violation| panic!("{violation}")),
        };
        let log = Arc::new(Mutex::new(Vec::new()));
        let (own, child, open) = (Arc::clone(&log), upstream.address, Arc::clone(&upstream.open));
        let (dispatcher, desk) =
            Dispatcher::start(Clock::start(), setting, |desk| Hands { desk, child, loads, kept, open, log: own })
                .unwrap();
        let around = Arc::new(Around { answered: Mutex::default(), phase: Mutex::new(Phase::Serving) });
        let gateway = Gateway::new(desk.clone(), settings, catalogue, around.clone(), batches);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let (own, token) = (gateway.clone(), shutdown.clone());
        let serving = tokio::spawn(async move { own.serve(listener, token).await });
        World { upstream, desk, gateway, around, log, address, shutdown, serving, dispatcher, journal }
    }

    pub fn client(&self) -> Client {
        Client { address: self.address }
    }

    pub async fn view(&self) -> View {
        self.desk.view().await.expect("the scheduler lives")
    }

    /// Waits until `fine` is true of the scheduler's picture.
    pub async fn until(&self, what: &str, fine: impl Fn(&View) -> bool) {
        let started = Instant::now();
        loop {
            let view = self.view().await;
            if fine(&view) {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{what} should come about: {view:#?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until nothing runs and nothing waits.
    pub async fn until_idle(&self) {
        self.until("an idle scheduler", |view| running(view) == 0 && waiting(view) == 0).await;
    }

    /// Waits until the gateway has told of `count` requests, and says what.
    pub async fn answered(&self, count: usize) -> Vec<Answered> {
        let started = Instant::now();
        loop {
            let answered = self.around.answered.lock().unwrap().clone();
            if answered.len() >= count {
                return answered;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{count} should be told of: {answered:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Whether the gateway serves, be it only to its end.
    pub fn is_serving(&self) -> bool {
        !self.serving.is_finished()
    }

    /// Ends everything; nothing may be left, and no rule have been broken.
    pub async fn close(self) -> String {
        self.until_idle().await;
        self.upstream.until_closed().await;
        self.shutdown.cancel();
        let served = tokio::time::timeout(Duration::from_secs(30), self.serving).await;
        served.expect("serving ends").expect("serving does not break").expect("serving is fine");
        self.desk.close();
        assert!(self.dispatcher.join(), "the scheduler's thread ends in good order");
        let journal = std::fs::read_to_string(self.journal).unwrap();
        let last = journal.lines().last().unwrap();
        assert!(last.contains("\"violations\":[]"), "{last}");
        journal
    }
}

/// Grants under way.
pub fn running(view: &View) -> u32 {
    view.devices.iter().flat_map(|device| &device.instances).map(|instance| instance.running).sum()
}

/// Jobs that wait.
pub fn waiting(view: &View) -> usize {
    view.queues.iter().map(|queue| queue.jobs).sum()
}

/// Whether a load is under way.
pub fn loading(view: &View) -> bool {
    view.devices.iter().flat_map(|device| &device.instances).any(|instance| instance.stage == Stage::Loading)
}
