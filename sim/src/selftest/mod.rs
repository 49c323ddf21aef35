//! The simulator against queues whose behaviour is known exactly.
//!
//! Every case is a scenario that goes through all that a user's scenario goes through (arrivals, the production scheduler,
//! cards, metrics, reports) and a list of figures that [`crate::theory`] knows. A figure passes when the exact value lies
//! in the interval of its replications. All intervals together miss by chance once in a thousand seeds
//! (Bonferroni, 1936: each takes its part of that); so a failure means that something is wrong.

mod cases;
mod judge;
mod system;

use rayon::prelude::*;
use serde::Serialize;
use windtunnel_reports::{Report, RunFigures, RunMetrics};

pub use system::{Flow, System};

use crate::{Control, Setup, SimError};
use cases::Case;

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelftestOptions {
    /// The seed of all streams.
    pub seed: u64,
    /// Replications of each case, at least 2.
    pub replications: u32,
    /// Arrivals in each replication.
    pub jobs: u64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SelftestReport {
    /// The seed of all streams.
    pub seed: u64,
    /// Replications of each case.
    pub replications: u32,
    /// Arrivals in each replication.
    pub jobs: u64,
    /// The confidence of each interval.
    pub confidence: f64,
    /// Every figure that was checked.
    pub checks: Vec<Check>,
}

/// One figure against its exact value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The queue.
    pub queue: String,
    /// The figure, by the name it has in reports.
    pub quantity: String,
    /// How its numbers are to be read.
    pub unit: QuantityUnit,
    /// What it must be.
    pub exact: f64,
    /// What was measured; absent when the report has no such figure.
    pub mean: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Whether the exact value lies in the interval.
    pub pass: bool,
}

/// How a checked number is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityUnit {
    /// Seconds.
    Seconds,
    /// Requests per second.
    PerSecond,
    /// A count.
    Number,
    /// A share of 1.
    Share,
}

impl Default for SelftestOptions {
    fn default() -> SelftestOptions {
        SelftestOptions { seed: 1, replications: 32, jobs: 60_000 }
    }
}

impl SelftestReport {
    /// Whether every check passed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.pass)
    }
}

/// Runs every case.
///
/// # Errors
/// If a case cannot be simulated, which would be a fault of its own.
pub fn selftest(options: SelftestOptions, control: &Control) -> Result<SelftestReport, SimError> {
    let cases = cases::all();
    let figures: usize = cases.iter().map(|case| case.quantities.len()).sum();
    let confidence = judge::confidence_of_each(figures);
    let judged = cases.par_iter().enumerate().map(|(place, case)| {
        // a seed for each, lest one draw of arrivals be judged in every case
        let seed = options.seed.wrapping_add((place as u64) << 32);
        let runs = run(case, SelftestOptions { seed, ..options }, control)?;
        Ok(judge::judge(case, &runs, confidence))
    });
    let checks = judged.collect::<Result<Vec<_>, SimError>>()?.into_iter().flatten().collect();
    let SelftestOptions { seed, replications, jobs } = options;
    Ok(SelftestReport { seed, replications, jobs, confidence, checks })
}

/// A report for each replication and one for all together.
struct Reports {
    each: Vec<Report>,
    all: Report,
}

fn run(case: &Case, options: SelftestOptions, control: &Control) -> Result<Reports, SimError> {
    let setup = Setup::new(case.system.scenario(case.queue, options.jobs, options.seed))?;
    let one = |replication| -> Result<RunFigures, SimError> {
        let mut metrics = RunMetrics::new();
        setup.run(replication, &mut metrics, control)?;
        Ok(metrics.into_run())
    };
    let runs = (0..options.replications.max(2)).into_par_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let each = runs.iter().map(|run| Report::from_runs(vec![run.clone()])).collect();
    Ok(Reports { each, all: Report::from_runs(runs) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough to see a wrong model, few enough for a debug build.
    const QUICK: SelftestOptions = SelftestOptions { seed: 7, replications: 8, jobs: 8_000 };

    #[test]
    fn the_simulator_agrees_with_every_exact_value() {
        let report = selftest(QUICK, &Control::new()).expect("every case can be simulated");
        let failed: Vec<&Check> = report.checks.iter().filter(|check| !check.pass).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        assert!(report.passed() && report.checks.len() > 30);
    }

    #[test]
    fn the_same_seed_gives_the_same_report_and_another_one_another() {
        let few = SelftestOptions { jobs: 500, replications: 3, ..QUICK };
        let control = Control::new();
        let report = selftest(few, &control).expect("every case can be simulated");
        assert_eq!(report, selftest(few, &control).expect("every case can be simulated"));
        let other = selftest(SelftestOptions { seed: 8, ..few }, &control).expect("every case can be simulated");
        assert_ne!(report.checks[0].mean, other.checks[0].mean);
    }
}
