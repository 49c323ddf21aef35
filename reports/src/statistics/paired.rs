//! Differences between two settings that met the same world.

use super::{Confidence, Interval, interval_of_mean};

/// The mean difference of a figure between two settings, replication by replication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Second minus first, with its interval.
    pub by: Interval,
    /// How many replications had a partner.
    pub pairs: usize,
}

/// The difference of a figure between two sets of replications, given as (seed and replication, value): those with the same
/// seed met the same arrivals, sizes and faults, so their differences vary far less than they do. `None` for fewer than two
/// pairs.
pub fn paired_difference<K: Ord + Copy>(
    first: &[(K, f64)],
    second: &[(K, f64)],
    confidence: Confidence,
) -> Option<Difference> {
    let differences: Vec<f64> = first
        .iter()
        .filter_map(|(key, a)| second.iter().find(|(other, _)| other == key).map(|(_, b)| b - a))
        .filter(|difference| difference.is_finite())
        .collect();
    let by = interval_of_mean(&differences, confidence)?;
    Some(Difference { by, pairs: differences.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_alike_cancels() {
        let first = [(1, 10.0), (2, 90.0), (3, 40.0), (4, 1.0)];
        let second = [(3, 41.0), (2, 91.1), (1, 10.9)];
        let difference = paired_difference(&first, &second, Confidence::P95).unwrap();
        assert_eq!(difference.pairs, 3);
        assert!((difference.by.mean - 1.0).abs() < 1e-9 && difference.by.half < 0.3, "{difference:?}");
        assert_eq!(paired_difference(&first, &second[..1], Confidence::P95), None);
    }
}
