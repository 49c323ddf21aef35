//! When a device is looked at, and which readings are worth telling.
//!
//! A device is looked at while models are on it, while something changes, and when it is asked for. A reading is told when it
//! was asked for, when something has just changed (the scheduler waits for further readings then), or when a figure has
//! moved by more than a machine's memory moves by itself. Otherwise a monitor is silent.

use windtunnel_core::Bytes;

use super::reading::{Figure, Reading};

/// So many readings are told after something has changed.
const LIVELY: u32 = 8;
/// The least by which a figure moves.
const LEAST: u64 = 4 << 20;
/// Or this part of all memory, one in so many.
const PART: u64 = 1024;

/// Why a reading was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Somebody asked for it.
    Asked,
    /// It was time.
    Due,
}

/// What was told, and how much more will be.
#[derive(Debug, Default)]
pub(super) struct Steady {
    told: Option<Reading>,
    lively: u32,
}

impl Steady {
    /// Something has changed, or is about to.
    pub fn stirred(&mut self) {
        self.lively = LIVELY;
    }

    /// Whether nothing is expected to change.
    pub fn settled(&self) -> bool {
        self.lively == 0
    }

    /// Whether a reading is worth telling; if so it counts as told.
    pub fn tells(&mut self, reading: &Reading, reason: Reason) -> bool {
        let moved = self.told.as_ref().is_none_or(|told| moved(told, reading));
        let tells = moved || reason == Reason::Asked || self.lively > 0;
        self.lively = if moved { LIVELY } else { self.lively.saturating_sub(1) };
        if tells {
            self.told = Some(reading.clone());
        }
        tells
    }
}

fn moved(told: &Reading, reading: &Reading) -> bool {
    let total = reading.total.map_or(0, |total| total.bytes.get());
    let least = Bytes::new(LEAST.max(total / PART));
    let processes = || told.processes.iter().zip(&reading.processes);
    far(told.total, reading.total, Bytes::ZERO)
        || far(told.used, reading.used, least)
        || told.processes.len() != reading.processes.len()
        || processes().any(|(one, other)| one.pid != other.pid || far(one.used, other.used, least))
}

/// Whether two figures differ by more than `least`, or only one is known.
fn far(one: Option<Figure>, other: Option<Figure>, least: Bytes) -> bool {
    match (one, other) {
        (None, None) => false,
        (Some(one), Some(other)) => one.bytes.minus(other.bytes).max(other.bytes.minus(one.bytes)) > least,
        (Some(_), None) | (None, Some(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(bytes: u64) -> Reading {
        let figure = |bytes| Some(Figure::new(bytes, "test"));
        Reading { total: figure(1 << 30), used: figure(bytes), ..Reading::default() }
    }

    #[test]
    fn a_machine_that_breathes_is_silent_and_one_that_moves_speaks() {
        let mut steady = Steady::default();
        assert!(steady.tells(&used(100 << 20), Reason::Due), "the first is news");
        for _ in 0..LIVELY {
            assert!(!steady.settled());
            assert!(steady.tells(&used(101 << 20), Reason::Due), "and so is what follows");
        }
        assert!(steady.settled());
        assert!(!steady.tells(&used(103 << 20), Reason::Due));
        assert!(steady.tells(&used(103 << 20), Reason::Asked));
        assert!(!steady.tells(&used(107 << 20), Reason::Due), "exactly the least is no move");
        assert!(steady.tells(&used(108 << 20), Reason::Due));
        assert!(!steady.settled());
    }

    #[test]
    fn slow_growth_is_told_in_the_end() {
        let mut steady = Steady::default();
        (0..=LIVELY).for_each(|_| assert!(steady.tells(&used(0), Reason::Due)));
        let told = (1..=20_u64).filter(|step| steady.tells(&used(step << 20), Reason::Due)).count();
        assert!(told > 0);
    }

    #[test]
    fn what_becomes_unknown_has_moved() {
        let mut steady = Steady::default();
        (0..=LIVELY).for_each(|_| assert!(steady.tells(&used(5), Reason::Due)));
        let unknown = Reading { used: None, ..used(5) };
        assert!(steady.tells(&unknown, Reason::Due));
    }
}
