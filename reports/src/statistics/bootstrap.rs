//! How far a difference of quantiles could be another one: blocks of time are drawn again and again.
//!
//! Requests of one block met the same queue, so they are not independent; blocks that are long against what a queue remembers
//! are, nearly. A resample draws as many blocks as there are, with replacement, and takes with each all of its requests under
//! both settings: what they have in common stays in common. The interval holds 95% of the resampled differences (moving the
//! block bootstrap of Carlstein, 1986, to pairs; percentile interval of Efron, 1979). With some twenty blocks it is somewhat
//! too narrow.

use super::Confidence;

/// So many resamples.
const RESAMPLES: usize = 400;

/// A value under both settings, and the block in which its request came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The block.
    pub block: usize,
    /// Under the first settings.
    pub first: f64,
    /// Under the second.
    pub second: f64,
}

/// The interval of the difference, second minus first, of a quantile at `share` in (0, 1). `None` for fewer than two blocks, or
/// where fewer than ten values lie beyond the quantile.
pub fn quantile_difference(pairs: &[Pair], share: f64, confidence: Confidence) -> Option<(f64, f64)> {
    let beyond = pairs.len() as f64 * share.min(1.0 - share);
    let mut blocks: Vec<usize> = pairs.iter().map(|pair| pair.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    if blocks.len() < 2 || beyond < 10.0 {
        return None;
    }
    let sorted = |of: fn(&Pair) -> f64| {
        let place = |pair: &Pair| blocks.binary_search(&pair.block).unwrap_or(0) as u32;
        let mut values: Vec<(f64, u32)> = pairs.iter().map(|pair| (of(pair), place(pair))).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values
    };
    let (first, second) = (sorted(|pair| pair.first), sorted(|pair| pair.second));
    let mut draws = Draws(pairs.len() as u64);
    let mut differences: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut times = vec![0_u32; blocks.len()];
            for _ in 0..blocks.len() {
                times[draws.below(blocks.len())] += 1;
            }
            Some(weighted_quantile(&second, &times, share)? - weighted_quantile(&first, &times, share)?)
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence.share()) / 2.0;
    let at = |share: f64| differences.get(((differences.len() as f64 - 1.0) * share).round() as usize).copied();
    Some((at(tail)?, at(1.0 - tail)?))
}

/// The smallest value that at least `share` of them do not exceed, where those of a block count as often as it was drawn.
fn weighted_quantile(sorted: &[(f64, u32)], times: &[u32], share: f64) -> Option<f64> {
    let weight = |block: u32| u64::from(times.get(block as usize).copied().unwrap_or(0));
    let all: u64 = sorted.iter().map(|(_, block)| weight(*block)).sum();
    let rank = ((share * all as f64).ceil() as u64).max(1);
    let mut counted = 0;
    let reached = sorted.iter().find(|(_, block)| {
        counted += weight(*block);
        counted >= rank
    });
    reached.map(|(value, _)| *value)
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the same draws for the same data.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that hang together within a block of 50, and with them under the other settings by `change`.
    fn pairs(seed: u64, change: impl Fn(f64) -> f64) -> Vec<Pair> {
        let mut draws = Draws(seed);
        let mut unit = || draws.below(1 << 30) as f64 / f64::from(1 << 30);
        let mut all = Vec::new();
        for block in 0..40 {
            let level = unit();
            for _ in 0..50 {
                let first = level + 0.2 * unit();
                all.push(Pair { block, first, second: change(first) });
            }
        }
        all
    }

    #[test]
    fn what_varies_between_blocks_alike_does_not_widen_it() {
        let shifted = quantile_difference(&pairs(1, |value| value + 0.01), 0.5, Confidence::P95).unwrap();
        assert!((shifted.0 - 0.01).abs() < 1e-9 && (shifted.1 - 0.01).abs() < 1e-9, "{shifted:?}");
        let longer = quantile_difference(&pairs(1, |value| value * 1.1), 0.99, Confidence::P95).unwrap();
        assert!(longer.0 > 0.09 && longer.1 < 0.13 && longer.0 < longer.1, "{longer:?}");
    }

    #[test]
    fn it_holds_a_difference_that_is_not_there_about_as_often_as_it_says() {
        let held = (0..200).filter(|seed| {
            let (one, other) = (pairs(2 * seed + 1, |value| value), pairs(1_000 + seed, |value| value));
            let apart: Vec<Pair> = one.iter().zip(&other).map(|(a, b)| Pair { second: b.first, ..*a }).collect();
            quantile_difference(&apart, 0.5, Confidence::P95).is_some_and(|(low, high)| low <= 0.0 && 0.0 <= high)
        });
        let held = held.count();
        assert!((174..=199).contains(&held), "{held} of 200");
    }

    #[test]
    fn too_little_says_nothing() {
        let all = pairs(1, |value| value);
        assert_eq!(quantile_difference(&all[..50], 0.5, Confidence::P95), None, "one block");
        assert_eq!(quantile_difference(&all[..900], 0.99, Confidence::P95), None, "nine values beyond");
        assert!(quantile_difference(&all[..1000], 0.99, Confidence::P95).is_some());
    }
}
