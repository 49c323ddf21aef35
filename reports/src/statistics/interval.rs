//! Student-t intervals over independent replications.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// How sure an interval is to cover the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// 95 of 100 intervals do; what reports print.
    P95,
    /// 99 of 100 do; what searches decide by.
    P99,
    /// 999 of 1000 do; what alarms are raised by.
    P999,
}

/// A mean and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the length of the interval around it.
    pub half: f64,
}

impl Confidence {
    /// The share of intervals that cover.
    pub const fn share(self) -> f64 {
        match self {
            Confidence::P95 => 0.95,
            Confidence::P99 => 0.99,
            Confidence::P999 => 0.999,
        }
    }
}

impl Interval {
    /// Its lower end.
    pub fn low(&self) -> f64 {
        self.mean - self.half
    }

    /// Its upper end.
    pub fn high(&self) -> f64 {
        self.mean + self.half
    }
}

/// The value that a Student-t variable with `freedom` degrees of freedom exceeds in absolute value with the probability
/// that `confidence` leaves; infinite without any.
pub fn student_quantile(freedom: usize, confidence: Confidence) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom as f64) {
        Ok(student) => student.inverse_cdf(0.5 + confidence.share() / 2.0),
        Err(_) => f64::INFINITY,
    }
}

/// t * s / sqrt(n) of independent values; `None` for fewer than two or when one is not finite.
pub fn spread_of_mean(values: &[f64], confidence: Confidence) -> Option<f64> {
    let n = values.len();
    if n < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1) as f64 / n as f64).sqrt();
    Some(student_quantile(n - 1, confidence) * error)
}

/// The mean of independent values with its interval; `None` as for [`spread_of_mean`].
pub fn interval_of_mean(values: &[f64], confidence: Confidence) -> Option<Interval> {
    let half = spread_of_mean(values, confidence)?;
    Some(Interval { mean: values.iter().sum::<f64>() / values.len() as f64, half })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    /// Values of Student's table.
    #[test]
    fn quantiles_are_those_of_the_table() {
        for (freedom, confidence, value) in [
            (1, Confidence::P95, 12.706),
            (9, Confidence::P95, 2.2622),
            (9, Confidence::P99, 3.2498),
            (30, Confidence::P99, 2.7500),
            (1, Confidence::P999, 636.62),
            (39, Confidence::P999, 3.5581),
        ] {
            assert!(close(student_quantile(freedom, confidence), value), "{freedom} {confidence:?}");
        }
        assert_eq!(student_quantile(0, Confidence::P95), f64::INFINITY);
    }

    #[test]
    fn an_interval_needs_two_finite_values() {
        assert_eq!(interval_of_mean(&[1.0], Confidence::P95), None);
        assert_eq!(interval_of_mean(&[1.0, f64::INFINITY], Confidence::P95), None);
        let interval = interval_of_mean(&[1.0, 3.0], Confidence::P95).unwrap();
        assert!(close(interval.low(), 2.0 - 12.706) && close(interval.high(), 2.0 + 12.706));
        assert_eq!(interval_of_mean(&[4.0; 5], Confidence::P95), Some(Interval { mean: 4.0, half: 0.0 }));
    }
}
