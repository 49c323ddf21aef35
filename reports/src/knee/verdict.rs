//! Judging one rate: does the metric's interval lie wholly on one side of the limit?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The two-sided confidence at which rates are judged. With some ten probes in a search, 95% would let every other search
/// contain a wrong one.
pub const JUDGED_AT: f64 = 0.99;

/// What a metric has to keep to, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// At most so much.
    AtMost(f64),
    /// At least so much.
    AtLeast(f64),
}

/// Whether a system's backlog settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// It does.
    Stable,
    /// It grows as long as the run lasts.
    Unstable,
}

/// A metric measured over some replications of one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The metric of each replication that has one.
    pub each: Vec<f64>,
    /// The metric over all replications together: for a quantile that of the pooled samples, for a mean that of the
    /// replications; `None` where none has one.
    pub pooled: Option<f64>,
    /// Whether the system settles at this rate.
    pub stability: Stability,
}

/// What a probe says of its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The limit is kept.
    Pass,
    /// It is not, or the system is unstable.
    Fail,
    /// It cannot be told.
    Undecided,
}

impl Measurement {
    /// The pooled value -+ t * sd / sqrt(n) at 99%, or `None` with fewer than two finite replications.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let pooled = self.pooled.filter(|value| value.is_finite())?;
        let half = half_width(&self.each)?;
        Some((pooled - half, pooled + half))
    }

    /// Judges the measured rate.
    pub fn judge(&self, limit: Limit) -> Verdict {
        match self.stability {
            Stability::Unstable => Verdict::Fail,
            Stability::Stable => self.judge_value(limit),
        }
    }

    /// An infinite quantile has no interval and needs none: so many requests were lost that it lies beyond any limit.
    fn judge_value(&self, limit: Limit) -> Verdict {
        if self.pooled == Some(f64::INFINITY) && self.each.iter().all(|value| *value == f64::INFINITY) {
            return limit.judge(f64::INFINITY, f64::INFINITY);
        }
        self.interval().map_or(Verdict::Undecided, |(low, high)| limit.judge(low, high))
    }
}

impl Limit {
    /// The number in it.
    pub const fn value(self) -> f64 {
        match self {
            Limit::AtMost(value) | Limit::AtLeast(value) => value,
        }
    }

    fn judge(self, low: f64, high: f64) -> Verdict {
        let (kept, broken) = match self {
            Limit::AtMost(most) => (high <= most, low > most),
            Limit::AtLeast(least) => (low >= least, high < least),
        };
        match (kept, broken) {
            (true, _) => Verdict::Pass,
            (false, true) => Verdict::Fail,
            (false, false) => Verdict::Undecided,
        }
    }
}

/// Half the width of the Student-t interval of a mean over replications at [`JUDGED_AT`].
fn half_width(each: &[f64]) -> Option<f64> {
    if each.len() < 2 || each.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = each.len() as f64;
    let mean = each.iter().sum::<f64>() / n;
    let variance = each.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.5 + JUDGED_AT / 2.0);
    Some(t * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(each: &[f64]) -> Measurement {
        let pooled = each.iter().sum::<f64>() / each.len() as f64;
        Measurement { each: each.to_vec(), pooled: Some(pooled), stability: Stability::Stable }
    }

    /// Ten values with mean 50 and standard deviation 5: t(9, 0.995) = 3.249836, half width 5.138442.
    fn ten() -> Measurement {
        let offset = 5.0 * (9.0_f64 / 10.0).sqrt();
        measured(&[50.0 - offset, 50.0 + offset].repeat(5))
    }

    #[test]
    fn the_interval_is_students_at_99_percent() {
        let (low, high) = ten().interval().expect("ten replications");
        assert!((high - 50.0 - 5.138_442).abs() < 1e-5, "{high}");
        assert!((low + high - 100.0).abs() < 1e-9);
    }

    #[test]
    fn only_an_interval_wholly_on_one_side_decides() {
        assert_eq!(ten().judge(Limit::AtMost(55.2)), Verdict::Pass);
        assert_eq!(ten().judge(Limit::AtMost(55.0)), Verdict::Undecided);
        assert_eq!(ten().judge(Limit::AtMost(45.0)), Verdict::Undecided);
        assert_eq!(ten().judge(Limit::AtMost(44.8)), Verdict::Fail);
        assert_eq!(ten().judge(Limit::AtLeast(44.8)), Verdict::Pass);
        assert_eq!(ten().judge(Limit::AtLeast(55.2)), Verdict::Fail);
    }

    #[test]
    fn an_unstable_rate_fails_whatever_its_metric_says() {
        let unstable = Measurement { stability: Stability::Unstable, ..measured(&[1.0, 1.0]) };
        assert_eq!(unstable.judge(Limit::AtMost(50.0)), Verdict::Fail);
    }

    #[test]
    fn one_replication_decides_nothing_and_lost_requests_do() {
        assert_eq!(measured(&[1.0]).judge(Limit::AtMost(50.0)), Verdict::Undecided);
        assert_eq!(measured(&[f64::INFINITY; 3]).judge(Limit::AtMost(50.0)), Verdict::Fail);
        let none = Measurement { each: Vec::new(), pooled: None, stability: Stability::Stable };
        assert_eq!(none.judge(Limit::AtMost(50.0)), Verdict::Undecided);
    }
}
