//! Exit is not release: memory of a process that is gone stays booked until a reading shows it free.

use serde::{Deserialize, Serialize};

use super::Memory;
use crate::{Bytes, DeviceId, Effect, Effects, InstanceId, Note, Scheduler, Span, Time};

/// While a release is awaited the device is read again and again after this time.
const READ_EVERY: Span = Span::from_millis(50);

/// Memory that was not given back within `release_timeout` is hoped for so many times longer.
const HOPE: u64 = 10;

/// Memory that processes that are gone have not given back in time. It counts as used by others from then on, but loads for
/// which they had to go do not give up before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Late {
    pub bytes: Bytes,
    pub until: Time,
}

/// Memory of a process that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leftover {
    pub instance: InstanceId,
    pub bytes: Bytes,
    /// When the process went.
    pub since: Time,
    /// When the device is read next.
    pub read_next: Time,
}

impl Memory {
    /// At most `rest` of what was left over is still in use: the oldest is taken to be free first.
    pub fn give_back(&mut self, rest: Bytes) {
        let all = self.leftovers.iter().fold(Bytes::ZERO, |sum, one| sum.plus(one.bytes));
        let mut free = all.minus(rest);
        for leftover in &mut self.leftovers {
            let part = free.min(leftover.bytes);
            leftover.bytes = leftover.bytes.minus(part);
            free = free.minus(part);
        }
        self.leftovers.retain(|leftover| leftover.bytes > Bytes::ZERO);
    }
}

impl Scheduler {
    /// A process is gone: what it held is awaited.
    pub(crate) fn await_release(&mut self, id: InstanceId, effects: &mut Effects) {
        let (device, bytes, now) = (self.instances[id].device, self.instances[id].booked, self.now);
        self.book(id, Bytes::ZERO);
        let memory = &mut self.devices[device.index()].memory;
        if !memory.is_known() || bytes == Bytes::ZERO {
            return;
        }
        memory.leftovers.push(Leftover { instance: id, bytes, since: now, read_next: now.after(READ_EVERY) });
        effects.push(Effect::Snapshot { device });
    }

    /// Whether so much of what others are believed to use may turn out to be what processes of ours have given back or will:
    /// until when that is hoped for, [`Time::MAX`]: until readings are clear.
    pub(crate) fn may_come_back(&self, id: DeviceId, bytes: Bytes) -> Option<Time> {
        if !self.is_settled(id) {
            return Some(Time::MAX);
        }
        let late = self.devices[id.index()].memory.late;
        late.filter(|late| bytes <= late.bytes && self.now < late.until).map(|late| late.until)
    }

    /// Reads a device again while a release is awaited, and believes in one that takes too long.
    pub(crate) fn lapse_releases(&mut self, id: DeviceId, effects: &mut Effects) {
        let (now, limit) = (self.now, self.policy().release_timeout);
        let memory = &mut self.devices[id.index()].memory;
        memory.late = memory.late.filter(|late| now < late.until);
        if memory.leftovers.is_empty() {
            return;
        }
        let awaited = memory.leftovers.len();
        let mut late = memory.late.map_or(Bytes::ZERO, |late| late.bytes);
        memory.leftovers.retain(|one| {
            let keep = now < one.since.after(limit);
            if !keep {
                late = late.plus(one.bytes);
                effects.note(Note::ReleaseOverdue { instance: one.instance, bytes: one.bytes });
            }
            keep
        });
        let mut due = memory.leftovers.len() < awaited;
        if due {
            memory.late = Some(Late { bytes: late, until: now.after(limit.times(HOPE)) });
            // Whoever holds it now, and what others took while that was frozen, only the next reading shows.
            memory.read_at = None;
            memory.asked_at = Some(now);
        }
        for one in &mut memory.leftovers {
            if now >= one.read_next {
                one.read_next = now.after(READ_EVERY);
                due = true;
            }
        }
        if due {
            effects.push(Effect::Snapshot { device: id });
        }
    }

    /// Reads a device again while what others use is frozen although nothing of ours moves any more.
    pub(crate) fn lapse_freeze(&mut self, id: DeviceId, effects: &mut Effects) {
        if self.freeze_due(id).is_some_and(|due| due <= self.now) {
            self.devices[id.index()].memory.thaw_asked = self.now;
            effects.push(Effect::Snapshot { device: id });
        }
    }

    /// When that is.
    pub(crate) fn freeze_due(&self, id: DeviceId) -> Option<Time> {
        let device = &self.devices[id.index()];
        let memory = &device.memory;
        let frozen = memory.frozen > 0 && memory.leftovers.is_empty() && !self.moves(id);
        let last = memory.read_at.filter(|_| frozen)?.max(memory.thaw_asked);
        Some(last.after(READ_EVERY))
    }

    /// When a device that awaits a release is read again, or believes in it.
    pub(crate) fn release_due(&self, id: DeviceId) -> Option<Time> {
        let limit = self.policy().release_timeout;
        let leftovers = self.devices[id.index()].memory.leftovers.iter();
        leftovers.map(|one| one.read_next.min(one.since.after(limit))).min()
    }
}
