//! What is known of a device's memory, from numbers that lie.
//!
//! The **budget** is what may be used at all. **Booked** is what our own instances are believed to hold, in every state of
//! their lives, and what processes that are gone have not been seen to give back. **Foreign** is what other programs use:
//! the tools do not say it, it is what is in use less what is ours, read in two calls that do not agree while processes
//! come and go. What is left of the budget is **available**.
//!
//! All of it is deterministic bookkeeping: decisions book bytes at once, readings correct the books later.

mod foreign;
mod pressure;
mod release;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub(crate) use pressure::Pressure;
pub(crate) use release::{Late, Leftover};

use crate::{Bytes, Device, DeviceId, Effect, Effects, InstanceId, MonitorHealth, Note, Scheduler, Span, Time};

/// A device without any figure is asked again after this time.
const ASK_AGAIN: Span = Span::from_secs(1);

/// An instance is booked with no more than this, whatever a reading says, so that sums do not overflow.
pub(crate) const MOST_BOOKED: Bytes = Bytes::from_mib(1 << 30);

/// What is known of the memory of a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// All of it: as configured, or else as read.
    pub total: Option<Bytes>,
    /// What other programs are believed to use.
    pub foreign: Bytes,
    /// That, when it was last noted.
    pub noted: Bytes,
    /// Readings to come for which foreign memory is frozen against rising.
    pub frozen: u32,
    /// When a reading was last asked for to end that.
    pub thaw_asked: Time,
    /// When it was last read.
    pub read_at: Option<Time>,
    /// When a reading was last asked for because none had come for long.
    pub asked_at: Option<Time>,
    pub health: MonitorHealth,
    /// Memory of processes that are gone, oldest first.
    pub leftovers: Vec<Leftover>,
    /// Of what others are believed to use, what may still be memory of processes that are gone.
    #[serde(default)]
    pub late: Option<Late>,
    pub pressure: Pressure,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            total: None,
            foreign: Bytes::ZERO,
            noted: Bytes::ZERO,
            frozen: 0,
            thaw_asked: Time::ZERO,
            read_at: None,
            asked_at: None,
            health: MonitorHealth::Alive,
            leftovers: Vec::new(),
            late: None,
            pressure: Pressure::default(),
        }
    }
}

impl Memory {
    pub fn of(device: &Device) -> Memory {
        Memory { total: device.memory, ..Memory::default() }
    }

    /// Whether anything says how much memory there is.
    pub fn is_known(&self) -> bool {
        self.total.is_some()
    }
}

impl Scheduler {
    /// The bytes of a device that may be used; `None`: nothing bounds them.
    pub(crate) fn budget(&self, id: DeviceId) -> Option<Bytes> {
        let device = self.configuration.device(id)?;
        let total = self.devices[id.index()].memory.total;
        let most = match (total, device.limit) {
            (Some(total), Some(limit)) => Some(total.min(limit)),
            (total, limit) => total.or(limit),
        };
        most.map(|most| most.minus(device.headroom))
    }

    /// What instances of a device hold in every state, and what processes that are gone have not given back.
    pub(crate) fn booked(&self, id: DeviceId) -> Bytes {
        self.sums(id).booked
    }

    /// What is booked and what other programs use.
    pub(crate) fn committed(&self, id: DeviceId) -> Bytes {
        self.booked(id).plus(self.devices[id.index()].memory.foreign)
    }

    /// What instances that leave will give back, and what is awaited of those that are gone.
    pub(crate) fn coming(&self, id: DeviceId) -> Bytes {
        self.sums(id).coming
    }

    /// Asks for a reading where the device's memory is known at all.
    pub(crate) fn ask(&mut self, id: DeviceId, effects: &mut Effects) {
        if self.devices[id.index()].memory.is_known() {
            effects.push(Effect::Snapshot { device: id });
        }
    }

    /// Whether the device's memory was read lately, or nothing is known of it at all. If not, a reading is asked for.
    pub(crate) fn is_fresh(&mut self, id: DeviceId, effects: &mut Effects) -> bool {
        let (now, limit) = (self.now, self.policy().monitor_stale);
        let memory = &mut self.devices[id.index()].memory;
        if !memory.is_known() || memory.read_at.is_some_and(|at| now <= at.after(limit)) {
            return true;
        }
        if memory.asked_at.is_none_or(|at| now >= at.after(ASK_AGAIN)) {
            if memory.asked_at.is_some() && memory.health == MonitorHealth::Alive {
                memory.health = MonitorHealth::Stale;
                effects.note(Note::Monitor { device: id, health: MonitorHealth::Stale });
            }
            let memory = &mut self.devices[id.index()].memory;
            memory.asked_at = Some(now);
            effects.push(Effect::Snapshot { device: id });
        }
        false
    }

    /// When the last reading of a device will be too old.
    pub(crate) fn stale_at(&self, id: DeviceId) -> Option<Time> {
        let read_at = self.devices[id.index()].memory.read_at?;
        Some(read_at.after(self.policy().monitor_stale).after(Span::from_nanos(1)))
    }

    /// For how long a device whose memory is known has not been read, once that is longer than `monitor_stale`.
    pub(crate) fn silent_for(&self, id: DeviceId) -> Option<Span> {
        let memory = &self.devices[id.index()].memory;
        let silent = self.now.since(memory.read_at.unwrap_or(Time::ZERO));
        (memory.is_known() && silent > self.policy().monitor_stale).then_some(silent)
    }

    /// When a stale device is asked again.
    pub(crate) fn asks_again(&self, id: DeviceId) -> Option<Time> {
        self.devices[id.index()].memory.asked_at.map(|at| at.after(ASK_AGAIN))
    }

    /// A reading could not be made: loads stop until one can.
    pub(crate) fn reading_failed(&mut self, id: DeviceId, effects: &mut Effects) {
        let limit = self.policy().monitor_stale;
        let Some(device) = self.devices.get_mut(id.index()) else { return };
        let old = device.memory.read_at.is_none_or(|at| self.now > at.after(limit));
        if old && device.memory.health == MonitorHealth::Alive {
            device.memory.health = MonitorHealth::Stale;
            effects.note(Note::Monitor { device: id, health: MonitorHealth::Stale });
        }
    }

    /// Books what an instance is believed to hold from now on.
    pub(crate) fn book(&mut self, id: InstanceId, bytes: Bytes) {
        self.instances[id].booked = bytes.min(MOST_BOOKED);
        self.instances[id].lower = None;
    }
}
