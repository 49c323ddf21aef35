//! A model on a device, from the start of its load until its process is gone.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    Attempt, Bytes, Capacity, Class, DeviceId, GrantedStep, ModelId, Ppm, Prediction, Right, ServiceTimes, StopCause,
    Time, queue::LineId, residency::Guarded,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub model: ModelId,
    pub device: DeviceId,
    pub slot: Slot,
    pub capacity: Capacity,
    /// What is believed of its service.
    pub times: ServiceTimes,
    /// What that has to be multiplied by, as far as it was learned.
    pub factor: Ppm,
    /// Whether that goes on being learned.
    pub prediction: Prediction,
    /// The lines it takes jobs from.
    pub lines: Vec<LineId>,
    /// Until when its under-full batch is held.
    pub held: Option<Time>,
    /// The memory it is believed to hold; a reservation while it loads.
    pub booked: Bytes,
    /// What it was measured to hold when its load ended.
    #[serde(default)]
    pub loaded: Option<Bytes>,
    /// Since when it has been seen to use less than is booked, and how much.
    pub lower: Option<Lower>,
    /// The highest class of the jobs that it was loaded for.
    pub loaded_for: Class,
    /// Whether the guard had it loaded.
    pub guarded: Guarded,
    /// When its load began; `None` where it was there when the run began.
    pub began: Option<Time>,
    /// When that ended.
    pub ready_at: Time,
    /// The start or end of its last step, and of the last of background.
    pub last_used: Time,
    pub last_background: Option<Time>,
    /// Since when its turn against interactive work for another model lasts.
    pub turn_since: Option<Time>,
}

/// An instance that uses less than is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lower {
    pub since: Time,
    /// The most it used since.
    pub most: Bytes,
    /// The latest reading, where it was less than that, and when it was made.
    #[serde(default)]
    pub latest: Option<(Time, Bytes)>,
}

/// Where an instance is in its life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Slot {
    /// Its process starts.
    Loading {
        attempt: Attempt,
        /// When it is believed to be ready.
        expected: Time,
        /// Whether it is to be stopped once it is ready.
        then: Option<StopCause>,
    },
    /// It takes work.
    Ready { running: Vec<Running> },
    /// It finishes what it has and takes no more.
    Draining { running: Vec<Running>, after: Leaving },
    /// Its process was told to end.
    Stopping { attempt: Attempt },
}

/// What happens to an instance once it has finished what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Leaving {
    /// Its process is told to end.
    Stop(StopCause),
    /// Its process is gone already; its grants only have to be said to have failed.
    Exited,
}

/// A grant under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    pub attempt: Attempt,
    pub class: Class,
    pub right: Right,
    pub start: Time,
    /// When it should end.
    pub expected: Time,
    pub weight: u32,
    /// Grants that were under way on the instance when it started.
    pub beside: u32,
    pub steps: Vec<GrantedStep>,
    pub aborted: Aborted,
}

/// Whether a grant was asked to break off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Aborted {
    No,
    Yes,
}

impl Slot {
    /// The grants under way.
    #[inline]
    pub fn running(&self) -> &[Running] {
        match self {
            Slot::Ready { running } | Slot::Draining { running, .. } => running,
            Slot::Loading { .. } | Slot::Stopping { .. } => &[],
        }
    }

    #[inline]
    pub fn running_mut(&mut self) -> Option<&mut Vec<Running>> {
        match self {
            Slot::Ready { running } | Slot::Draining { running, .. } => Some(running),
            Slot::Loading { .. } | Slot::Stopping { .. } => None,
        }
    }

    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self, Slot::Ready { .. })
    }

    /// Whether a process is there that serves, or finishes what it has.
    pub fn is_serving(&self) -> bool {
        matches!(self, Slot::Ready { .. } | Slot::Draining { .. })
    }

    /// Whether its memory will be given back.
    pub fn is_leaving(&self) -> bool {
        matches!(self, Slot::Draining { .. } | Slot::Stopping { .. } | Slot::Loading { then: Some(_), .. })
    }

    /// Whether its memory is changing.
    pub fn is_moving(&self) -> bool {
        matches!(self, Slot::Loading { .. } | Slot::Stopping { .. })
    }
}

impl Instance {
    /// A step of a class started or ended here.
    pub fn touch(&mut self, class: Class, now: Time) {
        self.last_used = now;
        if class == Class::Background {
            self.last_background = Some(now);
        }
    }

    /// Grants it could take now, were it asked: free slots, or one batch.
    #[inline]
    pub fn free(&self) -> u32 {
        let Slot::Ready { running } = &self.slot else { return 0 };
        let all = match self.capacity {
            Capacity::Slots { slots } => slots,
            Capacity::Batch { .. } => 1,
        };
        all.saturating_sub(running.len() as u32)
    }

    /// How many inputs a grant takes, the first step aside; that of a slot is its only one.
    #[inline]
    pub fn room(&self) -> u32 {
        match self.capacity {
            Capacity::Slots { .. } => 1,
            Capacity::Batch { max, .. } => max,
        }
    }

    /// The inputs that one grant takes when it is full, of steps of one input.
    pub fn per_grant(&self) -> u64 {
        match self.capacity {
            Capacity::Slots { .. } => 1,
            Capacity::Batch { max, .. } => u64::from(max.max(1)),
        }
    }

    /// The inputs or steps that run side by side when it is full.
    pub fn at_once(&self) -> u64 {
        match self.capacity {
            Capacity::Slots { slots } => u64::from(slots.max(1)),
            Capacity::Batch { max, .. } => u64::from(max.max(1)),
        }
    }
}
