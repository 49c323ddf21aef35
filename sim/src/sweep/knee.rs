//! The search for the rate at which a target is just met.

use std::collections::BTreeMap;

use windtunnel_config::Target;
use windtunnel_reports::{
    Report, RunFigures,
    knee::{Limit, Measurement, Probe, Search, SeedSet, Stability, TargetKnee},
};

use super::{Course, Effort, Measured, reading::stability};
use crate::{SimError, setup::Setup};

/// Replications of the fresh seeds are numbered from here, far beyond those of any search.
const FRESH: u32 = 1 << 20;

/// The rate at which the system of `points`, in the order of their rates, just meets `target`; `None` if the control asked
/// to stop before it was found.
pub fn search(
    target: &Target,
    points: &[&Measured],
    capacity: Option<f64>,
    course: Course<'_>,
) -> Result<Option<TargetKnee>, SimError> {
    let Some(first) = points.first() else { return Ok(None) };
    if !first.report.knows(&target.metric) {
        let metric = &target.metric;
        return Err(SimError::Scenario(format!(
            "the target's metric `{metric}` is no figure of the report; those of a workload are called as in \
             `workload.NAME.p99`"
        )));
    }
    let (from, to) = around(target, points, capacity);
    let mut prober = Prober { setup: &first.point.setup, metric: &target.metric, course, known: BTreeMap::new() };
    prober.learn(points);
    let Effort { precision, replications, most_replications } = course.effort;
    let search = Search {
        precision,
        replications,
        most_replications,
        ..Search::new(target.metric.clone(), Limit::AtMost(target.at_most), from, to)
    };
    match search.run(&mut prober) {
        Ok(knee) => Ok(Some(knee)),
        Err(Stopped::Interrupted) => Ok(None),
        Err(Stopped::Failed(error)) => Err(error),
    }
}

/// Rates to begin with: one that should pass and one that should fail. From the grid where it tells; else 30% and 110% of
/// the capacity; else half and twice the scenario's own rate.
fn around(target: &Target, points: &[&Measured], capacity: Option<f64>) -> (f64, f64) {
    let own = points.first().map_or(1.0, |point| point.point.setup.open_rate());
    let (low, high) = capacity.map_or((own / 2.0, own * 2.0), |capacity| (0.3 * capacity, 1.1 * capacity));
    let fails = |point: &&&Measured| {
        let figure = point.report.figure(&target.metric);
        point.report.unstable || figure.is_none_or(|figure| figure.high.unwrap_or(figure.mean) > target.at_most)
    };
    let passed: Vec<f64> =
        points.iter().take_while(|point| !fails(point)).map(|point| point.point.setup.open_rate()).collect();
    let failed = points.iter().find(|point| fails(point)).map(|point| point.point.setup.open_rate());
    let from = passed.last().copied().unwrap_or_else(|| failed.map_or(low, |failed| low.min(failed / 2.0)));
    let to = failed.unwrap_or_else(|| high.max(from * 2.0));
    (from, to)
}

/// Why a search stopped.
enum Stopped {
    Interrupted,
    Failed(SimError),
}

/// Measures the metric of one system at any rate, and remembers what it has run.
struct Prober<'a> {
    setup: &'a Setup,
    metric: &'a str,
    course: Course<'a>,
    /// By rate (its bits: all are positive) and seeds.
    known: BTreeMap<(u64, SeedSet), Vec<Replication>>,
}

/// A run and its own figure of the metric.
struct Replication {
    run: RunFigures,
    value: Option<f64>,
}

impl Replication {
    fn new(run: RunFigures, metric: &str) -> Replication {
        let value = Report::from_runs(vec![run.clone()]).figure(metric).map(|figure| figure.mean);
        Replication { run, value }
    }
}

impl Prober<'_> {
    /// What the grid has run already need not be run again.
    fn learn(&mut self, points: &[&Measured]) {
        for point in points {
            let runs = point.runs.iter().map(|run| Replication::new(run.clone(), self.metric)).collect();
            self.known.insert((point.point.setup.open_rate().to_bits(), SeedSet::Search), runs);
        }
    }

    fn run_missing(&mut self, rate: f64, seeds: SeedSet, wanted: u32) -> Result<(), Stopped> {
        let known = self.known.entry((rate.to_bits(), seeds)).or_default();
        let first = match seeds {
            SeedSet::Search => 0,
            SeedSet::Fresh => FRESH,
        };
        let missing = first + known.len() as u32..first + wanted;
        let asked = missing.len();
        if asked > 0 {
            let setup = self.setup.at_rate(rate).map_err(Stopped::Failed)?;
            let tasks: Vec<(&Setup, u32)> = missing.map(|number| (&setup, number)).collect();
            let runs = self.course.run(&tasks).map_err(Stopped::Failed)?;
            let runs: Vec<RunFigures> = runs.into_iter().flatten().collect();
            if runs.len() < asked {
                return Err(Stopped::Interrupted);
            }
            known.extend(runs.into_iter().map(|run| Replication::new(run, self.metric)));
        }
        Ok(())
    }
}

impl Probe for Prober<'_> {
    type Error = Stopped;

    fn measure(&mut self, rate: f64, seeds: SeedSet, replications: u32) -> Result<Measurement, Stopped> {
        self.run_missing(rate, seeds, replications)?;
        let known = self.known.get(&(rate.to_bits(), seeds)).map_or(&[][..], Vec::as_slice);
        let used = &known[..known.len().min(replications as usize)];
        let report = Report::from_runs(used.iter().map(|one| one.run.clone()).collect());
        let stability: Stability = stability(&report);
        Ok(Measurement {
            each: used.iter().filter_map(|one| one.value).collect(),
            pooled: report.figure(self.metric).map(|figure| figure.mean),
            stability,
        })
    }
}
