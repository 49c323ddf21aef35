//! Where jobs wait. A [`Line`] is one queue in front of some instances, a [`ClassQueue`] the part of it that one class
//! takes, in FIFO or EDF order. A job that has steps to be granted is in exactly one of them; it stays at its place until
//! its last step is granted.

mod edf;
mod fifo;
mod line;

use serde::{Deserialize, Serialize};

use edf::Edf;
use fifo::Fifo;
pub(crate) use line::{Line, LineId, Scope};

use crate::{JobId, Order, Time};

/// A place in the order: the deadline where the order is EDF, the job's number behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Rank {
    pub due: Time,
    pub job: JobId,
}

/// The waiting jobs of one class in one line, with the inputs that wait in them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ClassQueue {
    Fifo(Fifo),
    Edf(Edf),
}

impl ClassQueue {
    pub fn new(order: Order) -> ClassQueue {
        match order {
            Order::Fifo => ClassQueue::Fifo(Fifo::default()),
            Order::Edf => ClassQueue::Edf(Edf::default()),
        }
    }

    /// Whether it is in order and holds what `entry` says of its jobs: their ranks and weights, where they belong here. What
    /// waits in a FIFO together is counted by [`crate::Scheduler::check`].
    pub fn is_sound(&self, entry: impl Fn(JobId) -> Option<(Rank, u64)>) -> bool {
        match self {
            ClassQueue::Fifo(fifo) => fifo.is_sound() && fifo.iter().all(|job| entry(job).is_some()),
            ClassQueue::Edf(edf) => edf.is_sound(entry),
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        match self {
            ClassQueue::Fifo(fifo) => fifo.len(),
            ClassQueue::Edf(edf) => edf.len(),
        }
    }

    /// The inputs of all steps that wait here.
    pub fn weight(&self) -> u64 {
        match self {
            ClassQueue::Fifo(fifo) => fifo.weight(),
            ClassQueue::Edf(edf) => edf.weight(),
        }
    }

    #[inline]
    pub fn first(&self) -> Option<JobId> {
        match self {
            ClassQueue::Fifo(fifo) => fifo.first(),
            ClassQueue::Edf(edf) => edf.first().map(|rank| rank.job),
        }
    }

    #[inline]
    pub fn first_rank(&self) -> Option<Rank> {
        match self {
            ClassQueue::Fifo(fifo) => fifo.first().map(|job| Rank { due: Time::ZERO, job }),
            ClassQueue::Edf(edf) => edf.first(),
        }
    }

    #[inline]
    pub fn insert(&mut self, rank: Rank, weight: u64) {
        match self {
            ClassQueue::Fifo(fifo) => fifo.insert(rank.job, weight),
            ClassQueue::Edf(edf) => edf.insert(rank, weight),
        }
    }

    /// Takes a job out that has `weight` inputs left here; whether it was here.
    pub fn remove(&mut self, rank: Rank, weight: u64) -> bool {
        match self {
            ClassQueue::Fifo(fifo) => fifo.remove(rank.job, weight),
            ClassQueue::Edf(edf) => edf.remove(rank, weight),
        }
    }

    /// Takes the first job out, which has `weight` inputs left here.
    #[inline]
    pub fn remove_first(&mut self, weight: u64) {
        match self {
            ClassQueue::Fifo(fifo) => fifo.remove_first(weight),
            ClassQueue::Edf(edf) => edf.remove_first(),
        }
    }

    /// Some inputs of the first job are granted while others stay.
    pub fn lighten_first(&mut self, by: u64) {
        match self {
            ClassQueue::Fifo(fifo) => fifo.lighten(by),
            ClassQueue::Edf(edf) => edf.lighten_first(by),
        }
    }

    /// The inputs that a job of this rank would find before it.
    pub fn weight_before(&self, rank: Rank) -> u64 {
        match self {
            ClassQueue::Fifo(fifo) => fifo.weight(),
            ClassQueue::Edf(edf) => edf.weight_before(rank),
        }
    }

    /// The jobs in order.
    pub fn iter(&self) -> impl Iterator<Item = JobId> {
        let (fifo, edf) = match self {
            ClassQueue::Fifo(fifo) => (Some(fifo), None),
            ClassQueue::Edf(edf) => (None, Some(edf)),
        };
        fifo.into_iter().flat_map(Fifo::iter).chain(edf.into_iter().flat_map(Edf::iter))
    }
}
