//! Is the exact value in the interval?

use statrs::distribution::{ContinuousCDF, StudentsT};
use windtunnel_reports::Report;

use super::{
    Check, Reports,
    cases::{Case, Measure, Quantity},
};

/// The probability that any of the checks fails by chance.
const FALSE_ALARM: f64 = 1e-3;

/// The confidence of one of so many intervals.
pub(super) fn confidence_of_each(intervals: usize) -> f64 {
    1.0 - FALSE_ALARM / intervals.max(1) as f64
}

pub(super) fn judge(case: &Case, reports: &Reports, confidence: f64) -> Vec<Check> {
    case.quantities.iter().map(|quantity| check(case.queue, quantity, reports, confidence)).collect()
}

fn check(queue: &str, quantity: &Quantity, reports: &Reports, confidence: f64) -> Check {
    let mean = quantity.measure.of(&reports.all);
    let each: Vec<f64> = reports.each.iter().filter_map(|report| quantity.measure.of(report)).collect();
    let half = half_width(&each, confidence).map(|half| half + quantity.resolution * quantity.exact.abs());
    let ends = mean.zip(half).map(|(mean, half)| (mean - half, mean + half));
    Check {
        queue: queue.to_owned(),
        quantity: quantity.measure.name(),
        unit: quantity.unit,
        exact: quantity.exact,
        mean,
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        pass: ends.is_some_and(|(low, high)| (low..=high).contains(&quantity.exact)),
    }
}

impl Measure {
    fn of(&self, report: &Report) -> Option<f64> {
        match self {
            Measure::Figure(name) => report.figure(name).map(|figure| figure.mean),
            Measure::Ratio(above, below) => Some(report.figure(above)?.mean / report.figure(below)?.mean),
            Measure::Unstable => Some(if report.unstable { 1.0 } else { 0.0 }),
        }
    }

    fn name(&self) -> String {
        match self {
            Measure::Figure(name) => (*name).to_owned(),
            Measure::Ratio(above, below) => format!("{above} / {below}"),
            Measure::Unstable => "unstable".to_owned(),
        }
    }
}

/// Half the width of the Student-t interval over replications.
fn half_width(each: &[f64], confidence: f64) -> Option<f64> {
    if each.len() < 2 {
        return None;
    }
    let n = each.len() as f64;
    let mean = each.iter().sum::<f64>() / n;
    let variance = each.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.5 + confidence / 2.0);
    Some(t * (variance / n).sqrt())
}
