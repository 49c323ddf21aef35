//! Invariants of figures that are always checked.

use super::{RunFigures, RunMetrics, figures::seconds};
use crate::journal::EndCause;

/// A grant's duration varies; over n grants the work done in a given time varies by its share of 1/sqrt(n). Ten times that
/// is no chance any more.
const CHANCE: f64 = 10.0;

/// One invariant and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What should hold.
    pub name: &'static str,
    /// What was found instead, where it does not hold.
    pub violation: Option<String>,
}

/// The jobs that lie across an end of the window, where Little's law does not see them whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// Jobs in the system at the cut.
    pub before: u64,
    /// The sum of the times in the window of the jobs that never ended, in nanoseconds.
    pub ages: f64,
    /// The sum of the times after the window of the jobs that ended then, in nanoseconds.
    pub overtime: u128,
    /// The longest that any job may have been in the system in nanoseconds.
    pub longest: u64,
}

/// Checks on a run as a whole.
pub(super) fn of(metrics: &RunMetrics, cause: EndCause) -> Vec<Check> {
    let mut checks = vec![within_limits(metrics), all_ended(metrics, cause)];
    checks.extend(busy_within_time(metrics));
    checks.extend(within_capacity(metrics));
    checks
}

fn within_limits(metrics: &RunMetrics) -> Check {
    let overfull = metrics.service.overfull;
    let violation = (overfull > 0).then(|| format!("{overfull} grants were more than their instance takes at once"));
    Check { name: "grants within the limits of their instances", violation }
}

/// A run that went on until nothing was left has no unfinished jobs.
fn all_ended(metrics: &RunMetrics, cause: EndCause) -> Check {
    let to_the_end = match cause {
        EndCause::Drained | EndCause::Exhausted => true,
        EndCause::Horizon | EndCause::Jobs | EndCause::Interrupted => false,
    };
    let left = metrics.crowd.system();
    let violation =
        (to_the_end && left > 0).then(|| format!("{left} jobs never ended though nothing was left to happen"));
    Check { name: "every job ends", violation }
}

fn busy_within_time(metrics: &RunMetrics) -> Vec<Check> {
    let wall = metrics.close_at.saturating_sub(metrics.grid.origin());
    let devices = metrics.service.devices.iter().zip(&metrics.header.devices);
    devices
        .map(|(device, facts)| {
            let busy: u64 = device.stretches.iter().map(|shares| shares.busy).fold(0, u64::saturating_add);
            let violation = (busy > wall)
                .then(|| format!("{} was busy for {} s of {} s", facts.name, seconds(busy), seconds(wall)));
            Check { name: "busy time within time", violation }
        })
        .collect()
}

/// No device does more than it can.
fn within_capacity(metrics: &RunMetrics) -> Vec<Check> {
    let wall = seconds(metrics.close_at.saturating_sub(metrics.grid.origin()));
    let devices = metrics.header.devices.iter().enumerate();
    devices
        .map(|(device, facts)| {
            let (mut used, mut grants) = (0.0, 0u64);
            for place in metrics.service.places().iter().filter(|place| place.device == device) {
                let inputs: u64 = place.stretches.iter().map(|work| work.inputs).sum();
                grants += place.stretches.iter().map(|work| work.grants()).sum::<u64>();
                used += metrics.header.capacity(place.model, device).map_or(0.0, |capacity| inputs as f64 / capacity);
            }
            let bound = wall * facts.side_by_side * (1.0 + CHANCE / (grants.max(1) as f64).sqrt());
            let violation = (used > bound)
                .then(|| format!("{} did work for {used:.6} s of its full capacity in {wall:.6} s", facts.name));
            Check { name: "throughput within capacity", violation }
        })
        .collect()
}

/// Little's law (Little 1961): the mean number in the system is the rate of arrivals times their mean stay. On a window it
/// holds but for the jobs that were there when it began, and these can be counted.
pub(super) fn little(figures: &RunFigures, edge: Edge) -> (f64, Check) {
    let window = figures.window_seconds();
    let all = figures.all();
    let stays = (all.latency.sum() + all.other_stays) as f64 / 1e9;
    let stays = stays + edge.ages / 1e9 - edge.overtime as f64 / 1e9;
    let expected = if window > 0.0 { stays / window } else { 0.0 };
    let off = (figures.crowd.system - expected).abs() * window;
    let rounding = 1e-6 * (1.0 + stays.abs());
    let violation = (off > edge.before as f64 * seconds(edge.longest) + rounding).then(|| {
        let found = figures.crowd.system;
        format!(
            "the mean number of jobs in the system is {found:.6}, but their rate times their mean stay is {expected:.6}"
        )
    });
    (expected, Check { name: "Little's law", violation })
}
