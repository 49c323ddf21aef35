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
    /// Jobs that arrived and have not ended.
    pub system: u64,
    /// Jobs of which no step was granted yet, or whose step came to nothing.
    pub queue: u64,
    /// The sum of the arrival times of the jobs in the system.
    arrivals: u128,
    requeued: BTreeSet<JobId>,
    /// The sum of the moments at which the number in the system rose less those at which it fell, modulo 2^128.
    system_moments: u128,
    /// The same for the queue.
    queue_moments: u128,
    begun: Begun,
    points: Vec<Point>,
    /// The jobs in the system at the end of each stretch.
    pub left: Stretched<Left>,
}

/// What a point began with.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    at: u64,
    system: u64,
    queue: u64,
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
            system: 0,
            queue: 0,
            arrivals: 0,
            requeued: BTreeSet::new(),
            system_moments: 0,
            queue_moments: 0,
            begun: Begun::default(),
            points: vec![Point::default(); POINTS],
            left: Stretched::default(),
        }
    }
}

impl Crowd {
    /// A job arrives.
    #[inline]
    pub fn enter(&mut self, now: u64) {
        count(&mut self.system, 1);
        self.arrivals = self.arrivals.wrapping_add(u128::from(now));
        self.system_moments = self.system_moments.wrapping_add(u128::from(now));
        self.lengthen(1, now);
    }

    /// Steps of jobs are granted, `first` of them the first of their job.
    #[inline]
    pub fn started(&mut self, first: u64, now: u64) {
        self.shorten(first, now);
    }

    #[inline]
    fn lengthen(&mut self, by: u64, now: u64) {
        count(&mut self.queue, by);
        self.queue_moments = self.queue_moments.wrapping_add(u128::from(by).wrapping_mul(u128::from(now)));
    }

    #[inline]
    fn shorten(&mut self, by: u64, now: u64) {
        let by = by.min(self.queue);
        self.queue -= by;
        self.queue_moments = self.queue_moments.wrapping_sub(u128::from(by).wrapping_mul(u128::from(now)));
    }

    /// Whether any job is back in the queue after a step of it came to nothing.
    #[inline]
    pub fn any_requeued(&self) -> bool {
        !self.requeued.is_empty()
    }

    /// A job goes back to the queue.
    pub fn requeue(&mut self, job: JobId, now: u64) {
        if self.requeued.insert(job) {
            self.lengthen(1, now);
        }
    }

    /// A job that was back in the queue starts again or ends; false for any other.
    pub fn take_requeued(&mut self, job: JobId, now: u64) -> bool {
        let was = self.requeued.remove(&job);
        self.shorten(u64::from(was), now);
        was
    }

    /// A job that arrived then ends; one that never started was in the queue until now.
    #[inline]
    pub fn leave(&mut self, finish: &Finish, now: u64) {
        if self.system > 0 {
            self.system -= 1;
            self.system_moments = self.system_moments.wrapping_sub(u128::from(now));
        }
        if finish.started.is_none() {
            self.shorten(1, now);
        }
        self.arrivals = self.arrivals.saturating_sub(u128::from(finish.arrived.as_nanos()));
    }

    /// The point that lasts ends at `now` and the next begins; `into` is its place, if it has one.
    pub fn close_point(&mut self, into: Option<usize>, now: u64) {
        let Begun { at, system, queue } = self.begun;
        let integral = |number: u64, before: u64, moments: u128| {
            let rectangle = u128::from(number) * u128::from(now);
            rectangle.wrapping_sub(u128::from(before) * u128::from(at)).wrapping_sub(moments)
        };
        let done = Point {
            span: now.saturating_sub(at),
            system: integral(self.system, system, self.system_moments),
            queue: integral(self.queue, queue, self.queue_moments),
        };
        (self.system_moments, self.queue_moments) = (0, 0);
        self.begun = Begun { at: now, system: self.system, queue: self.queue };
        if let Some(place) = into.and_then(|place| self.points.get_mut(place)) {
            place.absorb(done);
        }
    }

    /// A stretch ends at `now`.
    pub fn close_stretch(&mut self, stretch: usize, now: u64) {
        let age = if self.system == 0 { 0.0 } else { self.ages(now) / self.system as f64 };
        self.left[stretch] = Left { age: Some(age), jobs: self.system };
    }

    /// The sum of the ages of the jobs in the system in nanoseconds.
    pub fn ages(&self, now: u64) -> f64 {
        (u128::from(self.system) * u128::from(now)).saturating_sub(self.arrivals) as f64
    }

    /// Makes one of each pair.
    pub fn halve(&mut self) {
        halve(&mut self.points);
        self.left.halve();
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
        crowd.started(1, 110);
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
        crowd.started(1, 0);
        crowd.requeue(JobId(0), 3);
        crowd.requeue(JobId(0), 3);
        assert_eq!(crowd.queue, 1);
        assert!(crowd.take_requeued(JobId(0), 5));
        assert!(!crowd.take_requeued(JobId(0), 5));
        assert_eq!((crowd.queue, crowd.any_requeued()), (0, false));
    }
}
