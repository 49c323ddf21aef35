//! What a machine does by itself, and what faults make of it. Times are in milliseconds, memory in GiB.

mod faults;
mod natural;

use windtunnel_config::{Fault, FaultKind, Footprint, Occurrence, Scenario, Upkeep};
use windtunnel_core::{Attempt, Bytes, DeviceId, DeviceKind, Input, InstanceId, ModelId, Snapshot, Span, Time};

use super::{Happened, Machine};
use crate::{faults::Faults, fixtures::scenario};

/// A card of 16 GiB that loads in 500 ms and at 4 GiB a second, stops in 200 ms and frees memory 100 ms later. Its model
/// takes 8 GiB.
pub struct Bench {
    pub machine: Machine,
    faults: Faults,
    pub now: u64,
    story: Vec<String>,
}

pub fn world() -> Scenario {
    let mut world = scenario(1);
    world.configuration.devices[0].memory = Some(gib(16.0));
    world.cards[0].upkeep =
        Upkeep { fixed: ms(500), bandwidth: Some(gib(4.0)), stop: ms(200), release: ms(100), poll: ms(500) };
    world.footprints = vec![Footprint { truth: Some(gib(8.0)), ..Footprint::default() }];
    world
}

pub fn unified() -> Scenario {
    let mut world = world();
    world.configuration.devices[0].kind = DeviceKind::Unified;
    world
}

pub fn fault(kind: FaultKind, when: Occurrence) -> Fault {
    Fault { kind, devices: None, model: None, when, from: Span::ZERO, to: None }
}

/// The ordinary world in which `kind` strikes on every occasion.
pub fn always(kind: FaultKind) -> Scenario {
    Scenario { faults: vec![fault(kind, Occurrence::Always)], ..world() }
}

pub fn gib(gib: f64) -> Bytes {
    Bytes::new((gib * f64::from(1 << 30)) as u64)
}

pub fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

impl Bench {
    pub fn new(scenario: &Scenario) -> Bench {
        let faults = Faults::new(scenario, 0);
        let machine = Machine::new(scenario, DeviceId(0), &faults);
        Bench { machine, faults, now: 0, story: Vec::new() }
    }

    fn time(&self) -> Time {
        Time::ZERO.after(ms(self.now))
    }

    /// Orders a load of so many GiB that becomes instance `id`.
    pub fn load(&mut self, id: u32, footprint: f64) -> &mut Bench {
        let (now, model) = (self.time(), ModelId(0));
        let fate = self.faults.load(now, model, DeviceId(0));
        let footprint = Some(gib(footprint));
        self.machine.load(now, Attempt(u64::from(id)), (InstanceId(id), model), footprint, fate);
        self.flush()
    }

    /// Has instance `id` loaded from the start.
    pub fn resident(&mut self, id: u32) -> &mut Bench {
        let fate = self.faults.resident(ModelId(0), DeviceId(0));
        self.machine.settle_in(InstanceId(id), ModelId(0), Some(gib(8.0)), fate);
        self.flush()
    }

    pub fn stop(&mut self, id: u32) -> &mut Bench {
        let now = self.time();
        let fate = self.faults.stop(now, ModelId(0), DeviceId(0));
        assert!(self.machine.stop(now, InstanceId(id), Attempt(u64::from(100 + id)), (fate.extra, fate.least)));
        self.flush()
    }

    pub fn abort(&mut self, id: u32) -> &mut Bench {
        assert!(self.machine.abort(self.time(), InstanceId(id), Attempt(u64::from(id))));
        self.flush()
    }

    /// Asks for a reading.
    pub fn read(&mut self) -> &mut Bench {
        let reading = self.machine.read(self.time());
        let line = reading.map_or_else(|| "silence".to_owned(), |input| told(&input));
        self.story.push(format!("{} asked {line}", self.now));
        self.flush()
    }

    /// Lets everything happen until `until`.
    pub fn until(&mut self, until: u64) -> &mut Bench {
        loop {
            let next = self.machine.next().min(self.faults.next());
            let nanos = next.as_nanos();
            if nanos > until * 1_000_000 {
                break;
            }
            assert_eq!(nanos % 1_000_000, 0, "{next} is no whole millisecond");
            self.now = nanos / 1_000_000;
            while let Some((fault, bytes, over)) = self.faults.growth(next) {
                self.machine.grow(next, bytes, over, |model| fault.concerns(model, DeviceId(0)));
            }
            self.flush();
        }
        self.now = until;
        self
    }

    fn flush(&mut self) -> &mut Bench {
        let now = self.time();
        while let Some(happened) = self.machine.get_on(now, &mut self.faults) {
            self.story.push(format!("{} {}", self.now, line(&happened)));
        }
        self
    }

    /// What has happened since the last time this was asked.
    pub fn story(&mut self) -> Vec<String> {
        std::mem::take(&mut self.story)
    }

    /// The same without readings.
    pub fn deeds(&mut self) -> Vec<String> {
        self.story().into_iter().filter(|line| !line.contains("used")).collect()
    }

    pub fn is_overcommitted(&self) -> bool {
        self.machine.is_overcommitted(self.time())
    }
}

fn line(happened: &Happened) -> String {
    match happened {
        Happened::Loaded { instance, footprint, .. } => {
            format!("loaded {} {}", instance.0, size(*footprint))
        }
        Happened::Exited { instance, cause } => format!("exited {} {cause:?}", instance.0),
        Happened::Told(input) => told(input),
    }
}

fn told(input: &Input) -> String {
    match input {
        Input::LoadFailed { instance, cause, .. } => format!("failed {} {cause:?}", instance.0),
        Input::StopFinished { instance, .. } => format!("stopped {}", instance.0),
        Input::SnapshotFailed { .. } => "unread".to_owned(),
        Input::Pressure { level, .. } => format!("pressure {level:?}"),
        Input::Snapshot(Snapshot { used, processes, .. }) => {
            let processes: Vec<String> =
                processes.iter().map(|one| format!("{}:{}", one.instance.0, size(one.used))).collect();
            format!("used {} [{}]", size(*used), processes.join(" "))
        }
        other => panic!("unexpected {other:?}"),
    }
}

fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "?".to_owned(), |bytes| format!("{}", bytes.get() as f64 / f64::from(1 << 30)))
}
