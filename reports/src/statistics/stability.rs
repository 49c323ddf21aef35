//! Whether the backlog of a run grows without end.
//!
//! A run is unstable when the number of jobs in the system and the latency both grow beyond their error over the stretches
//! after the warm-up, and by enough to matter: a stable queue that happens to end in a burst has a slope too, but one that
//! is small beside what arrived, and that other replications do not share.

use super::{Confidence, Trend, student_quantile, trend};
use crate::metrics::RunFigures;

/// Fewer stretches than this say nothing of a trend.
const FEWEST: usize = 8;
/// A backlog grows when at least this share of what arrives stays.
const MATERIAL_SHARE: f64 = 0.005;
/// The same where there are too few replications to tell chance from growth.
const MATERIAL_SHARE_ALONE: f64 = 0.02;
/// And when it grows by at least this many jobs over the window.
const MATERIAL_JOBS: f64 = 10.0;
/// And by at least this share of its own mean.
const MATERIAL_GROWTH: f64 = 0.2;
/// And when its slope in the second half is still at least this share of the slope of the whole; a queue that fills up to a
/// steady state slows down.
const MATERIAL_LATE: f64 = 0.5;
/// From so many replications on the slopes are judged by how they differ, before by the errors of each.
const JOINTLY: usize = 4;

/// How a run's backlog moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Jobs in the system per second.
    pub backlog: Trend,
    /// Latency of completed jobs in seconds per second; `None` when there were too few completions.
    pub latency: Option<Trend>,
    /// Mean age of the jobs in the system in seconds per second.
    pub age: Trend,
    /// The slope of the number of jobs in the second half.
    pub late: f64,
    /// By how many jobs the backlog grew over the window.
    pub jobs: f64,
    /// The same as a share of what arrived.
    pub share: f64,
    /// The same as a share of the mean backlog.
    pub relative: f64,
}

/// The verdict over all replications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Nothing speaks against a steady state.
    Stable,
    /// The backlog grows.
    Unstable,
    /// The runs are too short to tell.
    Unknown,
}

/// How the backlog of one run moved; `None` when it has too few stretches.
pub fn growth(run: &RunFigures) -> Option<Growth> {
    let points = run.stretches.iter().map(|one| Moment {
        at: one.middle,
        backlog: one.system,
        latency: one.latency,
        age: one.age,
    });
    growth_of(&points.collect::<Vec<_>>(), run, run.all().offered)
}

/// The same of one workload, by label.
pub fn workload_growth(run: &RunFigures, label: usize) -> Option<Growth> {
    let points = run.stretches.iter().zip(run.backlogs.get(label)?).map(|(stretch, one)| Moment {
        at: stretch.middle,
        backlog: one.left as f64,
        latency: one.latency,
        age: stretch.age,
    });
    growth_of(&points.collect::<Vec<_>>(), run, run.workload(label).offered)
}

/// A stretch.
#[derive(Clone, Copy)]
struct Moment {
    at: f64,
    backlog: f64,
    latency: Option<f64>,
    age: f64,
}

fn growth_of(moments: &[Moment], run: &RunFigures, offered: u64) -> Option<Growth> {
    if moments.len() < FEWEST {
        return None;
    }
    let line = |moments: &[Moment], of: fn(&Moment) -> Option<f64>| {
        trend(&moments.iter().filter_map(|one| Some((one.at, of(one)?))).collect::<Vec<_>>())
    };
    let backlog = line(moments, |one| Some(one.backlog))?;
    let latency = line(moments, |one| one.latency).filter(|line| line.freedom + 2 >= FEWEST);
    let jobs = backlog.slope * run.window_seconds();
    let mean = moments.iter().map(|one| one.backlog).sum::<f64>() / moments.len() as f64;
    Some(Growth {
        backlog,
        latency,
        age: line(moments, |one| Some(one.age))?,
        late: line(&moments[moments.len() / 2..], |one| Some(one.backlog))?.slope,
        jobs,
        share: jobs / (offered as f64).max(1.0),
        relative: jobs / mean.max(f64::MIN_POSITIVE),
    })
}

impl Growth {
    /// Whether the growth is large enough to matter.
    fn is_material(&self, share: f64) -> bool {
        self.jobs >= MATERIAL_JOBS && self.share >= share && self.relative >= MATERIAL_GROWTH
    }
}

/// Whether runs of the same setting are unstable: at least half of them grew by enough to matter, they went on growing, and
/// the slopes are positive beyond their error, jointly over replications or, with few, each by itself.
pub fn judge(runs: &[Option<Growth>]) -> Stability {
    let known: Vec<Growth> = runs.iter().flatten().copied().collect();
    if known.is_empty() {
        return Stability::Unknown;
    }
    let share = if known.len() < JOINTLY { MATERIAL_SHARE_ALONE } else { MATERIAL_SHARE };
    let material = known.iter().filter(|one| one.is_material(share)).count();
    let backlog: Vec<Trend> = known.iter().map(|one| one.backlog).collect();
    let late: f64 = known.iter().map(|one| one.late).sum();
    let goes_on = late >= MATERIAL_LATE * backlog.iter().map(|one| one.slope).sum::<f64>();
    if 2 * material < known.len() || !goes_on || !grows(&backlog) {
        return Stability::Stable;
    }
    let latency: Vec<Trend> = known.iter().filter_map(|one| one.latency).collect();
    let age: Vec<Trend> = known.iter().map(|one| one.age).collect();
    let later = 2 * latency.len() > known.len() && grows(&latency);
    if later || grows(&age) { Stability::Unstable } else { Stability::Stable }
}

/// Whether slopes are positive beyond their error. With few replications each has to be so by itself.
fn grows(trends: &[Trend]) -> bool {
    if trends.len() < JOINTLY {
        return trends.iter().all(|one| one.slope > one.error * student_quantile(one.freedom, Confidence::P999));
    }
    let slopes: Vec<f64> = trends.iter().map(|one| one.slope).collect();
    super::interval_of_mean(&slopes, Confidence::P999).is_some_and(|interval| interval.low() > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend_of(slope: f64, error: f64) -> Trend {
        Trend { slope, error, freedom: 20 }
    }

    fn grown(slope: f64, error: f64, jobs: f64) -> Option<Growth> {
        let one = trend_of(slope, error);
        Some(Growth { backlog: one, latency: Some(one), age: one, late: slope, jobs, share: jobs / 1e4, relative: 1.0 })
    }

    #[test]
    fn growth_beyond_its_error_is_unstable() {
        assert_eq!(judge(&[grown(5.0, 0.1, 500.0)]), Stability::Unstable);
        assert_eq!(judge(&[grown(5.0, 2.0, 500.0)]), Stability::Stable);
        assert_eq!(judge(&[grown(5.0, 0.1, 100.0)]), Stability::Stable);
        assert_eq!(judge(&[None]), Stability::Unknown);
    }

    #[test]
    fn a_burst_in_one_of_many_replications_is_no_growth() {
        let burst = grown(9.0, 0.1, 900.0);
        let calm = grown(0.01, 0.1, 1.0);
        assert_eq!(judge(&[burst, calm, calm, calm, calm]), Stability::Stable);
        let alike: Vec<_> = (0..5).map(|i| grown(5.0 + f64::from(i) * 0.1, 3.0, 100.0)).collect();
        assert_eq!(judge(&alike), Stability::Unstable);
    }

    #[test]
    fn a_queue_that_fills_up_and_stays_is_stable() {
        let mut filling = grown(5.0, 0.1, 500.0);
        if let Some(filling) = &mut filling {
            filling.late = 0.1;
        }
        assert_eq!(judge(&[filling; 5]), Stability::Stable);
    }

    #[test]
    fn jobs_that_never_end_grow_old_instead_of_late() {
        let mut starved = grown(5.0, 0.1, 500.0);
        if let Some(starved) = &mut starved {
            starved.latency = Some(trend_of(0.0, 0.1));
        }
        assert_eq!(judge(&[starved]), Stability::Unstable);
    }
}
