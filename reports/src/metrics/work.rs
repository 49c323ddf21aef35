//! What a model did on a device: grants and their sizes, busy time, loads.

use super::stretch::{Absorb, count};

/// Batch sizes up to this are counted one by one, greater ones together.
const SIZES: usize = 1024;
/// What was done at a place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Grants that began, by weight up to 1024.
    pub sizes: Vec<u64>,
    /// Grants of a greater weight.
    pub huge: u64,
    /// Their weights.
    pub huge_weight: u64,
    /// The squares of their weights.
    pub huge_squares: u128,
    /// Inputs of the grants that finished.
    pub inputs: u64,
    /// Nanoseconds in which an instance had a grant under way, summed over instances.
    pub busy: u64,
    /// Nanoseconds in which an instance was ready, summed over instances.
    pub ready: u64,
    /// Loads begun.
    pub loads: u64,
    /// Instances stopped to make room.
    pub evictions: u64,
}

impl Work {
    /// An instance was busy for so many nanoseconds.
    #[inline]
    pub fn busy_for(&mut self, span: u64) {
        count(&mut self.busy, span);
    }

    /// A grant of that weight began.
    #[inline]
    pub fn began(&mut self, weight: u32) {
        match self.sizes.get_mut(weight as usize) {
            Some(grants) => count(grants, 1),
            None => self.began_rarely(weight),
        }
    }

    /// A grant of a weight that none had before, or of one too great to be counted by itself.
    #[cold]
    fn began_rarely(&mut self, weight: u32) {
        if weight as usize <= SIZES {
            self.sizes.resize(weight as usize + 1, 0);
            self.sizes[weight as usize] = 1;
        } else {
            self.huge += 1;
            self.huge_weight += u64::from(weight);
            self.huge_squares += u128::from(weight) * u128::from(weight);
        }
    }

    /// Grants that began.
    pub fn grants(&self) -> u64 {
        self.sizes.iter().sum::<u64>() + self.huge
    }

    /// The sum of their weights.
    pub fn weight(&self) -> u64 {
        (0u64..).zip(&self.sizes).map(|(weight, count)| weight * count).sum::<u64>() + self.huge_weight
    }

    /// The sum of the squares of their weights.
    pub fn squares(&self) -> u128 {
        (0u128..).zip(&self.sizes).map(|(weight, count)| weight * weight * u128::from(*count)).sum::<u128>()
            + self.huge_squares
    }
}

impl Absorb for Work {
    fn absorb(&mut self, other: Work) {
        self.huge += other.huge;
        self.huge_weight += other.huge_weight;
        self.huge_squares += other.huge_squares;
        if self.sizes.len() < other.sizes.len() {
            self.sizes.resize(other.sizes.len(), 0);
        }
        self.sizes.iter_mut().zip(other.sizes).for_each(|(mine, theirs)| *mine += theirs);
        self.inputs += other.inputs;
        self.busy = self.busy.saturating_add(other.busy);
        self.ready = self.ready.saturating_add(other.ready);
        self.loads += other.loads;
        self.evictions += other.evictions;
    }
}
