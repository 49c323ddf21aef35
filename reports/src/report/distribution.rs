//! Means and quantiles of times over replications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Figure;
use crate::{
    metrics::{Absorb, Histogram, Quantile},
    statistics::{Confidence, spread_of_mean},
};

/// A mean needs so many values in each replication for an interval.
pub(super) const FEWEST: u64 = 10;

/// How a time is distributed, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// The mean.
    pub mean: Figure,
    /// The median.
    pub p50: Figure,
    /// Nine in ten are at most this.
    pub p90: Figure,
    /// Nineteen in twenty are.
    pub p95: Figure,
    /// All but one in a hundred are.
    pub p99: Figure,
    /// All but one in a thousand are.
    pub p999: Figure,
    /// The longest of all replications; never with an interval.
    pub max: Figure,
}

/// The quantiles of a distribution by name.
pub(super) const QUANTILES: [(&str, Quantile); 5] = [
    ("p50", Quantile::P50),
    ("p90", Quantile::P90),
    ("p95", Quantile::P95),
    ("p99", Quantile::P99),
    ("p999", Quantile::P999),
];

/// Histograms of one time, one a replication, each with the number of values it stands for: more than it holds where some
/// count as infinite.
pub(super) struct Samples<'a> {
    runs: Vec<(&'a Histogram, u64)>,
}

/// How many values each replication needs for an interval of this quantile: ten beyond it.
pub(super) fn needed(p: Quantile) -> u64 {
    (FEWEST as f64 / (1.0 - p.share())).round() as u64
}

impl<'a> Samples<'a> {
    /// Values that are all there.
    pub fn complete(runs: impl Iterator<Item = &'a Histogram>) -> Samples<'a> {
        Samples { runs: runs.map(|one| (one, one.count())).collect() }
    }

    /// The least of so many values; the others are infinite.
    pub fn among(runs: impl Iterator<Item = (&'a Histogram, u64)>) -> Samples<'a> {
        Samples { runs: runs.map(|(one, total)| (one, total.max(one.count()))).collect() }
    }

    /// The smallest number of values of a replication.
    pub fn fewest(&self) -> u64 {
        self.runs.iter().map(|(_, total)| *total).min().unwrap_or(0)
    }

    /// The distribution; `None` when there are no values at all.
    pub fn distribution(&self) -> Option<Distribution> {
        let mut pooled = Histogram::default();
        self.runs.iter().for_each(|(one, _)| pooled.absorb((*one).clone()));
        let total: u64 = self.runs.iter().map(|(_, total)| total).sum();
        if total == 0 {
            return None;
        }
        let of = |p| self.quantile(&pooled, total, p);
        let max = if total > pooled.count() { f64::INFINITY } else { pooled.max().unwrap_or(0) as f64 / 1e9 };
        Some(Distribution {
            mean: self.mean(),
            p50: of(Quantile::P50),
            p90: of(Quantile::P90),
            p95: of(Quantile::P95),
            p99: of(Quantile::P99),
            p999: of(Quantile::P999),
            max: Figure::bare(max, self.filled()),
        })
    }

    fn filled(&self) -> u32 {
        self.runs.iter().filter(|(_, total)| *total > 0).count() as u32
    }

    fn mean(&self) -> Figure {
        let means: Vec<f64> = self.runs.iter().filter_map(|run| mean_of(*run)).collect();
        let figure = Figure::of_values(&means).unwrap_or(Figure::bare(f64::INFINITY, self.filled()));
        if self.fewest() < FEWEST { figure.without_interval() } else { figure }
    }

    /// The quantile of all replications together +- t * sd of the replications' own / sqrt(n).
    fn quantile(&self, pooled: &Histogram, total: u64, p: Quantile) -> Figure {
        let value = pooled.quantile_among(p, total).map_or(f64::INFINITY, |nanos| nanos / 1e9);
        let figure = Figure::bare(value, self.filled());
        if self.fewest() < needed(p) {
            return figure;
        }
        let each = self
            .runs
            .iter()
            .map(|(one, total)| one.quantile_among(p, *total).map_or(f64::INFINITY, |nanos| nanos / 1e9));
        figure.within(spread_of_mean(&each.collect::<Vec<_>>(), Confidence::P95))
    }
}

fn mean_of((histogram, total): (&Histogram, u64)) -> Option<f64> {
    if total > histogram.count() {
        return Some(f64::INFINITY);
    }
    Some(histogram.mean()? / 1e9)
}

impl Distribution {
    /// Its figures by name.
    pub fn figures(&self) -> [(&'static str, Figure); 7] {
        [
            ("mean", self.mean),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p999", self.p999),
            ("max", self.max),
        ]
    }

    /// The same without intervals.
    #[must_use]
    pub fn without_intervals(self) -> Distribution {
        Distribution {
            mean: self.mean.without_interval(),
            p50: self.p50.without_interval(),
            p90: self.p90.without_interval(),
            p95: self.p95.without_interval(),
            p99: self.p99.without_interval(),
            p999: self.p999.without_interval(),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl Iterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn a_quantile_is_that_of_all_replications_together() {
        let runs = [histogram((0..1000).map(|_| 1_000_000_000)), histogram((0..1000).map(|_| 3_000_000_000))];
        let distribution = Samples::complete(runs.iter()).distribution().unwrap();
        assert_eq!((distribution.p50.mean, distribution.p90.mean), (1.0, 3.0));
        assert_eq!(distribution.mean.mean, 2.0);
        let half = distribution.p99.half().unwrap();
        assert!((half - 12.7062).abs() < 1e-3, "{half}");
        assert_eq!(distribution.p999.low, None, "a thousand values are too few");
    }

    #[test]
    fn values_that_never_came_are_infinite() {
        let one = histogram((1..=90).map(|i| i * 1_000_000_000));
        let distribution = Samples::among([(&one, 100)].into_iter()).distribution().unwrap();
        assert_eq!(distribution.p90.mean, 90.0);
        assert_eq!(
            (distribution.p95.mean, distribution.mean.mean, distribution.max.mean),
            (f64::INFINITY, f64::INFINITY, f64::INFINITY)
        );
        assert_eq!(Samples::complete([Histogram::default()].iter()).distribution(), None);
    }
}
