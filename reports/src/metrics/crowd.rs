//! How many jobs there are, and how many of them wait, over time.
//!
//! The integral of a number over time needs no work while time passes: over a point from a to b it is
//! n(b)*b - n(a)*a - (the sum of the moments of arrivals) + (the sum of the moments of departures), all integers.

use std::collections::BTreeSet;

use windtunnel_core::{Finish, JobId};

use super::stretch::{Absorb, POINTS, STRETCHES, Stretched, count, halve};

/// Jobs in the system and in the queue, now and over time.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// Arrivals: into the system and into the queue.
    entered: Passage,
    /// Ends: out of the system.
    left: Passage,
    /// First steps granted, and ends of jobs that had none: out of the queue.
    started: Passage,
    /// The sum of the arrival times of the jobs that ended.
    left_arrived: u128,
    requeued: BTreeSet<JobId>,
    begun: Begun,
    points: Vec<Point>,
    /// The jobs in the system at the end of each stretch.
    pub ends: Stretched<Left>,
}

/// How often something passed a gate, and the sum of the moments at which it did, modulo 2^128.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    count: u64,
    moments: u128,
}

/// What a point began with.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    at: u64,
    entered: Passage,
    left: Passage,
    started: Passage,
}

impl Passage {
    #[inline]
    fn one(&mut self, now: u64) {
        count(&mut self.count, 1);
        self.moments = self.moments.wrapping_add(u128::from(now));
    }

    #[inline]
    fn some(&mut self, by: u64, now: u64) {
        count(&mut self.count, by);
        self.moments = self.moments.wrapping_add(u128::from(by).wrapping_mul(u128::from(now)));
    }

    fn undo(&mut self, now: u64) {
        self.count = self.count.wrapping_sub(1);
        self.moments = self.moments.wrapping_sub(u128::from(now));
    }
}

/// Integrals over a short time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Nanoseconds covered.
    pub span: u64,
    /// Jobs in the system times nanoseconds.
    pub system: u128,
    /// Waiting jobs times nanoseconds.
    pub queue: u128,
}

/// The jobs in the system at the end of a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Left {
    /// Their mean age in nanoseconds, where the stretch has ended; 0 when there are none.
    pub age: Option<f64>,
    /// How many there are.
    pub jobs: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        Crowd {
            entered: Passage::default(),
            left: Passage::default(),
            started: Passage::default(),
            left_arrived: 0,
            requeued: BTreeSet::new(),
            begun: Begun::default(),
            points: vec![Point::default(); POINTS],
            ends: Stretched::default(),
        }
    }
}

impl Crowd {
    /// A job arrives.
    #[inline]
    pub fn enter(&mut self, now: u64) {
        self.entered.one(now);
    }

    /// How many jobs have arrived.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.entered.count
    }

    /// How many jobs are in the system.
    pub fn system(&self) -> u64 {
        self.entered.count.saturating_sub(self.left.count)
    }

    /// Steps of jobs are granted, `first` of them the first of their job.
    #[inline]
    pub fn start(&mut self, first: u64, now: u64) {
        self.started.some(first, now);
    }

    /// Whether any job is back in the queue after a step of it came to nothing.
    #[inline]
    pub fn any_requeued(&self) -> bool {
        !self.requeued.is_empty()
    }

    /// A job goes back to the queue.
    pub fn requeue(&mut self, job: JobId, now: u64) {
        if self.requeued.insert(job) {
            self.started.undo(now);
        }
    }

    /// A job that was back in the queue starts again or ends; false for any other.
    pub fn take_requeued(&mut self, job: JobId, now: u64) -> bool {
        let was = self.requeued.remove(&job);
        self.started.some(u64::from(was), now);
        was
    }

    /// A job ends; one that never started was in the queue until now.
    #[inline]
    pub fn leave(&mut self, finish: &Finish, now: u64) {
        self.left.one(now);
        self.left_arrived = self.left_arrived.wrapping_add(u128::from(finish.arrived.as_nanos()));
        if finish.started.is_none() {
            self.started.one(now);
        }
    }

    /// The point that lasts ends at `now` and the next begins; `into` is its place, if it has one.
    pub fn close_point(&mut self, into: Option<usize>, now: u64) {
        let begun = self.begun;
        self.begun = Begun { at: now, entered: self.entered, left: self.left, started: self.started };
        let integral = |out: Passage, out_before: Passage| {
            let area = |entered: Passage, out: Passage, at: u64| {
                let number = u128::from(entered.count.wrapping_sub(out.count));
                number.wrapping_mul(u128::from(at)).wrapping_sub(entered.moments).wrapping_add(out.moments)
            };
            area(self.entered, out, now).wrapping_sub(area(begun.entered, out_before, begun.at))
        };
        let done = Point {
            span: now.saturating_sub(begun.at),
            system: integral(self.left, begun.left),
            queue: integral(self.started, begun.started),
        };
        if let Some(place) = into.and_then(|place| self.points.get_mut(place)) {
            place.absorb(done);
        }
    }

    /// A stretch ends at `now`.
    pub fn close_stretch(&mut self, stretch: usize, now: u64) {
        let jobs = self.system();
        let age = if jobs == 0 { 0.0 } else { self.ages(now) / jobs as f64 };
        self.ends[stretch] = Left { age: Some(age), jobs };
    }

    /// The sum of the ages of the jobs in the system in nanoseconds.
    pub fn ages(&self, now: u64) -> f64 {
        let arrivals = self.entered.moments.wrapping_sub(self.left_arrived);
        (u128::from(self.system()) * u128::from(now)).saturating_sub(arrivals) as f64
    }

    /// Makes one of each pair.
    pub fn halve(&mut self) {
        halve(&mut self.points);
        self.ends.halve();
    }

    /// The points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The points of a stretch in one.
    pub fn stretch(&self, stretch: usize) -> Point {
        let per = POINTS / STRETCHES;
        let mut all = Point::default();
        self.points[stretch * per..(stretch + 1) * per].iter().for_each(|point| all.absorb(*point));
        all
    }
}

impl Absorb for Point {
    fn absorb(&mut self, other: Point) {
        self.span = self.span.saturating_add(other.span);
        self.system = self.system.saturating_add(other.system);
        self.queue = self.queue.saturating_add(other.queue);
    }
}

impl Absorb for Left {
    fn absorb(&mut self, other: Left) {
        if other.age.is_some() {
            *self = other;
        }
    }
}

impl Point {
    /// The mean number of jobs in the system; `None` for no time at all.
    pub fn mean_system(&self) -> Option<f64> {
        (self.span > 0).then(|| self.system as f64 / self.span as f64)
    }

    /// The mean number of waiting jobs; `None` for no time at all.
    pub fn mean_queue(&self) -> Option<f64> {
        (self.span > 0).then(|| self.queue as f64 / self.span as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_weighted_by_the_time_they_last() {
        let mut crowd = Crowd::default();
        crowd.close_point(None, 100);
        crowd.enter(100);
        crowd.enter(110);
        crowd.start(1, 110);
        crowd.close_point(Some(0), 140);
        crowd.close_point(Some(1), 150);
        let (first, second) = (crowd.points()[0], crowd.points()[1]);
        assert_eq!((first.span, first.mean_system(), first.mean_queue()), (40, Some(1.75), Some(1.0)));
        assert_eq!((second.span, second.mean_system(), second.mean_queue()), (10, Some(2.0), Some(1.0)));
        assert_eq!(crowd.ages(140), 70.0);
    }

    #[test]
    fn a_job_that_goes_back_waits_once() {
        let mut crowd = Crowd::default();
        crowd.enter(0);
        crowd.start(1, 0);
        crowd.requeue(JobId(0), 3);
        crowd.requeue(JobId(0), 3);
        assert!(crowd.take_requeued(JobId(0), 5));
        assert!(!crowd.take_requeued(JobId(0), 6));
        crowd.close_point(Some(0), 10);
        assert_eq!((crowd.points()[0].mean_queue(), crowd.any_requeued()), (Some(0.2), false));
    }
}
