//! The processes beside one card and their memory.

use windtunnel_config::{Scenario, Upkeep};
use windtunnel_core::{
    Attempt, Bytes, DeviceId, DeviceKind, ExitCause, Input, InstanceId, LoadFailure, ModelId, PressureLevel, Span, Time,
};

use super::{
    Curve, LoadEnd, LoadFate,
    monitor::Monitor,
    process::{Claim, Growth, Leaving, Phase, Process},
};
use crate::faults::{ExitFate, Faults};

/// What surrounds the work on one card.
#[derive(Clone, Debug)]
pub struct Machine {
    pub device: DeviceId,
    pub(super) kind: DeviceKind,
    pub(super) total: Option<Bytes>,
    upkeep: Upkeep,
    /// By instance.
    pub(super) processes: Vec<Process>,
    /// Bytes of processes that have ended, and until when they are taken.
    pub(super) releases: Vec<(u64, Time)>,
    pub(super) foreign: Vec<Curve<Bytes>>,
    pub(super) pressure_curve: Option<Curve<PressureLevel>>,
    pub(super) pressure: PressureLevel,
    pub(super) monitor: Monitor,
    /// Up to when loads have filled.
    pub(super) since: Time,
}

/// Something others have to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A model is loaded.
    Loaded { attempt: Attempt, instance: InstanceId, model: ModelId, footprint: Option<Bytes> },
    /// A process ended by itself.
    Exited { instance: InstanceId, cause: ExitCause },
    /// Nothing has to be done but to tell it.
    Told(Input),
}

impl Machine {
    /// The machine beside the card of `device` before anything has happened.
    pub fn new(scenario: &Scenario, device: DeviceId, faults: &Faults) -> Machine {
        let told = scenario.configuration.device(device);
        let upkeep = scenario.cards.get(device.index()).map_or_else(Upkeep::default, |card| card.upkeep);
        Machine {
            device,
            kind: told.map_or(DeviceKind::Discrete, |told| told.kind),
            total: told.and_then(|told| told.memory),
            upkeep,
            processes: Vec::new(),
            releases: Vec::new(),
            foreign: faults.foreign(device),
            pressure_curve: faults.pressure(device),
            pressure: PressureLevel::Normal,
            monitor: Monitor::new(scenario, device, upkeep.poll, faults),
            since: Time::ZERO,
        }
    }

    /// Seats a process that is loaded already.
    pub fn settle_in(&mut self, instance: InstanceId, model: ModelId, footprint: Option<Bytes>, fate: LoadFate) {
        let mut process = Process { instance, model, footprint, phase: Phase::Ready, growths: Vec::new(), fate };
        process.begin_to_grow(Time::ZERO);
        self.processes.push(process);
    }

    /// Begins a load.
    pub fn load(
        &mut self,
        now: Time,
        attempt: Attempt,
        (instance, model): (InstanceId, ModelId),
        footprint: Option<Bytes>,
        fate: LoadFate,
    ) {
        self.fill(now);
        let fixed = fate.recorded.unwrap_or(self.upkeep.fixed);
        let starting = (fixed.as_nanos() as f64 * fate.factor + 0.5) as u64;
        let phase = match fate.end {
            LoadEnd::Stalls(lasts) => Phase::Stalled { attempt, until: now.after(lasts) },
            LoadEnd::Natural | LoadEnd::Fails(_) => {
                Phase::Starting { attempt, until: now.after(Span::from_nanos(starting)) }
            }
        };
        self.processes.push(Process { instance, model, footprint, phase, growths: Vec::new(), fate });
    }

    /// Begins a stop that takes `extra` longer than usual, but no less than `least`; whether there is such a process.
    pub fn stop(&mut self, now: Time, instance: InstanceId, attempt: Attempt, (extra, least): (Span, Span)) -> bool {
        let takes = self.upkeep.stop.plus(extra).max(least);
        self.leave(now, instance, Leaving::Stop(attempt), takes)
    }

    /// Breaks a load off; whether it is under way.
    pub fn abort(&mut self, now: Time, instance: InstanceId, attempt: Attempt) -> bool {
        let loading = self.processes.iter().any(|process| {
            process.instance == instance
                && match process.phase {
                    Phase::Starting { attempt: own, .. }
                    | Phase::Filling { attempt: own, .. }
                    | Phase::Stalled { attempt: own, .. } => own == attempt,
                    Phase::Ready | Phase::Leaving { .. } => false,
                }
        });
        loading && self.leave(now, instance, Leaving::Load(attempt), self.upkeep.stop)
    }

    fn leave(&mut self, now: Time, instance: InstanceId, as_what: Leaving, takes: Span) -> bool {
        self.fill(now);
        let Some(process) = self.processes.iter_mut().find(|process| process.instance == instance) else {
            return false;
        };
        process.phase = Phase::Leaving { as_what, until: now.after(takes), holds: process.holds(now) };
        true
    }

    /// A process ends at this moment.
    pub fn exit(&mut self, now: Time, instance: InstanceId, faults: &mut Faults) {
        self.fill(now);
        if let Some(place) = self.processes.iter().position(|process| process.instance == instance) {
            self.end(now, place, faults);
        }
    }

    fn end(&mut self, now: Time, place: usize, faults: &mut Faults) {
        let process = self.processes.remove(place);
        let ExitFate { lingers, phantom } = faults.exit(now, process.model, self.device);
        let bytes = process.holds(now);
        let release = lingers.unwrap_or(self.upkeep.release);
        if bytes > 0 && !release.is_zero() {
            self.releases.push((bytes, now.after(release)));
        }
        if bytes > 0 && phantom > 0 {
            self.monitor.haunt(bytes, phantom);
        }
    }

    /// The loaded processes that `concerned` picks grow from now on.
    pub fn grow(&mut self, now: Time, bytes: Bytes, over: Span, concerned: impl Fn(ModelId) -> bool) {
        for process in self.processes.iter_mut().filter(|process| process.phase == Phase::Ready) {
            if concerned(process.model) {
                process.growths.push(Growth { from: now, bytes, over });
            }
        }
    }

    /// The model of a process.
    pub fn model_of(&self, instance: InstanceId) -> Option<ModelId> {
        self.processes.iter().find(|process| process.instance == instance).map(|process| process.model)
    }

    /// Every process that is loaded, by instance.
    pub fn loaded(&self) -> impl Iterator<Item = (InstanceId, ModelId)> {
        let ready = self.processes.iter().filter(|process| process.phase == Phase::Ready);
        ready.map(|process| (process.instance, process.model))
    }

    /// When something comes next; [`Time::MAX`]: nothing does.
    pub fn next(&self) -> Time {
        self.next_here().min(self.monitor.next())
    }

    /// When something changes next that is no reading of it; [`Time::MAX`]: nothing does.
    pub fn next_change(&self) -> Time {
        self.next_here().min(self.monitor.next_trouble())
    }

    fn next_here(&self) -> Time {
        let processes = self.processes.iter().map(Process::until);
        let releases = self.releases.iter().map(|(_, until)| *until);
        let curves = self.foreign.iter().map(Curve::next).chain(self.pressure_curve.iter().map(Curve::next));
        processes.chain(releases).chain(curves).chain([self.filled()]).min().unwrap_or(Time::MAX)
    }

    /// Lets one thing happen that is due at `now`; `None`: there is nothing more at this moment. To be asked after every
    /// order as well, until nothing comes out.
    pub fn get_on(&mut self, now: Time, faults: &mut Faults) -> Option<Happened> {
        self.fill(now);
        while let Some(place) = self.due(now) {
            if let Some(happened) = self.next_phase(now, place, faults) {
                return Some(happened);
            }
        }
        self.releases.retain(|(_, until)| *until > now);
        self.foreign.iter_mut().for_each(|curve| curve.pass(now));
        if let Some(instance) = self.outgrown(now) {
            self.exit(now, instance, faults);
            return Some(Happened::Exited { instance, cause: ExitCause::OutOfMemory });
        }
        let read = if self.monitor.take_due(now) { self.read(now) } else { None };
        self.mind(now);
        read.or_else(|| self.press(now)).map(Happened::Told)
    }

    /// The first process whose phase has come to its end.
    fn due(&self, now: Time) -> Option<usize> {
        let slack = 0.5e-9 * self.pace();
        self.processes.iter().position(|process| match process.phase {
            Phase::Filling { left, .. } => left <= slack,
            Phase::Starting { .. } | Phase::Stalled { .. } | Phase::Ready | Phase::Leaving { .. } => {
                process.until() <= now
            }
        })
    }

    /// A process enters its next phase, or ends.
    fn next_phase(&mut self, now: Time, place: usize, faults: &mut Faults) -> Option<Happened> {
        let process = &mut self.processes[place];
        let instance = process.instance;
        match process.phase {
            Phase::Starting { attempt, .. } => {
                let left = process.footprint.map_or(0.0, |bytes| bytes.get() as f64 * process.fate.factor);
                let fills = self.upkeep.bandwidth.is_some() && process.fate.recorded.is_none();
                let left = if fills { left } else { 0.0 };
                process.phase = Phase::Filling { attempt, left };
                None
            }
            Phase::Filling { attempt, .. } => Some(self.filled_up(now, place, attempt, faults)),
            Phase::Stalled { attempt, .. } => {
                self.end(now, place, faults);
                Some(failed(attempt, instance, LoadFailure::Stalled))
            }
            Phase::Leaving { as_what, .. } => {
                self.end(now, place, faults);
                Some(match as_what {
                    Leaving::Stop(attempt) => Happened::Told(Input::StopFinished { attempt, instance }),
                    Leaving::Load(attempt) => failed(attempt, instance, LoadFailure::Stopped),
                })
            }
            Phase::Ready => None,
        }
    }

    /// A load has all its bytes: it is ready, or has failed.
    fn filled_up(&mut self, now: Time, place: usize, attempt: Attempt, faults: &mut Faults) -> Happened {
        let process = &mut self.processes[place];
        process.phase = Phase::Filling { attempt, left: 0.0 };
        let (instance, model, footprint, end) = (process.instance, process.model, process.footprint, process.fate.end);
        let cause = match end {
            LoadEnd::Fails(cause) => Some(cause),
            LoadEnd::Natural | LoadEnd::Stalls(_) => self.does_not_fit(now).then_some(LoadFailure::OutOfMemory),
        };
        if let Some(cause) = cause {
            self.end(now, place, faults);
            return failed(attempt, instance, cause);
        }
        let process = &mut self.processes[place];
        process.phase = Phase::Ready;
        process.begin_to_grow(now);
        Happened::Loaded { attempt, instance, model, footprint }
    }

    /// Whether more is taken of a card's own memory than there is.
    fn does_not_fit(&self, now: Time) -> bool {
        let total = self.total.map_or(u64::MAX, Bytes::get);
        self.kind == DeviceKind::Discrete && self.taken(now) > total
    }

    /// The latest process that has grown, where more is held of a card's own memory than there is. What the dead leave behind
    /// does not count, as it is about to be free: one death would draw others after it.
    fn outgrown(&self, now: Time) -> Option<InstanceId> {
        let grown = self.processes.iter().rev().find(|process| process.has_grown(now))?;
        let total = self.total.map_or(u64::MAX, Bytes::get);
        let held = self.taken(now).saturating_sub(self.left_behind());
        (self.kind == DeviceKind::Discrete && held > total).then_some(grown.instance)
    }

    /// All memory that is truly taken.
    pub(super) fn taken(&self, now: Time) -> u64 {
        let processes = self.processes.iter().map(|process| process.holds(now));
        processes.chain([self.left_behind(), self.foreign()]).fold(0, u64::saturating_add)
    }

    fn left_behind(&self) -> u64 {
        self.releases.iter().fold(0, |sum, (bytes, _)| sum.saturating_add(*bytes))
    }

    fn foreign(&self) -> u64 {
        let values = self.foreign.iter().filter_map(Curve::value);
        values.fold(0, |sum, bytes: Bytes| sum.saturating_add(bytes.get()))
    }

    /// Whether more has been promised on the device than there is, so that its grants fail.
    pub fn is_overcommitted(&self, now: Time) -> bool {
        let served = |process: &&Process| matches!(process.phase, Phase::Ready | Phase::Leaving { .. });
        let claimed = |process: &Process| process.phase == Phase::Ready && process.fate.claim == Claim::Overcommitted;
        if self.processes.iter().any(claimed) {
            return true;
        }
        let (DeviceKind::Unified, Some(total)) = (self.kind, self.total) else { return false };
        let processes = self.processes.iter().filter(served).map(|process| process.holds(now));
        processes.chain([self.left_behind(), self.foreign()]).fold(0, u64::saturating_add) > total.get()
    }

    /// Whether grants can ever fail here for want of memory by themselves.
    pub fn can_overcommit(&self) -> bool {
        self.kind == DeviceKind::Unified && self.total.is_some() && self.monitor.sees()
    }

    /// Lets loads fill memory up to `now`.
    pub(super) fn fill(&mut self, now: Time) {
        let elapsed = now.since(self.since).as_nanos();
        self.since = self.since.max(now);
        if elapsed == 0 || self.filling() == 0 {
            return;
        }
        let by = self.pace() * 1e-9 * elapsed as f64;
        for process in &mut self.processes {
            if let Phase::Filling { left, .. } = &mut process.phase {
                *left -= by;
            }
        }
    }

    /// Bytes a second that each load that fills gets.
    fn pace(&self) -> f64 {
        let bandwidth = self.upkeep.bandwidth.map_or(f64::MAX, |bandwidth| bandwidth.get() as f64);
        bandwidth / self.filling().max(1) as f64
    }

    fn filling(&self) -> usize {
        self.processes.iter().filter(|process| matches!(process.phase, Phase::Filling { .. })).count()
    }

    /// When the next load has all its bytes, to the nearest nanosecond.
    fn filled(&self) -> Time {
        let left = self.processes.iter().filter_map(|process| match process.phase {
            Phase::Filling { left, .. } => Some(left.max(0.0)),
            Phase::Starting { .. } | Phase::Stalled { .. } | Phase::Ready | Phase::Leaving { .. } => None,
        });
        let Some(least) = left.reduce(f64::min) else { return Time::MAX };
        let rest = least / self.pace() * 1e9;
        self.since.after(Span::from_nanos((rest + 0.5) as u64))
    }
}

fn failed(attempt: Attempt, instance: InstanceId, cause: LoadFailure) -> Happened {
    Happened::Told(Input::LoadFailed { attempt, instance, cause })
}
