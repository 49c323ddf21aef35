//! An instance whose grants take a time of their own and do not disturb each other.

use windtunnel_core::{Attempt, Sent};

use super::card::Done;

/// Grants under way, in the order they started. A batch instance has one at a time, a slot instance one in each slot.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    grants: Vec<Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    attempt: Attempt,
    /// Nanoseconds of dedicated time left.
    rest: f64,
    output_tokens: u32,
}

impl Timed {
    /// Begins a grant of `time` nanoseconds of dedicated time.
    #[inline]
    pub fn begin(&mut self, attempt: Attempt, time: f64, output_tokens: u32) {
        self.grants.push(Running { attempt, rest: time, output_tokens });
    }

    /// Whether a grant is under way.
    #[inline]
    pub fn is_busy(&self) -> bool {
        !self.grants.is_empty()
    }

    /// Dedicated time until the next end.
    #[inline]
    pub fn rest(&self) -> f64 {
        self.grants.iter().fold(f64::INFINITY, |least, grant| least.min(grant.rest))
    }

    /// Dedicated time passed.
    #[inline]
    pub fn advance(&mut self, by: f64) {
        for grant in &mut self.grants {
            grant.rest -= by;
        }
    }

    /// Takes out the first grant with a rest of at most `slack`.
    #[inline]
    pub fn take_due(&mut self, slack: f64) -> Option<Done> {
        let place = self.grants.iter().position(|grant| grant.rest <= slack)?;
        let Running { attempt, output_tokens, rest: _ } = self.grants.remove(place);
        Some(Done { attempt, first_token: None, output_tokens })
    }

    /// Takes out the grant if it is the only one.
    #[inline]
    pub fn take_only(&mut self) -> Option<Done> {
        let [Running { attempt, output_tokens, rest: _ }] = self.grants[..] else { return None };
        self.grants.clear();
        Some(Done { attempt, first_token: None, output_tokens })
    }

    /// The grants under way.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.grants.iter().map(|grant| grant.attempt).collect()
    }

    /// Breaks a grant off; `None` if it was not under way.
    pub fn abort(&mut self, attempt: Attempt) -> Option<Sent> {
        let place = self.grants.iter().position(|grant| grant.attempt == attempt)?;
        self.grants.remove(place);
        Some(Sent::Nothing)
    }
}
