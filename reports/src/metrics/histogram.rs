//! A log-linear histogram of integers that knows its atoms.
//!
//! Every power of two is an octave of 64 equal bins; octaves exist once something falls into them. A bin keeps how many
//! values it holds, its least and its greatest value and how many equal the least. So a bin of one value is exact, an atom at
//! the lower end of a bin (no wait at all, the service of a request that is alone) is exact, the extremes are exact, and
//! everything else is interpolated between the least and the greatest value of its bin, which lie at most 1/64 of the value
//! apart.

use super::stretch::{Absorb, count};

/// Bins of an octave.
const BINS: usize = 64;
/// log2 of [`BINS`].
const BITS: u32 = 6;

/// Counts of non-negative integers, with their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    count: u64,
    sum: u128,
    octaves: Vec<Option<Box<Octave>>>,
}

type Octave = [Bin; BINS];

/// A bin that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// How many values it holds.
    pub count: u64,
    /// How many of them equal the least.
    pub at_least: u64,
    /// The least.
    pub least: u64,
    /// The greatest.
    pub most: u64,
}

/// A probability in parts per million, so that ranks are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(u32);

impl Quantile {
    /// The median.
    pub const P50: Quantile = Quantile(500_000);
    /// Nine in ten are at most this.
    pub const P90: Quantile = Quantile(900_000);
    /// Nineteen in twenty are.
    pub const P95: Quantile = Quantile(950_000);
    /// All but one in a hundred are.
    pub const P99: Quantile = Quantile(990_000);
    /// All but one in a thousand are.
    pub const P999: Quantile = Quantile(999_000);

    /// `parts` millionths, at most one.
    pub const fn ppm(parts: u32) -> Quantile {
        Quantile(if parts > 1_000_000 { 1_000_000 } else { parts })
    }

    /// The probability, in [0, 1].
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Which of `count` sorted values, from 1, is the quantile inf{t: F(t) >= p}.
    pub fn rank(self, count: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(self.0)).div_ceil(1_000_000);
        u64::try_from(rank).unwrap_or(u64::MAX).max(1)
    }
}

impl Histogram {
    /// Takes `value` in.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_all([value].into_iter());
    }

    /// Takes all `values` in.
    #[inline]
    pub fn record_all(&mut self, values: impl Iterator<Item = u64>) {
        let (mut many, mut sum) = (0_u64, 0_u128);
        for value in values {
            many = many.wrapping_add(1);
            sum = sum.wrapping_add(u128::from(value));
            let (octave, bin) = place(value);
            match self.octaves.get_mut(octave) {
                Some(Some(bins)) => bins[bin].add(value),
                _ => self.open(octave)[bin].add(value),
            }
        }
        count(&mut self.count, many);
        self.sum = self.sum.wrapping_add(sum);
    }

    #[cold]
    fn open(&mut self, octave: usize) -> &mut Octave {
        if self.octaves.len() <= octave {
            self.octaves.resize_with(octave + 1, || None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new([Bin::EMPTY; BINS]))
    }

    /// How many values it holds.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of its values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean of its values; `None` when there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The greatest value; `None` when there is none.
    pub fn max(&self) -> Option<u64> {
        self.octaves
            .iter()
            .rev()
            .flatten()
            .flat_map(|bins| bins.iter().rev())
            .find(|bin| bin.count > 0)
            .map(|bin| bin.most)
    }

    /// The quantile inf{t: F(t) >= p} of its values; `None` when there are none.
    pub fn quantile(&self, p: Quantile) -> Option<f64> {
        self.quantile_among(p, self.count)
    }

    /// The quantile of `total` values of which those here are the least and the others are infinite; `None` when it is one
    /// of the others.
    pub fn quantile_among(&self, p: Quantile, total: u64) -> Option<f64> {
        let mut rank = p.rank(total);
        if rank > self.count {
            return None;
        }
        for bin in self.bins() {
            if rank <= bin.count {
                return Some(bin.value_at(rank));
            }
            rank -= bin.count;
        }
        None
    }

    /// The bins that hold something, in rising order.
    pub fn bins(&self) -> impl Iterator<Item = &Bin> {
        self.octaves.iter().flatten().flat_map(|bins| bins.iter()).filter(|bin| bin.count > 0)
    }
}

/// The octave of `value` and its bin there. The first octave holds 0 to 63, one value a bin.
#[inline(always)]
fn place(value: u64) -> (usize, usize) {
    let shift = (value | (2 * BINS as u64 - 1)).ilog2().wrapping_sub(BITS);
    let scaled = value.wrapping_shr(shift) as usize;
    (shift as usize + scaled / BINS, scaled % BINS)
}

impl Bin {
    const EMPTY: Bin = Bin { count: 0, at_least: 0, least: u64::MAX, most: 0 };

    /// Takes a value in without a branch: whether it is the least is as good as random, and a wrong guess costs more than all
    /// of this.
    #[inline(always)]
    fn add(&mut self, value: u64) {
        count(&mut self.count, 1);
        let before = if value < self.least { 0 } else { self.at_least };
        self.at_least = before.wrapping_add(u64::from(value <= self.least));
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    /// The `rank`-th of its values, from 1: exact up to the count of the least, then evenly spread up to the greatest.
    fn value_at(&self, rank: u64) -> f64 {
        if rank <= self.at_least {
            return self.least as f64;
        }
        let share = (rank - self.at_least) as f64 / (self.count - self.at_least) as f64;
        self.least as f64 + (self.most - self.least) as f64 * share
    }

    fn absorb(&mut self, other: &Bin) {
        if other.count == 0 {
            return;
        }
        self.count += other.count;
        self.most = self.most.max(other.most);
        if other.least < self.least {
            (self.least, self.at_least) = (other.least, other.at_least);
        } else if other.least == self.least {
            self.at_least += other.at_least;
        }
    }
}

impl Absorb for Histogram {
    fn absorb(&mut self, other: Histogram) {
        self.count += other.count;
        self.sum += other.sum;
        if self.octaves.len() < other.octaves.len() {
            self.octaves.resize_with(other.octaves.len(), || None);
        }
        for (mine, theirs) in self.octaves.iter_mut().zip(other.octaves) {
            match (mine, theirs) {
                (_, None) => {}
                (mine @ None, theirs) => *mine = theirs,
                (Some(mine), Some(theirs)) => mine.iter_mut().zip(theirs.iter()).for_each(|(a, b)| a.absorb(b)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    fn exact(values: &mut [u64], p: Quantile) -> u64 {
        values.sort_unstable();
        values[p.rank(values.len() as u64) as usize - 1]
    }

    #[test]
    fn every_value_lies_in_its_own_bin() {
        for value in
            (0..4096).chain((6..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1])).chain([u64::MAX])
        {
            let (octave, bin) = place(value);
            let width = 1u64 << octave.saturating_sub(1);
            let low = if octave == 0 { bin as u64 } else { (64 + bin as u64).wrapping_mul(width) };
            assert!(low <= value && value - low < width, "{value} is not in octave {octave} bin {bin}");
        }
    }

    #[test]
    fn atoms_come_out_exactly() {
        let mut values = vec![0; 700];
        values.extend(std::iter::repeat_n(1_500_000, 100));
        values.extend((0..200).map(|i| 1_500_001 + i * 97));
        let histogram = histogram(&values);
        assert_eq!(histogram.quantile(Quantile::ppm(700_000)), Some(0.0));
        assert_eq!(histogram.quantile(Quantile::ppm(700_001)), Some(1_500_000.0));
        assert_eq!(histogram.quantile(Quantile::ppm(800_000)), Some(1_500_000.0));
        assert_eq!(histogram.quantile(Quantile::ppm(1_000_000)), Some((1_500_001 + 199 * 97) as f64));
        assert_eq!(histogram.max(), Some(1_500_001 + 199 * 97));
    }

    #[test]
    fn what_never_came_counts_as_infinite() {
        let histogram = histogram(&[1, 2, 3]);
        assert_eq!(histogram.quantile_among(Quantile::P50, 6), Some(3.0));
        assert_eq!(histogram.quantile_among(Quantile::P90, 6), None);
        assert_eq!(Histogram::default().quantile(Quantile::P50), None);
    }

    proptest! {
        #[test]
        fn a_merge_is_the_histogram_of_the_union(a in values(), b in values()) {
            let mut merged = histogram(&a);
            merged.absorb(histogram(&b));
            let union: Vec<u64> = a.iter().chain(&b).copied().collect();
            let direct = histogram(&union);
            prop_assert!(merged.bins().eq(direct.bins()));
            prop_assert_eq!((merged.count(), merged.sum(), merged.max()), (direct.count(), direct.sum(), direct.max()));
        }

        #[test]
        fn a_quantile_is_within_a_bin_of_the_exact_one(mut list in values(), parts in 1..=1_000_000u32) {
            prop_assume!(!list.is_empty());
            let p = Quantile::ppm(parts);
            let got = histogram(&list).quantile(p).unwrap();
            let exact = exact(&mut list, p) as f64;
            prop_assert!((got - exact).abs() <= exact / 64.0, "{} instead of {}", got, exact);
        }
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(
            prop_oneof![Just(0), 0..100u64, 0..1_000_000_000u64, any::<u64>().prop_map(|v| v >> 8)],
            0..200,
        )
    }
}
