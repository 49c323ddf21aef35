//! A scenario under many settings: the points of a grid, and the knees of the systems they belong to.
//!
//! The grid is the product of the scenario's `[[sweep]]` axes, of the numbers of cards asked for and of the rates asked
//! for. All replications of all points run side by side and share their random numbers: the same replication meets the
//! same requests at every point, faster or slower. Points that differ in nothing but the load are one *system*; for each
//! of them the readings of [`windtunnel_reports::knee`] are taken, and where the scenario names a target the rate at which
//! it is just met is searched.

mod axis;
mod grid;
mod knee;
mod reading;
mod runner;
mod system;

use windtunnel_config::{Override, ScenarioFile};
use windtunnel_reports::{
    Report, RunFigures,
    report::{PointReport, SweepReport},
};

use crate::{Control, SimError, setup::Setup};
use grid::Point;
pub use runner::{Effort, Runner, Simulated};

/// What a sweep is asked for on top of what the scenario says.
#[derive(Clone, Debug, Default)]
pub struct SweepOptions {
    /// Settings that hold at every point.
    pub overrides: Vec<Override>,
    /// Numbers of cards of the first group of devices; empty: as the scenario says.
    pub devices: Vec<u32>,
    /// Total rates of the open workloads in requests per second, in place of the axes that vary rates; empty: as the
    /// scenario says.
    pub rates: Vec<f64>,
    /// How much a search may run.
    pub effort: Effort,
}

/// What came out of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepOutcome {
    /// The points whose replications all ended, and the knees that could be told.
    pub report: SweepReport,
    /// How many points there were to be.
    pub asked: usize,
    /// Whether the control asked to stop before everything was done.
    pub interrupted: bool,
}

/// Sweeps the scenario in `file` on simulated cards.
///
/// # Errors
/// As [`sweep_with`].
pub fn sweep(file: &ScenarioFile, options: &SweepOptions, control: &Control) -> Result<SweepOutcome, SimError> {
    sweep_with(&Simulated, file, options, control)
}

/// Sweeps the scenario in `file` wherever `runner` runs it.
///
/// # Errors
/// If a setting makes no sense, a trace cannot be used, the target names no figure of the report, or the runner has an
/// error of its own.
pub fn sweep_with(
    runner: &dyn Runner,
    file: &ScenarioFile,
    options: &SweepOptions,
    control: &Control,
) -> Result<SweepOutcome, SimError> {
    let points = grid::points(file, options)?;
    let asked = points.len();
    let course = Course { runner, effort: options.effort, control };
    let measured = measure(points, course)?;
    let knees = system::knees(&measured, course)?;
    let interrupted = control.is_interrupted();
    let points = measured.into_iter().map(Measured::into_report).collect();
    Ok(SweepOutcome { report: SweepReport { points, knees }, asked, interrupted })
}

/// A point and its figures.
struct Measured {
    point: Point,
    runs: Vec<RunFigures>,
    report: Report,
}

impl Measured {
    fn into_report(self) -> PointReport {
        PointReport { devices: self.point.devices, set: self.point.set, report: self.report }
    }
}

/// Where a sweep runs, how much of it, and who may stop it.
#[derive(Clone, Copy)]
struct Course<'a> {
    runner: &'a dyn Runner,
    effort: Effort,
    control: &'a Control,
}

impl Course<'_> {
    fn run(self, tasks: &[(&Setup, u32)]) -> Result<Vec<Option<RunFigures>>, SimError> {
        self.runner.run(tasks, self.control)
    }
}

/// Runs every replication of every point, one point after another as far as the runner goes. Points of which some
/// replication did not end are left out.
fn measure(points: Vec<Point>, course: Course<'_>) -> Result<Vec<Measured>, SimError> {
    let of_point = |(place, point): (usize, &Point)| {
        (0..point.setup.scenario().run.replications).map(move |number| (place, number)).collect::<Vec<_>>()
    };
    let tasks: Vec<(usize, u32)> = points.iter().enumerate().flat_map(of_point).collect();
    let settings: Vec<(&Setup, u32)> = tasks.iter().map(|&(place, number)| (&points[place].setup, number)).collect();
    let results = course.run(&settings)?;
    let mut runs: Vec<Vec<RunFigures>> = points.iter().map(|_| Vec::new()).collect();
    for ((place, _), result) in tasks.into_iter().zip(results) {
        runs[place].extend(result);
    }
    let complete = points
        .into_iter()
        .zip(runs)
        .filter(|(point, runs)| runs.len() as u32 == point.setup.scenario().run.replications);
    Ok(complete.map(|(point, runs)| Measured { report: Report::from_runs(runs.clone()), point, runs }).collect())
}

#[cfg(test)]
mod tests;
