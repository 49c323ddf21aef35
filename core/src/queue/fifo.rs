//! First in, first out. Job numbers rise with arrival, so the queue is sorted by them.

use alloc::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::JobId;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fifo {
    jobs: VecDeque<JobId>,
    /// Jobs that left from the middle and still stand in `jobs`; never the first.
    gone: BTreeSet<JobId>,
    weight: u64,
}

impl Fifo {
    /// Whether its jobs are in order, and those that are gone were among them.
    pub fn is_sound(&self) -> bool {
        let ordered = self.jobs.iter().zip(self.jobs.iter().skip(1)).all(|(one, next)| one < next);
        let gone = |job: &JobId| self.jobs.front() != Some(job) && self.jobs.binary_search(job).is_ok();
        ordered && self.gone.iter().all(gone)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.jobs.len() - self.gone.len()
    }

    pub fn weight(&self) -> u64 {
        self.weight
    }

    #[inline]
    pub fn first(&self) -> Option<JobId> {
        self.jobs.front().copied()
    }

    #[inline]
    pub fn insert(&mut self, job: JobId, weight: u64) {
        self.weight += weight;
        if self.jobs.back().is_none_or(|&last| last < job) {
            self.jobs.push_back(job);
        } else {
            self.insert_at_old_place(job);
        }
    }

    /// A job that was here before comes back: before every younger one.
    fn insert_at_old_place(&mut self, job: JobId) {
        if !self.gone.remove(&job) {
            let at = self.jobs.partition_point(|&other| other < job);
            self.jobs.insert(at, job);
        }
    }

    pub fn remove(&mut self, job: JobId, weight: u64) -> bool {
        if self.jobs.front() == Some(&job) {
            self.remove_first(weight);
            return true;
        }
        if self.jobs.binary_search(&job).is_err() || !self.gone.insert(job) {
            return false;
        } else if self.gone.len() > 16 + self.jobs.len() / 2 {
            let gone = core::mem::take(&mut self.gone);
            self.jobs.retain(|job| !gone.contains(job));
        }
        self.weight = self.weight.saturating_sub(weight);
        true
    }

    #[inline]
    pub fn remove_first(&mut self, weight: u64) {
        self.jobs.pop_front();
        self.trim();
        self.weight = self.weight.saturating_sub(weight);
    }

    #[inline]
    fn trim(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        while self.jobs.front().is_some_and(|job| self.gone.remove(job)) {
            self.jobs.pop_front();
        }
    }

    pub fn lighten(&mut self, by: u64) {
        self.weight = self.weight.saturating_sub(by);
    }

    pub fn iter(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().copied().filter(|job| self.gone.is_empty() || !self.gone.contains(job))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn filled(jobs: impl IntoIterator<Item = u64>) -> Fifo {
        let mut fifo = Fifo::default();
        for job in jobs {
            fifo.insert(JobId(job), 2);
        }
        fifo
    }

    fn ids(fifo: &Fifo) -> Vec<u64> {
        fifo.iter().map(|job| job.0).collect()
    }

    #[test]
    fn jobs_leave_from_the_front_and_from_the_middle() {
        let mut fifo = filled(0..6);
        assert!(fifo.remove(JobId(1), 2));
        assert!(!fifo.remove(JobId(1), 2));
        assert!(fifo.remove(JobId(0), 2));
        assert_eq!(fifo.first(), Some(JobId(2)));
        assert_eq!(ids(&fifo), [2, 3, 4, 5]);
        assert_eq!((fifo.len(), fifo.weight()), (4, 8));
    }

    #[test]
    fn a_job_that_comes_back_stands_before_younger_ones() {
        let mut fifo = filled([3, 5, 9]);
        fifo.insert(JobId(4), 2);
        fifo.insert(JobId(1), 2);
        assert_eq!(ids(&fifo), [1, 3, 4, 5, 9]);
    }

    #[test]
    fn what_left_from_the_middle_does_not_pile_up() {
        let mut fifo = filled(0..1_000);
        for job in 1..999 {
            assert!(fifo.remove(JobId(job), 2));
        }
        assert_eq!(ids(&fifo), [0, 999]);
        assert!(fifo.jobs.len() < 40);
    }
}
