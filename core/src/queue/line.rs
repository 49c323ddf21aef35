//! One queue in front of the instances that may serve it.

use core::cmp::Ordering;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{ClassQueue, Rank};
use crate::{Class, ClassPolicy, InstanceId, JobId, Order, Time};

/// A line's place in the scheduler's table of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LineId(pub u32);

/// Whose line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scope {
    /// Every instance of the target takes from it.
    Shared,
    /// Jobs were routed to this instance at their arrival.
    Instance(InstanceId),
}

/// The jobs of one target that wait in one place, by class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub target: u32,
    pub scope: Scope,
    pub classes: [ClassQueue; 3],
}

impl LineId {
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Line {
    pub fn new(target: u32, scope: Scope, classes: &[ClassPolicy; 3]) -> Line {
        Line { target, scope, classes: core::array::from_fn(|class| ClassQueue::new(classes[class].order)) }
    }

    #[inline]
    pub fn class(&self, class: Class) -> &ClassQueue {
        &self.classes[class.index()]
    }

    #[inline]
    pub fn class_mut(&mut self, class: Class) -> &mut ClassQueue {
        &mut self.classes[class.index()]
    }

    /// Every job in it, higher classes first, each class in its order.
    pub fn jobs_in_order(&self) -> Vec<JobId> {
        self.classes.iter().flat_map(ClassQueue::iter).collect()
    }

    /// Every job in it, oldest first.
    pub fn jobs_by_age(&self) -> Vec<JobId> {
        let mut jobs: Vec<JobId> = self.classes.iter().flat_map(ClassQueue::iter).collect();
        jobs.sort_unstable();
        jobs
    }
}

impl Rank {
    /// A job's rank in a queue of that order; a job without a deadline comes after those with one.
    #[inline]
    pub fn of(order: Order, job: JobId, deadline: Option<Time>) -> Rank {
        let due = match order {
            Order::Fifo => Time::ZERO,
            Order::Edf => deadline.unwrap_or(Time::MAX),
        };
        Rank { due, job }
    }

    /// The better of two heads.
    #[inline]
    pub fn better(one: Option<(LineId, Rank)>, other: Option<(LineId, Rank)>) -> Option<(LineId, Rank)> {
        match (one, other) {
            (Some(a), Some(b)) => Some(if b.1.cmp(&a.1) == Ordering::Less { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
