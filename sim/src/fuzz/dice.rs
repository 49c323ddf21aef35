//! Dice: every choice of a random world, from its seed.

use crate::random::{Purpose, Seed, Stream};

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Dice(Stream);

impl Dice {
    /// The dice of the world with this seed.
    pub fn of(seed: u64) -> Dice {
        Dice(Seed::of_workload(seed, 0, "world").stream(Purpose::Occasion))
    }

    /// One of 0, 1, .., `sides` - 1; 0 for no sides.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0.below(sides.max(1) as usize) as u64
    }

    /// Both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.roll(most - least + 1)
    }

    /// Between both, every size of number as likely as every other.
    pub fn scale(&mut self, least: f64, most: f64) -> f64 {
        let exponent = libm::log(least) + (libm::log(most) - libm::log(least)) * self.0.uniform();
        libm::exp(exponent)
    }

    pub fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize].clone()
    }

    /// So many nanoseconds, as a file says it.
    pub fn millis(&mut self, least: f64, most: f64) -> String {
        format!("{}ms", self.scale(least, most).ceil() as u64)
    }
}
