//! The ledger of one card's memory, and who takes it: the same times as beside a card of the simulator.
//!
//! A load starts its process (a fixed time), then fills memory up to the model's footprint; loads that fill at one time
//! share the card's bandwidth. A stop takes its time, and the memory of a process is free a while after its end. The
//! memory is read when the scheduler asks, and at multiples of the polling time while it changes or differs from what was
//! last shown.

use windtunnel_config::Upkeep;
use windtunnel_core::{
    Attempt, Bytes, DeviceId, DeviceKind, InstanceId, LoadFailure, ModelId, PressureLevel, ProcessMemory, Snapshot,
    Span, Time,
};

/// Percents of the memory from which the pressure of unified memory is raised, as in the simulator.
const WARN_PERCENT: u128 = 85;
const CRITICAL_PERCENT: u128 = 95;

/// What surrounds the work on one card.
#[derive(Debug)]
pub struct Machine {
    device: DeviceId,
    kind: DeviceKind,
    total: Option<Bytes>,
    upkeep: Upkeep,
    processes: Vec<Process>,
    /// Bytes of processes that have ended, and until when they are taken.
    releases: Vec<(u64, Time)>,
    /// Up to when loads have filled.
    since: Time,
    poll_at: Option<Time>,
    /// What was last shown.
    told: Option<Snapshot>,
    pressure: PressureLevel,
}

#[derive(Debug)]
struct Process {
    instance: InstanceId,
    model: ModelId,
    footprint: Option<Bytes>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Starting { attempt: Attempt, until: Time },
    Filling { attempt: Attempt, left: f64 },
    Ready,
    Leaving { as_what: Leaving, until: Time, holds: u64 },
}

/// What the end of a process means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// A stop is done.
    Stop(Attempt),
    /// A load was broken off.
    Load(Attempt),
}

/// Something others have to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A model is loaded.
    Loaded(Attempt, InstanceId, ModelId, Option<Bytes>),
    /// A load came to nothing.
    Failed(Attempt, InstanceId, LoadFailure),
    /// A stop is done.
    Stopped(Attempt, InstanceId),
    /// The memory was read.
    Read(Snapshot),
    /// The pressure has changed.
    Pressed(PressureLevel),
}

impl Machine {
    /// A machine without processes.
    pub fn new(device: DeviceId, kind: DeviceKind, total: Option<Bytes>, upkeep: Upkeep) -> Machine {
        Machine {
            device,
            kind,
            total,
            upkeep,
            processes: Vec::new(),
            releases: Vec::new(),
            since: Time::ZERO,
            poll_at: None,
            told: None,
            pressure: PressureLevel::Normal,
        }
    }

    /// What holds from now on of loads and stops.
    pub fn change(&mut self, kind: DeviceKind, total: Option<Bytes>, upkeep: Upkeep) {
        (self.kind, self.total, self.upkeep) = (kind, total, upkeep);
    }

    /// Begins a load.
    pub fn load(
        &mut self,
        now: Time,
        attempt: Attempt,
        instance: InstanceId,
        (model, footprint): (ModelId, Option<Bytes>),
    ) {
        self.fill(now);
        let phase = Phase::Starting { attempt, until: now.after(self.upkeep.fixed) };
        self.processes.push(Process { instance, model, footprint, phase });
    }

    /// Begins a stop; whether there is such a process.
    pub fn stop(&mut self, now: Time, instance: InstanceId, attempt: Attempt) -> bool {
        self.leave(now, instance, Leaving::Stop(attempt))
    }

    /// Breaks a load off, if it is still under way.
    pub fn abort(&mut self, now: Time, instance: InstanceId, attempt: Attempt) {
        let loading = self.processes.iter().any(|process| match process.phase {
            Phase::Starting { attempt: own, .. } | Phase::Filling { attempt: own, .. } => own == attempt,
            Phase::Ready | Phase::Leaving { .. } => false,
        });
        if loading {
            self.leave(now, instance, Leaving::Load(attempt));
        }
    }

    fn leave(&mut self, now: Time, instance: InstanceId, as_what: Leaving) -> bool {
        self.fill(now);
        let until = now.after(self.upkeep.stop);
        let Some(process) = self.processes.iter_mut().find(|process| process.instance == instance) else {
            return false;
        };
        process.phase = Phase::Leaving { as_what, until, holds: process.holds() };
        true
    }

    /// A process ends at this moment; whether there was one.
    pub fn exit(&mut self, now: Time, instance: InstanceId) -> bool {
        self.fill(now);
        let place = self.processes.iter().position(|process| process.instance == instance);
        place.map(|place| self.end(now, place)).is_some()
    }

    fn end(&mut self, now: Time, place: usize) {
        let bytes = self.processes.remove(place).holds();
        if bytes > 0 && !self.upkeep.release.is_zero() {
            self.releases.push((bytes, now.after(self.upkeep.release)));
        }
    }

    /// When something comes next.
    pub fn next(&self) -> Option<Time> {
        let processes = self.processes.iter().filter_map(|process| match process.phase {
            Phase::Starting { until, .. } | Phase::Leaving { until, .. } => Some(until),
            Phase::Filling { .. } | Phase::Ready => None,
        });
        let releases = self.releases.iter().map(|(_, until)| *until);
        processes.chain(releases).chain(self.filled()).chain(self.poll_at).min()
    }

    /// Lets one thing happen that is due; `None`: there is nothing more as of now.
    pub fn get_on(&mut self, now: Time) -> Option<Happened> {
        self.fill(now);
        while let Some(place) = self.due(now) {
            if let Some(happened) = self.next_phase(now, place) {
                return Some(happened);
            }
        }
        self.releases.retain(|(_, until)| *until > now);
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = None;
            return Some(Happened::Read(self.read(now)));
        }
        self.mind(now);
        self.press()
    }

    fn due(&self, now: Time) -> Option<usize> {
        let slack = 0.5e-9 * self.pace();
        self.processes.iter().position(|process| match process.phase {
            Phase::Filling { left, .. } => left <= slack,
            Phase::Starting { until, .. } | Phase::Leaving { until, .. } => until <= now,
            Phase::Ready => false,
        })
    }

    fn next_phase(&mut self, now: Time, place: usize) -> Option<Happened> {
        let limited = self.upkeep.bandwidth.is_some();
        let process = self.processes.get_mut(place)?;
        let instance = process.instance;
        match process.phase {
            Phase::Starting { attempt, .. } => {
                let left = if limited { process.footprint.map_or(0.0, |bytes| bytes.get() as f64) } else { 0.0 };
                process.phase = Phase::Filling { attempt, left };
                None
            }
            Phase::Filling { attempt, .. } => {
                process.phase = Phase::Ready;
                let (model, footprint) = (process.model, process.footprint);
                if self.does_not_fit() {
                    self.end(now, place);
                    return Some(Happened::Failed(attempt, instance, LoadFailure::OutOfMemory));
                }
                Some(Happened::Loaded(attempt, instance, model, footprint))
            }
            Phase::Leaving { as_what, .. } => {
                self.end(now, place);
                Some(match as_what {
                    Leaving::Stop(attempt) => Happened::Stopped(attempt, instance),
                    Leaving::Load(attempt) => Happened::Failed(attempt, instance, LoadFailure::Stopped),
                })
            }
            Phase::Ready => None,
        }
    }

    fn does_not_fit(&self) -> bool {
        self.kind == DeviceKind::Discrete && self.total.is_some_and(|total| self.taken() > total.get())
    }

    fn taken(&self) -> u64 {
        let left_behind = self.releases.iter().map(|(bytes, _)| *bytes);
        self.processes.iter().map(Process::holds).chain(left_behind).fold(0, u64::saturating_add)
    }

    /// Reads the memory.
    pub fn read(&mut self, now: Time) -> Snapshot {
        self.fill(now);
        let snapshot = self.picture();
        self.told = Some(snapshot.clone());
        snapshot
    }

    fn picture(&self) -> Snapshot {
        let used = Bytes::new(self.taken());
        let process = |process: &Process| ProcessMemory {
            instance: process.instance,
            used: process.footprint.map(|_| Bytes::new(process.holds())),
        };
        Snapshot {
            device: self.device,
            total: self.total,
            used: self.total.map(|total| used.min(total)),
            processes: self.processes.iter().map(process).collect(),
        }
    }

    /// Sees to it that the memory is read as long as there is something to see.
    fn mind(&mut self, now: Time) {
        if self.total.is_none() {
            return;
        }
        let changing = self.processes.iter().any(|process| process.phase != Phase::Ready);
        let news = changing || !self.releases.is_empty() || self.told.as_ref() != Some(&self.picture());
        if !news {
            self.poll_at = None;
        } else if self.poll_at.is_none() && !self.upkeep.poll.is_zero() {
            let count = now.as_nanos() / self.upkeep.poll.as_nanos() + 1;
            self.poll_at = Some(Time::ZERO.after(self.upkeep.poll.times(count)));
        }
    }

    fn press(&mut self) -> Option<Happened> {
        let (DeviceKind::Unified, Some(total)) = (self.kind, self.total) else { return None };
        let percent = u128::from(self.taken()) * 100 / u128::from(total.get().max(1));
        let level = match percent {
            CRITICAL_PERCENT.. => PressureLevel::Critical,
            WARN_PERCENT..CRITICAL_PERCENT => PressureLevel::Warn,
            0..WARN_PERCENT => PressureLevel::Normal,
        };
        let changed = level != self.pressure;
        self.pressure = level;
        changed.then_some(Happened::Pressed(level))
    }

    /// Lets loads fill memory up to `now`.
    fn fill(&mut self, now: Time) {
        let elapsed = now.since(self.since).as_nanos();
        self.since = self.since.max(now);
        let by = self.pace() * 1e-9 * elapsed as f64;
        for process in &mut self.processes {
            if let Phase::Filling { left, .. } = &mut process.phase {
                *left -= by;
            }
        }
    }

    /// Bytes a second that each load that fills gets.
    fn pace(&self) -> f64 {
        let filling = self.processes.iter().filter(|process| matches!(process.phase, Phase::Filling { .. })).count();
        self.upkeep.bandwidth.map_or(f64::MAX, |bandwidth| bandwidth.get() as f64) / filling.max(1) as f64
    }

    /// When the next load has all its bytes.
    fn filled(&self) -> Option<Time> {
        let left = self.processes.iter().filter_map(|process| match process.phase {
            Phase::Filling { left, .. } => Some(left.max(0.0)),
            Phase::Starting { .. } | Phase::Ready | Phase::Leaving { .. } => None,
        });
        let rest = left.reduce(f64::min)? / self.pace() * 1e9;
        Some(self.since.after(Span::from_nanos((rest + 0.5) as u64)))
    }
}

impl Process {
    fn holds(&self) -> u64 {
        let footprint = self.footprint.map_or(0, Bytes::get);
        match self.phase {
            Phase::Starting { .. } => 0,
            Phase::Filling { left, .. } => footprint.saturating_sub(left.ceil().max(0.0) as u64),
            Phase::Ready => footprint,
            Phase::Leaving { holds, .. } => holds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine() -> Machine {
        let bandwidth = Some(Bytes::new(GIB));
        let [fixed, stop, release] = [100, 50, 200].map(Span::from_millis);
        let upkeep = Upkeep { fixed, bandwidth, stop, release, poll: Span::from_secs(100) };
        Machine::new(DeviceId(0), DeviceKind::Discrete, Some(Bytes::new(8 * GIB)), upkeep)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO.after(Span::from_millis(millis))
    }

    /// Lets time pass from event to event; what happened, and when in milliseconds.
    fn run(machine: &mut Machine, until: u64) -> Vec<(u64, Happened)> {
        let mut all = Vec::new();
        while let Some(next) = machine.next().filter(|next| *next <= at(until)) {
            while let Some(happened) = machine.get_on(next) {
                all.push((next.as_nanos() / 1_000_000, happened));
            }
        }
        all
    }

    fn load(machine: &mut Machine, now: Time, number: u32, gib: u64) {
        machine.load(now, Attempt(number.into()), InstanceId(number), (ModelId(number), Some(Bytes::new(gib * GIB))));
    }

    #[test]
    fn loads_share_the_bandwidth_and_stops_release_late() {
        let mut machine = machine();
        load(&mut machine, at(0), 1, 1);
        load(&mut machine, at(0), 2, 2);
        let loaded = |number: u32, gib: u64| {
            Happened::Loaded(Attempt(number.into()), InstanceId(number), ModelId(number), Some(Bytes::new(gib * GIB)))
        };
        assert_eq!(run(&mut machine, 5_000), [(2_100, loaded(1, 1)), (3_100, loaded(2, 2))]);
        assert!(machine.stop(at(6_000), InstanceId(1), Attempt(3)));
        assert_eq!(run(&mut machine, 6_100), [(6_050, Happened::Stopped(Attempt(3), InstanceId(1)))]);
        assert_eq!(machine.read(at(6_100)).used, Some(Bytes::new(3 * GIB)));
        run(&mut machine, 6_300);
        let read = machine.read(at(6_300));
        assert_eq!(read.used, Some(Bytes::new(2 * GIB)));
        assert_eq!(read.processes, [ProcessMemory { instance: InstanceId(2), used: Some(Bytes::new(2 * GIB)) }]);
    }

    #[test]
    fn a_load_that_does_not_fit_fails_at_its_end_and_one_broken_off_says_so() {
        let mut machine = machine();
        load(&mut machine, at(0), 1, 9);
        let out = Happened::Failed(Attempt(1), InstanceId(1), LoadFailure::OutOfMemory);
        assert_eq!(run(&mut machine, 20_000), [(9_100, out)]);
        load(&mut machine, at(20_000), 2, 1);
        machine.abort(at(20_500), InstanceId(2), Attempt(2));
        let stopped = Happened::Failed(Attempt(2), InstanceId(2), LoadFailure::Stopped);
        assert_eq!(run(&mut machine, 30_000), [(20_550, stopped)]);
        assert_eq!(machine.read(at(30_000)).used, Some(Bytes::ZERO));
    }
}
