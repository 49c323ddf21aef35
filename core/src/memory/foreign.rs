//! What a reading says: of our processes, of what is given back, and of everybody else.
//!
//! Total and list of processes come from two calls. A process that exits between them looks like somebody else's memory
//! for one reading, so what others use may fall at any time, but is frozen against rising while any instance of the device
//! is loading, stopping or just gone, and for two further readings. Even then it rises to what is used beyond all that is
//! booked: that much cannot be ours.

use alloc::vec::Vec;

use crate::{
    Bytes, DeviceId, Effects, InstanceId, MonitorHealth, Note, Scheduler, Snapshot, Span,
    instance::{Lower, Slot},
    memory::Late,
};

/// For so many readings more what others use may not rise.
const FREEZE: u32 = 2;
/// A process that uses less than is booked keeps what is booked until it has used less for this long.
const LOWER_FOR: Span = Span::from_secs(10);
/// A change of foreign memory that is worth a note.
const WORTH_NOTING: Bytes = Bytes::from_mib(128);

/// The least and the most that is ours, as far as one reading tells.
struct Ours {
    least: Bytes,
    most: Bytes,
}

impl Scheduler {
    pub(crate) fn read(&mut self, snapshot: &Snapshot, effects: &mut Effects) {
        let id = snapshot.device;
        if id.index() >= self.devices.len() {
            return effects.note(Note::Ignored { cause: crate::Nonsense::NoSuchPlacement });
        }
        self.heard(id, effects);
        self.processes(snapshot, effects);
        let memory = &mut self.devices[id.index()].memory;
        if self.configuration.devices[id.index()].memory.is_none() {
            memory.total = snapshot.total.or(memory.total);
        }
        let Some(used) = snapshot.used else { return };
        self.released(snapshot, used);
        self.others(snapshot, used);
        self.note_foreign(id, effects);
        self.settle_shortages(id, effects);
    }

    fn heard(&mut self, id: DeviceId, effects: &mut Effects) {
        let memory = &mut self.devices[id.index()].memory;
        memory.read_at = Some(self.now);
        memory.asked_at = None;
        if memory.health == MonitorHealth::Stale {
            memory.health = MonitorHealth::Alive;
            effects.note(Note::Monitor { device: id, health: MonitorHealth::Alive });
        }
    }

    /// An instance may grow beyond what is booked at once, and shrinks only after it stayed lower. One that still loads has
    /// outgrown its estimate: that is nobody else's memory, though no measurement before it has ended.
    fn processes(&mut self, snapshot: &Snapshot, effects: &mut Effects) {
        let now = self.now;
        for process in &snapshot.processes {
            let Some(used) = process.used else { continue };
            let Some(instance) = self.instances.get_mut(process.instance) else { continue };
            if instance.device != snapshot.device {
                continue;
            }
            if !instance.slot.is_serving() {
                if used > instance.booked && matches!(instance.slot, Slot::Loading { .. }) {
                    self.book(process.instance, used);
                }
                continue;
            }
            if used > instance.booked {
                self.book(process.instance, used);
                self.measured(process.instance, used, effects);
            } else if used < instance.booked {
                let (since, most) = instance.lower.map_or((now, used), |lower| (lower.since, lower.most.max(used)));
                instance.lower = Some(Lower { since, most, latest: (used < most).then_some((now, used)) });
            } else {
                instance.lower = None;
            }
        }
        self.shrink(snapshot.device, effects);
    }

    /// Believes of every instance of a device that has used less for long enough that it does. What fell further meanwhile has
    /// been seen so low since the latest reading: there may be none after it, since a monitor is silent when nothing changes.
    pub(crate) fn shrink(&mut self, device: DeviceId, effects: &mut Effects) {
        let ids: Vec<InstanceId> = self.devices[device.index()].instances.clone();
        for id in ids {
            let lower = self.instances[id].lower;
            if let Some(lower) = lower.filter(|lower| self.now >= lower.since.after(LOWER_FOR)) {
                self.book(id, lower.most);
                self.measured_less(id, lower.most, effects);
                self.instances[id].lower = lower.latest.map(|(since, most)| Lower { since, most, latest: None });
            }
        }
    }

    /// When an instance of the device will have used less for long enough.
    pub(crate) fn shrinks_at(&self, device: DeviceId) -> Option<crate::Time> {
        let instances = self.devices[device.index()].instances.iter().map(|id| &self.instances[*id]);
        instances.filter_map(|instance| Some(instance.lower?.since.after(LOWER_FOR))).min()
    }

    /// What our processes use: those that are listed what they are listed with; one that is not, and serves, what is booked;
    /// one that starts or ends anything up to that.
    fn ours(&self, snapshot: &Snapshot) -> Ours {
        let mut ours = Ours { least: Bytes::ZERO, most: Bytes::ZERO };
        for id in &self.devices[snapshot.device.index()].instances {
            let instance = &self.instances[*id];
            let listed = snapshot.processes.iter().find(|one| one.instance == *id).and_then(|one| one.used);
            let (least, most) = match (listed, &instance.slot) {
                (listed, Slot::Stopping { .. }) => {
                    (Bytes::ZERO, listed.unwrap_or(instance.booked).max(instance.booked))
                }
                (Some(listed), _) => (listed, listed),
                (None, Slot::Loading { .. }) => (Bytes::ZERO, instance.booked),
                (None, Slot::Ready { .. } | Slot::Draining { .. }) => (instance.booked, instance.booked),
            };
            ours.least = ours.least.plus(least);
            ours.most = ours.most.plus(most);
        }
        ours
    }

    /// What is in use less what is ours and others' can at most still belong to processes that are gone.
    fn released(&mut self, snapshot: &Snapshot, used: Bytes) {
        let ours = self.ours(snapshot).least;
        let memory = &mut self.devices[snapshot.device.index()].memory;
        memory.give_back(used.minus(ours).minus(memory.foreign));
    }

    fn others(&mut self, snapshot: &Snapshot, used: Bytes) {
        let id = snapshot.device;
        let ours = self.ours(snapshot);
        let booked = self.booked(id);
        let moving = self.moves(id);
        let memory = &mut self.devices[id.index()].memory;
        let gone = memory.leftovers.iter().fold(Bytes::ZERO, |sum, one| sum.plus(one.bytes));
        let frozen = moving || !memory.leftovers.is_empty() || memory.frozen > 0;
        memory.frozen = if moving || !memory.leftovers.is_empty() { FREEZE } else { memory.frozen.saturating_sub(1) };
        let surely = used.minus(booked);
        let least = used.minus(ours.most).minus(gone);
        memory.foreign = memory.foreign.min(used.minus(ours.least));
        memory.foreign = memory.foreign.max(if frozen { surely } else { least });
        let most = used.minus(ours.least);
        memory.late = memory.late.map(|late| Late { bytes: late.bytes.min(most), ..late });
        memory.late = memory.late.filter(|late| late.bytes > Bytes::ZERO);
    }

    fn note_foreign(&mut self, id: DeviceId, effects: &mut Effects) {
        let memory = &mut self.devices[id.index()].memory;
        let change = memory.foreign.minus(memory.noted).max(memory.noted.minus(memory.foreign));
        let cleared = memory.foreign == Bytes::ZERO && memory.noted > Bytes::ZERO;
        if change >= WORTH_NOTING || cleared {
            memory.noted = memory.foreign;
            effects.note(Note::Foreign { device: id, used: memory.foreign });
        }
    }
}
