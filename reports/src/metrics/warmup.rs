//! Where the steady part of a run begins: means of groups of completions, for MSER.

use crate::statistics::mser_cut;

/// Completions of the smallest group; MSER-5 takes its name from it.
const SMALLEST: u32 = 5;
/// When there are so many groups, neighbours become one.
const MOST: usize = 20_000;
/// MSER says nothing about fewer groups.
const FEWEST: usize = 10;

/// Latencies of a workload in groups of equal size, in the order of completion.
#[derive(Clone, Debug)]
pub struct Groups {
    size: u32,
    filled: u32,
    sum: u64,
    full: Vec<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    /// Nanoseconds.
    sum: u64,
    /// When its last job was completed.
    end: u64,
}

/// The jobs of a full group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSum {
    /// How many.
    pub size: u32,
    /// The sum of their latencies in nanoseconds.
    pub sum: u64,
    /// When the last of them was completed.
    pub end: u64,
}

/// What MSER says of one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// There are too few completions to say anything.
    Unknown,
    /// The steady part begins at this nanosecond.
    At(u64),
}

impl Default for Groups {
    fn default() -> Self {
        Groups { size: SMALLEST, filled: 0, sum: 0, full: Vec::new() }
    }
}

impl Groups {
    /// A job with this latency was completed at `now`.
    #[inline]
    pub fn add(&mut self, latency: u64, now: u64) {
        self.sum = self.sum.saturating_add(latency);
        self.filled = self.filled.wrapping_add(1);
        if self.filled == self.size {
            self.close(now);
        }
    }

    fn close(&mut self, now: u64) {
        self.full.push(Group { sum: self.sum, end: now });
        (self.sum, self.filled) = (0, 0);
        if self.full.len() > MOST {
            self.pair();
        }
    }

    fn pair(&mut self) {
        let odd = self.full.len() % 2 == 1;
        for pair in 0..self.full.len() / 2 {
            let (a, b) = (self.full[2 * pair], self.full[2 * pair + 1]);
            self.full[pair] = Group { sum: a.sum.saturating_add(b.sum), end: b.end };
        }
        if odd && let Some(last) = self.full.last() {
            (self.sum, self.filled) = (last.sum, self.size);
        }
        self.full.truncate(self.full.len() / 2);
        self.size *= 2;
    }

    /// The full groups, in order.
    pub fn iter(&self) -> impl Iterator<Item = GroupSum> {
        self.full.iter().map(|group| GroupSum { size: self.size, sum: group.sum, end: group.end })
    }

    /// Where MSER cuts.
    pub fn cut(&self) -> Cut {
        if self.full.len() < FEWEST {
            return Cut::Unknown;
        }
        let means: Vec<f64> = self.full.iter().map(|group| group.sum as f64 / f64::from(self.size)).collect();
        let dropped = mser_cut(&means);
        Cut::At(dropped.checked_sub(1).map_or(0, |last| self.full[last].end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_unlike_the_rest_is_cut() {
        let mut groups = Groups::default();
        for i in 0..1_000u64 {
            let latency = if i < 100 { 9_000 - i * 40 } else { 1_000 + i * 7919 % 13 };
            groups.add(latency, i * 10);
        }
        let Cut::At(cut) = groups.cut() else { panic!("no cut") };
        assert!((940..=1_040).contains(&cut), "{cut}");
    }

    #[test]
    fn few_completions_say_nothing() {
        let mut groups = Groups::default();
        (0..49).for_each(|i| groups.add(1, i));
        assert_eq!(groups.cut(), Cut::Unknown);
    }

    #[test]
    fn groups_grow_instead_of_their_number() {
        let mut groups = Groups::default();
        (0..1_000_003u64).for_each(|i| groups.add(i, i));
        assert!(groups.full.len() <= MOST);
        let counted = groups.full.len() as u64 * u64::from(groups.size) + u64::from(groups.filled);
        assert_eq!(counted, 1_000_003);
        let summed: u64 = groups.full.iter().map(|group| group.sum).sum::<u64>() + groups.sum;
        assert_eq!(summed, 1_000_003 * 1_000_002 / 2);
    }
}
