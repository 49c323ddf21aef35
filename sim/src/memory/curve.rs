//! A value that changes at given moments.

use windtunnel_core::{Span, Time};

/// Steps in time.
#[derive(Clone, Debug)]
pub struct Curve<T> {
    points: Vec<(Time, T)>,
    /// How many of them have come.
    passed: usize,
}

impl<T: Copy> Curve<T> {
    /// The steps at these moments, which stand in order.
    pub fn new(points: &[(Span, T)]) -> Curve<T> {
        Curve { points: points.iter().map(|&(at, value)| (Time::ZERO.after(at), value)).collect(), passed: 0 }
    }

    /// Lets time pass up to `now`.
    pub fn pass(&mut self, now: Time) {
        self.passed += self.points[self.passed..].iter().take_while(|(at, _)| *at <= now).count();
    }

    /// The value of the latest step; `None`: none has come.
    pub fn value(&self) -> Option<T> {
        Some(self.points[..self.passed].last()?.1)
    }

    /// When the next step comes; [`Time::MAX`]: none does.
    pub fn next(&self) -> Time {
        self.points.get(self.passed).map_or(Time::MAX, |(at, _)| *at)
    }

    /// Lets the steps that are to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.points[self.passed..].iter_mut().for_each(|(at, _)| *at = at.after(by));
    }
}
