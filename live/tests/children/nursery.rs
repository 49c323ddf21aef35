//! A supervisor, and everything that is said to others.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use windtunnel_core::{
    Attempt, Bytes, Configuration, Device, DeviceId, DeviceKind, Effects, Input, InstanceId, ModelId, Policy, Started,
    Time,
};
use windtunnel_live::{
    Clock, Dispatcher, LoadOrder, Runtimes, Watcher,
    children::{
        Alert, ChildDevice, ChildModel, ChildView, Children, ChildrenHandle, Limits, Purpose, Select, Settings, Witness,
    },
    dispatcher::Setting,
    footprint::Pool,
    journal::Log,
};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header},
};

pub const FAKE: &str = env!("CARGO_BIN_EXE_fake-llama-server");
/// Nothing here takes so long.
pub const LONG: Duration = Duration::from_secs(60);
/// What the watcher says that an instance takes.
pub const FOOTPRINT: Bytes = Bytes::from_mib(123);

/// The instance that tests load, unless they say another.
pub const FIRST: InstanceId = InstanceId(0);

pub struct Nursery {
    pub children: Children<()>,
    pub handle: ChildrenHandle<()>,
    pub heard: Arc<Heard>,
    pub folder: PathBuf,
    pub runtime: tokio::runtime::Runtime,
    facts: Receiver<Input>,
    dispatcher: Dispatcher,
    desk: windtunnel_live::Desk<()>,
}

/// What the watcher and the witness hear.
#[derive(Default)]
pub struct Heard {
    pub watched: Mutex<Vec<String>>,
    pub alerts: Mutex<Vec<Alert>>,
    pub lines: Mutex<Vec<String>>,
}

impl Watcher for Heard {
    fn read(&self, device: DeviceId) {
        self.watched.lock().unwrap().push(format!("read {device}"));
    }

    fn started(&self, instance: InstanceId, _device: DeviceId, _pid: u32) {
        self.watched.lock().unwrap().push(format!("started {instance}"));
    }

    fn ended(&self, instance: InstanceId) {
        self.watched.lock().unwrap().push(format!("ended {instance}"));
    }

    fn footprint(&self, _instance: InstanceId) -> Option<Bytes> {
        Some(FOOTPRINT)
    }
}

impl Witness for Heard {
    fn alert(&self, alert: Alert) {
        self.alerts.lock().unwrap().push(alert);
    }

    fn said(&self, _model: ModelId, _instance: InstanceId, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }
}

/// Passes on what the scheduler is told.
struct Facts(Sender<Input>);

impl Recorder for Facts {
    fn begin(&mut self, _header: &Header) -> io::Result<()> {
        Ok(())
    }

    fn step(&mut self, _t: Time, input: &Input, _effects: &Effects) -> io::Result<()> {
        self.0.send(input.clone()).unwrap_or_default();
        Ok(())
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}

impl Log for Facts {
    fn wants_state(&mut self) -> bool {
        false
    }
}

/// The scheduler of these tests wants nothing; they give the orders.
struct Nothing;

impl Runtimes for Nothing {
    fn load(&mut self, _order: LoadOrder) {}
    fn stop(&mut self, _attempt: Attempt, _instance: InstanceId) {}
    fn abort_load(&mut self, _attempt: Attempt, _instance: InstanceId) {}
    fn read(&mut self, _device: DeviceId) {}
}

/// A fake server with these faults.
pub fn model(faults: &[&str]) -> ChildModel {
    ChildModel {
        name: "small".to_owned(),
        program: FAKE.into(),
        file: "/models/small.gguf".into(),
        projector: None,
        purpose: Purpose::Text,
        context: Some(4096),
        slots: 2,
        pool: Pool::Divided,
        gpu_layers: None,
        arguments: faults.iter().map(|&fault| fault.to_owned()).collect(),
        environment: Vec::new(),
    }
}

/// A nursery with that model.
pub fn nursery(name: &str, faults: &[&str]) -> Nursery {
    nursery_with(name, model(faults), |_| {})
}

/// Its settings, after `change`.
pub fn settings(name: &str, model: ChildModel, change: impl FnOnce(&mut Limits)) -> Settings {
    let mut limits = Limits::default();
    change(&mut limits);
    Settings {
        own_program: FAKE.into(),
        state_folder: folder(name),
        devices: vec![ChildDevice { kind: DeviceKind::Discrete, select: Select::Only, environment: Vec::new() }],
        models: vec![model],
        limits,
    }
}

pub fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("children").join(name)
}

pub fn nursery_with(name: &str, model: ChildModel, change: impl FnOnce(&mut Limits)) -> Nursery {
    let settings = settings(name, model, change);
    drop(std::fs::remove_dir_all(&settings.state_folder));
    std::fs::create_dir_all(&settings.state_folder).unwrap();
    opened(settings)
}

/// Has another supervisor begin in the folder of one that was; what it says of those it finds.
pub fn reopened(name: &str) -> Vec<Alert> {
    let nursery = opened(settings(name, model(&[]), |_| {}));
    let alerts = nursery.heard.alerts.lock().unwrap().clone();
    nursery.close();
    alerts
}

fn opened(settings: Settings) -> Nursery {
    let folder = settings.state_folder.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (tell, facts) = mpsc::channel();
    let (dispatcher, desk) = Dispatcher::start(Clock::start(), setting(tell), |_| Nothing).unwrap();
    let heard = Arc::new(Heard::default());
    let (watcher, witness) = (Arc::clone(&heard) as Arc<dyn Watcher>, Arc::clone(&heard) as Arc<dyn Witness>);
    let children = Children::start(desk.clone(), settings, watcher, witness, runtime.handle().clone()).unwrap();
    let handle = children.handle();
    Nursery { children, handle, heard, folder, runtime, facts, dispatcher, desk }
}

fn setting(tell: Sender<Input>) -> Setting<(), Facts> {
    let configuration = Configuration {
        policy: Policy::default(),
        devices: vec![Device::new("card".to_owned(), DeviceKind::Discrete, None)],
        models: Vec::new(),
        families: Vec::new(),
        labels: Vec::new(),
        seed: 0,
    };
    Setting {
        header: crate::header::header("children"),
        started: Started { configuration, profiles: Vec::new(), estimates: Vec::new(), residents: Vec::new() },
        recorder: Facts(tell),
        learned: Box::new(|_| {}),
        batches: tokio::sync::mpsc::unbounded_channel().0,
        measured: Box::new(|_| {}),
        broken: Box::new(|violation| panic!("{violation}")),
    }
}

impl Nursery {
    /// Orders a load of the only model. A scheduler gives no number twice; here its last owner has left at least.
    pub fn load(&mut self, number: u32) {
        let there = |child: &ChildView| child.instance == InstanceId(number);
        until("the last of that number has left", || !self.handle.list().iter().any(there));
        self.children.load(LoadOrder {
            attempt: Attempt(number.into()),
            instance: InstanceId(number),
            model: ModelId(0),
            device: DeviceId(0),
            reservation: FOOTPRINT,
        });
    }

    /// Orders one and waits until it is ready.
    pub fn loaded(&mut self) -> ChildView {
        self.load(0);
        let ready = Input::LoadFinished { attempt: Attempt(0), instance: FIRST, footprint: Some(FOOTPRINT) };
        assert_eq!(self.fact(), ready, "{:?}", self.heard.lines.lock().unwrap());
        self.view(FIRST)
    }

    pub fn stop(&mut self, attempt: u64) {
        self.children.stop(Attempt(attempt), FIRST);
    }

    /// The next that the scheduler is told.
    pub fn fact(&self) -> Input {
        loop {
            let fact = self.facts.recv_timeout(LONG).expect("something is said");
            if !matches!(fact, Input::Started(_) | Input::TimerDue) {
                return fact;
            }
        }
    }

    /// Nothing more has been said.
    pub fn silent(&self) {
        let ours = |fact: &Input| matches!(fact, Input::Started(_) | Input::TimerDue);
        assert_eq!(self.facts.try_iter().find(|fact| !ours(fact)), None);
    }

    pub fn view(&self, instance: InstanceId) -> ChildView {
        self.handle.list().into_iter().find(|child| child.instance == instance).expect("there is such a child")
    }

    pub fn close(self) {
        assert!(self.runtime.block_on(self.handle.shut_down(LONG)), "all children go: {:?}", self.handle.list());
        self.desk.close();
        assert!(self.dispatcher.join(), "the scheduler's thread ends in good order");
    }

    /// Every line of the file of starts: a process and its arguments.
    pub fn starts(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("starts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The process and the address of a child.
pub fn process(view: &ChildView) -> (u32, SocketAddr) {
    view.process.expect("it has a process")
}

/// Whether there is such a process, a dead one left out.
pub fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Waits until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn kill(pid: u32, signal: &str) {
    assert!(std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}
