//! What is seen of a card's memory, and when.

use windtunnel_config::{MonitorTrouble, Scenario};
use windtunnel_core::{
    Bytes, DeviceId, DeviceKind, Input, InstanceId, PressureLevel, ProcessMemory, Snapshot, Span, Time,
};

use super::{Curve, Machine};
use crate::{
    faults::{Faults, Trouble},
    random::Stream,
};

/// On unified memory the pressure is a warning while at least this share of all memory is taken, in percent.
const WARN_PERCENT: u128 = 85;

/// And critical while at least this share is.
const CRITICAL_PERCENT: u128 = 95;

/// The eye on the memory of one card.
#[derive(Clone, Debug)]
pub struct Monitor {
    poll: Span,
    sight: Sight,
    /// When the next reading is taken unasked.
    poll_at: Time,
    /// The truth as of the last reading that showed it.
    told: Option<Figures>,
    /// Bytes that are gone and still shown as in use, and in how many readings.
    phantoms: Vec<(u64, u32)>,
    troubles: Vec<Trouble>,
    /// Readings in trouble.
    troubled: u64,
}

/// What can be seen at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// The size of the device and who is on it.
    Presence,
    /// Their memory as well.
    Figures,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Figures {
    used: Option<u64>,
    processes: Vec<(InstanceId, Option<u64>)>,
}

impl Monitor {
    /// The monitor of `device`, which reads every `poll` at most.
    pub fn new(scenario: &Scenario, device: DeviceId, poll: Span, faults: &Faults) -> Monitor {
        let placed =
            |model: usize| matches!(scenario.services.get(model).and_then(|on| on.get(device.index())), Some(Some(_)));
        let counted = scenario.footprints.iter().enumerate().any(|(model, one)| one.truth.is_some() && placed(model));
        let sight = if counted || faults.change_memory(device) { Sight::Figures } else { Sight::Presence };
        let troubles = faults.troubles(device);
        Monitor { poll, sight, poll_at: Time::MAX, told: None, phantoms: Vec::new(), troubles, troubled: 0 }
    }

    /// Whether it sees how much memory is taken.
    pub fn sees(&self) -> bool {
        self.sight == Sight::Figures
    }

    /// So many bytes that are gone are shown as in use in so many readings.
    pub fn haunt(&mut self, bytes: u64, readings: u32) {
        self.phantoms.push((bytes, readings));
    }

    /// When it reads next, or begins or ends to misbehave.
    pub fn next(&self) -> Time {
        self.next_trouble().min(self.poll_at)
    }

    /// When it begins or ends to misbehave.
    pub fn next_trouble(&self) -> Time {
        self.troubles.iter().map(|trouble| trouble.window.next()).min().unwrap_or(Time::MAX)
    }

    /// Whether a reading is due, which it no longer is then.
    pub fn take_due(&mut self, now: Time) -> bool {
        self.troubles.iter_mut().for_each(|trouble| trouble.window.pass(now));
        let due = self.poll_at <= now;
        if due {
            self.poll_at = Time::MAX;
        }
        due
    }

    /// Lets everything that is to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.poll_at = self.poll_at.after(by);
        self.troubles.iter_mut().for_each(|trouble| trouble.window.delay(by));
    }

    fn trouble(&mut self, now: Time) -> Option<(MonitorTrouble, &mut Stream)> {
        let trouble = self.troubles.iter_mut().find(|trouble| trouble.window.is_on(now))?;
        Some((trouble.kind, &mut trouble.stream))
    }

    fn in_trouble(&self, now: Time) -> bool {
        self.troubles.iter().any(|trouble| trouble.window.is_on(now))
    }

    fn phantoms(&mut self) -> u64 {
        let shown = self.phantoms.iter().fold(0u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
        self.phantoms.iter_mut().for_each(|(_, readings)| *readings -= 1);
        self.phantoms.retain(|(_, readings)| *readings > 0);
        shown
    }

    fn read_later(&mut self, now: Time) {
        if self.poll_at == Time::MAX && !self.poll.is_zero() {
            let count = now.as_nanos() / self.poll.as_nanos() + 1;
            self.poll_at = Time::ZERO.after(self.poll.times(count));
        }
    }
}

impl Machine {
    /// Reads the memory; `None`: nobody answers.
    pub fn read(&mut self, now: Time) -> Option<Input> {
        let device = self.device;
        let truth = self.figures(now);
        let mut shown = self.snapshot(&truth);
        let phantoms = self.monitor.phantoms();
        shown.used = shown.used.map(|used| capped(used.plus(Bytes::new(phantoms)), shown.total));
        self.monitor.troubles.iter_mut().for_each(|trouble| trouble.window.pass(now));
        self.monitor.troubled += u64::from(self.monitor.in_trouble(now));
        let turn = self.monitor.troubled % 2;
        let plain = !self.monitor.in_trouble(now) && phantoms == 0;
        self.monitor.told = plain.then_some(truth);
        match self.monitor.trouble(now) {
            None => {}
            Some((MonitorTrouble::Missing, _)) => return Some(Input::SnapshotFailed { device }),
            Some((MonitorTrouble::Stale, _)) => return None,
            Some((MonitorTrouble::Partial, _)) if turn == 1 => {
                shown.processes.iter_mut().for_each(|process| process.used = None);
            }
            Some((MonitorTrouble::Partial, _)) => shown.used = None,
            Some((MonitorTrouble::Jumping, stream)) if turn == 1 => {
                let most = shown.total.or(shown.used).unwrap_or(Bytes::ZERO).get();
                shown.used = Some(Bytes::new((most as f64 * stream.uniform()) as u64));
            }
            Some((MonitorTrouble::Jumping, _)) => {}
        }
        Some(Input::Snapshot(shown))
    }

    fn figures(&self, now: Time) -> Figures {
        let sees = self.monitor.sees();
        let used = |bytes: u64| sees.then_some(bytes);
        let processes = self
            .processes
            .iter()
            .map(|process| (process.instance, process.footprint.and_then(|_| used(process.holds(now)))));
        Figures { processes: processes.collect(), used: used(self.taken(now)) }
    }

    fn snapshot(&self, figures: &Figures) -> Snapshot {
        let process =
            |&(instance, used): &(InstanceId, Option<u64>)| ProcessMemory { instance, used: used.map(Bytes::new) };
        Snapshot {
            device: self.device,
            total: self.total,
            used: figures.used.map(|used| capped(Bytes::new(used), self.total)),
            processes: figures.processes.iter().map(process).collect(),
        }
    }

    /// Sees to it that a reading is taken as long as there is something to see.
    pub(super) fn mind(&mut self, now: Time) {
        let sees = self.monitor.sees();
        if !sees && self.monitor.troubles.is_empty() {
            return;
        }
        let changing = || self.processes.iter().any(|process| process.is_changing(now));
        let unseen = || !self.releases.is_empty() || !self.monitor.phantoms.is_empty() || changing();
        let news = sees && (unseen() || self.monitor.told.as_ref() != Some(&self.figures(now)));
        if news || self.monitor.in_trouble(now) {
            self.monitor.read_later(now);
        } else {
            self.monitor.poll_at = Time::MAX;
        }
    }

    /// Says that the pressure has changed, where it has.
    pub(super) fn press(&mut self, now: Time) -> Option<Input> {
        let level = self.pressure_at(now);
        let changed = level != self.pressure;
        self.pressure = level;
        changed.then_some(Input::Pressure { device: self.device, level })
    }

    fn pressure_at(&mut self, now: Time) -> PressureLevel {
        if let Some(curve) = &mut self.pressure_curve {
            curve.pass(now);
            return curve.value().unwrap_or(PressureLevel::Normal);
        }
        let (DeviceKind::Unified, Some(total), true) = (self.kind, self.total, self.monitor.sees()) else {
            return PressureLevel::Normal;
        };
        let percent = u128::from(self.taken(now)) * 100 / u128::from(total.get().max(1));
        match percent {
            CRITICAL_PERCENT.. => PressureLevel::Critical,
            WARN_PERCENT..CRITICAL_PERCENT => PressureLevel::Warn,
            0..WARN_PERCENT => PressureLevel::Normal,
        }
    }

    /// Lets everything that is to come be `by` later.
    pub fn delay(&mut self, now: Time, by: Span) {
        self.fill(now);
        self.since = now.after(by);
        self.processes.iter_mut().for_each(|process| process.delay(by));
        self.releases.iter_mut().for_each(|(_, until)| *until = until.after(by));
        self.foreign.iter_mut().for_each(|curve| curve.delay(by));
        self.pressure_curve.iter_mut().for_each(|curve: &mut Curve<PressureLevel>| curve.delay(by));
        self.monitor.delay(by);
    }
}

fn capped(used: Bytes, total: Option<Bytes>) -> Bytes {
    total.map_or(used, |total| used.min(total))
}
