//! Monitors: who is told what, when, and that a device whose tool hangs keeps nobody else waiting.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use windtunnel_core::{Bytes, DeviceId, DeviceKind, InstanceId, PressureLevel, Snapshot};
use windtunnel_live::{
    Watcher,
    monitor::{Figure, Listener, Monitors, Process, Reading, Source, Unreadable, Watched},
};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// Nobody polls so seldom; what is seen with it was asked for.
const NEVER: Duration = Duration::from_secs(3600);
const GPU: DeviceId = DeviceId(0);
const CPU: DeviceId = DeviceId(1);

#[derive(Debug, PartialEq)]
enum Said {
    Snapshot(Snapshot),
    Failed(DeviceId),
    Pressure(DeviceId, PressureLevel),
}

#[derive(Clone)]
struct Ear(Sender<Said>);

impl Listener for Ear {
    fn snapshot(&self, snapshot: Snapshot) {
        drop(self.0.send(Said::Snapshot(snapshot)));
    }

    fn snapshot_failed(&self, device: DeviceId) {
        drop(self.0.send(Said::Failed(device)));
    }

    fn pressure(&self, device: DeviceId, level: PressureLevel) {
        drop(self.0.send(Said::Pressure(device, level)));
    }
}

/// A card whose memory the test sets.
#[derive(Clone, Debug, Default)]
struct Card(Arc<Mutex<World>>);

#[derive(Debug, Default)]
struct World {
    used: u64,
    processes: BTreeMap<u32, u64>,
    pressure: Option<PressureLevel>,
    broken: bool,
    looks: u64,
}

impl Card {
    fn set(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.0.lock().unwrap());
    }

    fn looks(&self) -> u64 {
        self.0.lock().unwrap().looks
    }
}

impl Source for Card {
    fn read(&mut self, pids: &[u32]) -> Result<Reading, Unreadable> {
        let mut world = self.0.lock().unwrap();
        world.looks += 1;
        if world.broken {
            return Err(Unreadable("the tool fell over".to_owned()));
        }
        let figure = |bytes| Some(Figure::new(bytes, "test"));
        let of = |pid: &u32| Process { pid: *pid, used: world.processes.get(pid).copied().and_then(figure) };
        Ok(Reading {
            total: figure(16 << 30),
            used: figure(world.used),
            processes: pids.iter().map(of).collect(),
            pressure: world.pressure,
            swapped: None,
        })
    }
}

/// A tool that hangs until the test ends.
#[derive(Debug)]
struct Hung(Receiver<()>);

impl Source for Hung {
    fn read(&mut self, _pids: &[u32]) -> Result<Reading, Unreadable> {
        let _ = self.0.recv();
        Err(Unreadable("too late".to_owned()))
    }
}

struct Bench {
    card: Card,
    monitors: Monitors,
    said: Receiver<Said>,
}

fn watched(device: DeviceId, kind: DeviceKind, source: Box<dyn Source>, poll: Duration) -> Watched {
    Watched { device, name: format!("{device}"), kind, source: Ok(source), poll }
}

fn bench(kind: DeviceKind, poll: Duration) -> Bench {
    let card = Card::default();
    let (send, said) = mpsc::channel();
    let monitors = Monitors::start(&Ear(send), vec![watched(GPU, kind, Box::new(card.clone()), poll)]).unwrap();
    Bench { card, monitors, said }
}

impl Bench {
    fn next(&self) -> Said {
        self.said.recv_timeout(LONG).expect("something is said")
    }

    /// The next snapshot's figures: in use, and of each process.
    fn snapshot(&self) -> (Option<u64>, Vec<(u32, Option<u64>)>) {
        loop {
            if let Said::Snapshot(snapshot) = self.next() {
                let processes = snapshot.processes.iter().map(|one| (one.instance.0, one.used.map(Bytes::get)));
                return (snapshot.used.map(Bytes::get), processes.collect());
            }
        }
    }
}

#[test]
fn every_device_is_read_once_at_the_start_and_whenever_it_is_asked_for() {
    let bench = bench(DeviceKind::Discrete, NEVER);
    assert_eq!(bench.snapshot(), (Some(0), Vec::new()));
    bench.card.set(|world| world.used = 5);
    bench.monitors.read(GPU);
    assert_eq!(bench.snapshot(), (Some(5), Vec::new()));
    bench.monitors.read(GPU);
    assert_eq!(bench.snapshot(), (Some(5), Vec::new()), "also where nothing has changed");
    let [health] = &bench.monitors.health()[..] else { panic!("one device") };
    assert_eq!((health.device, health.trouble.clone()), (GPU, None));
    assert_eq!(health.last.as_ref().and_then(|(_, reading)| reading.used), Some(Figure::new(5, "test")));
}

#[test]
fn a_device_without_models_is_left_alone() {
    let bench = bench(DeviceKind::Discrete, Duration::from_millis(1));
    bench.snapshot();
    // What has just been news is looked at a few times more; then nobody looks.
    let mut before = bench.card.looks();
    let settled = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let looks = bench.card.looks();
        if looks == before {
            break;
        }
        before = looks;
        assert!(settled.elapsed() < LONG, "it is looked at for ever");
    }
    bench.monitors.started(InstanceId(3), GPU, 77);
    while bench.card.looks() < before + 20 {
        assert!(settled.elapsed() < LONG, "with a model it is polled");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn processes_are_instances_and_unknown_is_not_zero() {
    let bench = bench(DeviceKind::Discrete, NEVER);
    bench.snapshot();
    bench.card.set(|world| {
        world.used = 700;
        world.processes.insert(77, 600);
    });
    bench.monitors.started(InstanceId(3), GPU, 77);
    bench.monitors.started(InstanceId(4), GPU, 78);
    bench.monitors.read(GPU);
    assert_eq!(bench.snapshot(), (Some(700), vec![(3, Some(600)), (4, None)]));
    bench.monitors.ended(InstanceId(3));
    bench.monitors.read(GPU);
    assert_eq!(bench.snapshot(), (Some(700), vec![(4, None)]));
    assert_eq!(bench.monitors.footprint(InstanceId(3)), None);
}

#[test]
fn a_footprint_is_read_afresh() {
    let bench = bench(DeviceKind::Discrete, NEVER);
    bench.snapshot();
    bench.monitors.started(InstanceId(3), GPU, 77);
    bench.card.set(|world| world.processes.extend([(77, 600)]));
    assert_eq!(bench.monitors.footprint(InstanceId(3)), Some(Bytes::new(600)));
    bench.card.set(|world| world.processes.extend([(77, 650)]));
    assert_eq!(bench.monitors.footprint(InstanceId(3)), Some(Bytes::new(650)));
}

#[test]
fn where_nobody_tells_processes_apart_a_load_alone_is_weighed_by_the_difference_it_makes() {
    let bench = bench(DeviceKind::Discrete, NEVER);
    bench.card.set(|world| world.used = 100);
    bench.monitors.read(GPU);
    while bench.snapshot().0 != Some(100) {}
    bench.monitors.started(InstanceId(3), GPU, 77);
    bench.card.set(|world| world.used = 900);
    assert_eq!(bench.monitors.footprint(InstanceId(3)), Some(Bytes::new(800)));
    // Two that come together cannot be told apart.
    bench.monitors.started(InstanceId(4), GPU, 78);
    bench.monitors.started(InstanceId(5), GPU, 79);
    bench.card.set(|world| world.used = 2_000);
    assert_eq!(bench.monitors.footprint(InstanceId(4)), None);
    assert_eq!(bench.monitors.footprint(InstanceId(5)), None);
}

#[test]
fn the_machines_own_memory_is_nobodys_difference() {
    let bench = bench(DeviceKind::Unified, NEVER);
    bench.snapshot();
    bench.monitors.started(InstanceId(3), GPU, 77);
    bench.card.set(|world| world.used = 900);
    assert_eq!(bench.monitors.footprint(InstanceId(3)), None);
}

#[test]
fn scarcity_is_said_when_it_changes_and_taken_back() {
    let bench = bench(DeviceKind::Unified, Duration::from_millis(1));
    bench.card.set(|world| world.pressure = Some(PressureLevel::Normal));
    bench.snapshot();
    bench.card.set(|world| world.pressure = Some(PressureLevel::Critical));
    bench.monitors.read(GPU);
    let pressure = || loop {
        if let Said::Pressure(GPU, level) = bench.next() {
            return level;
        }
    };
    assert_eq!(pressure(), PressureLevel::Critical);
    // Nobody asks, and no model is there: still it is seen.
    std::thread::sleep(Duration::from_millis(100));
    bench.card.set(|world| world.pressure = Some(PressureLevel::Normal));
    assert_eq!(pressure(), PressureLevel::Normal);
}

#[test]
fn a_device_that_cannot_be_read_says_so_to_those_who_ask() {
    let bench = bench(DeviceKind::Discrete, NEVER);
    bench.snapshot();
    bench.card.set(|world| world.broken = true);
    bench.monitors.read(GPU);
    assert_eq!(bench.next(), Said::Failed(GPU));
    let [health] = &bench.monitors.health()[..] else { panic!("one device") };
    assert_eq!(health.trouble.as_deref(), Some("the tool fell over"));
    bench.monitors.read(GPU);
    assert_eq!(bench.next(), Said::Failed(GPU));
    bench.card.set(|world| world.broken = false);
    bench.monitors.read(GPU);
    assert_eq!(bench.snapshot().0, Some(0));
    assert_eq!(bench.monitors.health()[0].trouble, None);
}

#[test]
fn a_tool_that_hangs_keeps_nobody_else_waiting() {
    let (_end, hung) = mpsc::channel();
    let (send, said) = mpsc::channel();
    let card = Card::default();
    let devices = vec![
        watched(GPU, DeviceKind::Discrete, Box::new(Hung(hung)), NEVER),
        watched(CPU, DeviceKind::Unified, Box::new(card), NEVER),
    ];
    let monitors = Monitors::start(&Ear(send), devices).unwrap();
    let of_cpu = |said: Said| matches!(said, Said::Snapshot(snapshot) if snapshot.device == CPU);
    assert!(of_cpu(said.recv_timeout(LONG).unwrap()));
    (0..1_000).for_each(|_| monitors.read(GPU));
    monitors.read(CPU);
    assert!(of_cpu(said.recv_timeout(LONG).unwrap()));
    monitors.started(InstanceId(1), GPU, 7);
    // It waits for a second, not for ever.
    assert_eq!(monitors.footprint(InstanceId(1)), None);
    let health = monitors.health();
    assert!(health[0].looking.is_some() && health[0].last.is_none());
    assert!(health[1].looking.is_none() && health[1].last.is_some());
}

#[test]
fn a_device_that_nobody_can_read_is_there_all_the_same() {
    let (send, said) = mpsc::channel();
    let source = Err(Unreadable("no driver".to_owned()));
    let watched = Watched { device: GPU, name: "gpu0".to_owned(), kind: DeviceKind::Discrete, source, poll: NEVER };
    let monitors = Monitors::start(&Ear(send), vec![watched]).unwrap();
    assert_eq!(said.recv_timeout(LONG), Ok(Said::Failed(GPU)));
    monitors.read(GPU);
    assert_eq!(said.recv_timeout(LONG), Ok(Said::Failed(GPU)));
    assert_eq!(monitors.health()[0].trouble.as_deref(), Some("no driver"));
}
