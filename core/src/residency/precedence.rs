//! Who goes before whom: in this order loads are decided, and in it memory that is being freed is owed.
//!
//! It has to be the same for both. Where a load that is decided later takes the memory that was freed for an earlier one, models
//! go in vain, again and again.

use serde::{Deserialize, Serialize};

use super::plan::Wanting;
use crate::{Class, DeviceId, JobId, Mode, ModelId, Scheduler, Time, queue::Rank};

/// The place of a head among all that want memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Precedence {
    standing: Standing,
    /// Of the starved, since when.
    since: Time,
    class: Class,
    rank: Rank,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Standing {
    Interactive,
    /// The guard serves these in the order of their last progress, over both lower classes.
    Starved,
    /// Batch work whose turn is due.
    Overdue,
    Waiting,
}

impl Precedence {
    /// Before everybody.
    pub const FIRST: Precedence =
        Precedence::of(Standing::Interactive, Class::Interactive, Rank { due: Time::ZERO, job: JobId(0) });

    const fn of(standing: Standing, class: Class, rank: Rank) -> Precedence {
        Precedence { standing, since: Time::ZERO, class, rank }
    }

    /// Behind everybody, until it is known better.
    pub fn last() -> Precedence {
        Precedence::of(Standing::Waiting, Class::Batch, Rank { due: Time::MAX, job: JobId(u64::MAX) })
    }

    pub fn is_interactive(self) -> bool {
        self.standing == Standing::Interactive
    }
}

impl Scheduler {
    /// The place of the head of a class, which has made no progress since then and wants one of these models.
    pub(super) fn precedence(&self, class: Class, rank: Rank, progress: Time, models: &[ModelId]) -> Precedence {
        if class == Class::Interactive {
            return Precedence::of(Standing::Interactive, class, rank);
        }
        let patience = self.policy().background_max_starvation;
        let guards = || self.devices.iter().any(|device| device.mode == Mode::Interactive);
        if !patience.is_zero() && self.now >= progress.after(patience) && guards() {
            return Precedence { since: progress, ..Precedence::of(Standing::Starved, class, rank) };
        }
        let due = |model: &ModelId| {
            self.places(*model).into_iter().any(|device| self.turn_due(*model, device, progress) <= self.now)
        };
        let late = class == Class::Batch && self.now >= progress.after(self.policy().batch_max_starvation);
        let overdue = late && models.iter().any(due);
        Precedence::of(if overdue { Standing::Overdue } else { Standing::Waiting }, class, rank)
    }

    pub(super) fn is_overdue_on(&self, device: DeviceId, by: &Wanting) -> bool {
        self.overdue_at(device, by) <= self.now
    }

    /// When batch work that waits may have others go on a device who are spared otherwise; [`Time::MAX`]: never.
    pub(super) fn overdue_at(&self, device: DeviceId, by: &Wanting) -> Time {
        match (by.class, by.models.first()) {
            (Class::Batch, Some(&model)) => self.turn_due(model, device, by.progress),
            _ => Time::MAX,
        }
    }
}
