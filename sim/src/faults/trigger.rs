//! When faults strike.

use windtunnel_config::{Fault, Occurrence};
use windtunnel_core::{Span, Time};

use crate::random::Stream;

const HOUR: f64 = 3600e9;

/// What makes a fault strike.
#[derive(Clone, Debug)]
pub enum Trigger {
    /// Every occasion does.
    Always,
    /// An occasion does with this probability.
    Coin(f64),
    /// Moments do.
    Moments(Moments),
}

/// Moments, given or random, in order.
#[derive(Clone, Debug)]
pub struct Moments {
    next: Time,
    until: Time,
    rest: Rest,
}

#[derive(Clone, Debug)]
enum Rest {
    /// The last one comes first.
    Given(Vec<Time>),
    /// Exponential gaps with this mean, in nanoseconds.
    Random { mean: f64, stream: Stream },
}

/// Stretches of time.
#[derive(Clone, Debug)]
pub struct Window {
    starts: Moments,
    lasts: Span,
    until: Time,
    /// When the stretch under way ends; [`Time::ZERO`]: none is.
    ends: Time,
}

impl Trigger {
    /// The trigger of `fault`, which draws random moments from `stream`.
    pub fn new(fault: &Fault, stream: Stream) -> Trigger {
        match fault.when {
            Occurrence::Always => Trigger::Always,
            Occurrence::Probability(probability) => Trigger::Coin(probability),
            Occurrence::At(_) | Occurrence::Rate(_) => Trigger::Moments(Moments::new(fault, stream)),
        }
    }
}

impl Moments {
    /// The moments at which `fault` strikes; where it names none, the one from which on it does.
    pub fn new(fault: &Fault, stream: Stream) -> Moments {
        let from = Time::ZERO.after(fault.from);
        let until = fault.to.map_or(Time::MAX, |to| Time::ZERO.after(to));
        let rest = match &fault.when {
            Occurrence::Always | Occurrence::Probability(_) => Rest::Given(vec![from]),
            Occurrence::At(moments) => {
                let moments = moments.iter().rev().map(|&at| Time::ZERO.after(at));
                Rest::Given(moments.filter(|at| *at >= from).collect())
            }
            Occurrence::Rate(rate) => Rest::Random { mean: HOUR / rate, stream },
        };
        let mut moments = Moments { next: from, until, rest };
        moments.advance();
        moments
    }

    /// When the next one comes; [`Time::MAX`]: none does.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Takes out one that has come by `now`; whether there was one.
    pub fn take(&mut self, now: Time) -> bool {
        let come = self.next <= now && self.next < Time::MAX;
        if come {
            self.advance();
        }
        come
    }

    /// Lets those that are to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.next = self.next.after(by);
        if let Rest::Given(moments) = &mut self.rest {
            moments.iter_mut().for_each(|at| *at = at.after(by));
        }
    }

    fn advance(&mut self) {
        let next = match &mut self.rest {
            Rest::Given(moments) => moments.pop().unwrap_or(Time::MAX),
            Rest::Random { mean, stream } => {
                self.next.after(Span::from_nanos((*mean * stream.exponential()).max(1.0) as u64))
            }
        };
        self.next = if next < self.until { next } else { Time::MAX };
    }
}

impl Window {
    /// The stretches in which `fault` is on: from each of its moments on for `lasts`, or to its end.
    pub fn new(fault: &Fault, lasts: Option<Span>, stream: Stream) -> Window {
        Window {
            starts: Moments::new(fault, stream),
            lasts: lasts.unwrap_or(Span::MAX),
            until: fault.to.map_or(Time::MAX, |to| Time::ZERO.after(to)),
            ends: Time::ZERO,
        }
    }

    /// Lets time pass up to `now`.
    pub fn pass(&mut self, now: Time) {
        while self.starts.next() <= now && self.starts.next() < Time::MAX {
            let ends = self.starts.next().after(self.lasts).min(self.until);
            self.ends = self.ends.max(ends);
            self.starts.take(now);
        }
        if self.ends <= now {
            self.ends = Time::ZERO;
        }
    }

    /// Whether it is on; time must have passed up to `now`.
    pub fn is_on(&self, now: Time) -> bool {
        now < self.ends
    }

    /// When that changes next.
    pub fn next(&self) -> Time {
        let ends = if self.ends > Time::ZERO { self.ends } else { Time::MAX };
        self.starts.next().min(ends)
    }

    /// Lets what is to come be `by` later.
    pub fn delay(&mut self, by: Span) {
        self.starts.delay(by);
        if self.ends > Time::ZERO {
            self.ends = self.ends.after(by);
        }
    }
}
