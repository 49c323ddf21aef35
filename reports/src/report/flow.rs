//! Jobs of a workload, a class or a model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, Figure, Named, distribution::Samples};
use crate::metrics::{Ending, Histogram, REASONS, Tally};

/// What became of a group of jobs. Counts are of the jobs that arrived after the warm-up; `throughput` and `goodput` count
/// completions after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// Jobs that arrived.
    pub offered: Figure,
    /// Those of them that were completed.
    pub completed: Figure,
    /// Those that were not admitted.
    pub rejected: Figure,
    /// Those that waited too long.
    pub timed_out: Figure,
    /// Those that failed.
    pub failed: Figure,
    /// Those whose client went away.
    pub cancelled: Figure,
    /// Those that had not ended when the run did.
    pub unfinished: Figure,
    /// Why jobs were not completed, by reason.
    pub reasons: Named<Figure>,
    /// Arrivals per second.
    pub offered_rate: Figure,
    /// Completions per second.
    pub throughput: Figure,
    /// Completions within the deadline per second; a job without one is always in time.
    pub goodput: Figure,
    /// From arrival to the start of the first step, completed jobs; null: there are none.
    pub wait: Option<Distribution>,
    /// From arrival to the first token, completed jobs of which it is known.
    pub ttft: Option<Distribution>,
    /// From the start of the first step to the end of the last, completed jobs.
    pub service: Option<Distribution>,
    /// From arrival to the end, completed jobs.
    pub latency: Option<Distribution>,
    /// The same for all jobs that arrived; those not completed count as infinite.
    pub latency_all: Option<Distribution>,
    /// The mean wait as a share of the mean latency.
    pub waiting_share: Option<Figure>,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadReport {
    /// Its class.
    pub class: String,
    /// Whether its backlog grows without end; then its latencies are those of the horizon and have no intervals.
    pub unstable: bool,
    /// How its requests came.
    pub arrivals: ArrivalReport,
    /// What became of them.
    #[serde(flatten)]
    pub flow: FlowReport,
    /// Points of the latency's distribution over all replications, completed jobs: share of jobs and seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_curve: Vec<[f64; 2]>,
}

/// How requests came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalReport {
    /// As the scenario says.
    pub process: String,
    /// Whether new requests wait for the end of earlier ones; then queueing hides.
    pub closed_loop: bool,
    /// The measured rate over the whole run.
    pub rate: Option<Figure>,
    /// The measured coefficient of variation of the gaps.
    pub cv: Option<Figure>,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassReport {
    /// What became of its jobs.
    #[serde(flatten)]
    pub flow: FlowReport,
    /// The longest that a job of it made no progress, over the whole run and all replications.
    pub starvation: Option<Figure>,
}

/// One replication's share of a flow.
pub(super) struct Sample {
    pub tally: Tally,
    /// Seconds.
    pub window: f64,
}

impl FlowReport {
    pub(super) fn of(samples: &[Sample]) -> FlowReport {
        let count = |ending| figure(samples, |one| one.tally.ended(ending) as f64);
        let rate = |of: fn(&Tally) -> u64| {
            figure(samples, |one| if one.window > 0.0 { of(&one.tally) as f64 / one.window } else { 0.0 })
        };
        let times =
            |of: fn(&Tally) -> &Histogram| Samples::complete(samples.iter().map(|one| of(&one.tally))).distribution();
        let all = samples.iter().map(|one| (&one.tally.latency, one.tally.offered));
        FlowReport {
            offered: figure(samples, |one| one.tally.offered as f64),
            completed: count(Ending::Completed),
            rejected: count(Ending::Rejected),
            timed_out: count(Ending::TimedOut),
            failed: count(Ending::Failed),
            cancelled: count(Ending::Cancelled),
            unfinished: figure(samples, |one| one.tally.unfinished() as f64),
            reasons: reasons(samples),
            offered_rate: rate(|tally| tally.offered),
            throughput: rate(|tally| tally.done),
            goodput: rate(|tally| tally.good),
            wait: times(|tally| &tally.wait),
            ttft: times(|tally| &tally.ttft),
            service: times(|tally| &tally.service),
            latency: times(|tally| &tally.latency),
            latency_all: Samples::among(all).distribution(),
            waiting_share: waiting_share(samples),
        }
    }

    /// Its times by name.
    pub fn times(&self) -> [(&'static str, Option<Distribution>); 5] {
        [
            ("wait", self.wait),
            ("ttft", self.ttft),
            ("service", self.service),
            ("latency", self.latency),
            ("latency_all", self.latency_all),
        ]
    }

    /// Its counts, rates and shares by name.
    pub fn figures(&self) -> [(&'static str, Option<Figure>); 11] {
        [
            ("offered", Some(self.offered)),
            ("completed", Some(self.completed)),
            ("rejected", Some(self.rejected)),
            ("timed_out", Some(self.timed_out)),
            ("failed", Some(self.failed)),
            ("cancelled", Some(self.cancelled)),
            ("unfinished", Some(self.unfinished)),
            ("offered_rate", Some(self.offered_rate)),
            ("throughput", Some(self.throughput)),
            ("goodput", Some(self.goodput)),
            ("waiting_share", self.waiting_share),
        ]
    }

    /// The same with times that belong to the horizon: without intervals.
    pub(super) fn of_the_horizon(&mut self) {
        for times in [&mut self.wait, &mut self.ttft, &mut self.service, &mut self.latency, &mut self.latency_all] {
            *times = times.map(Distribution::without_intervals);
        }
        self.waiting_share = self.waiting_share.map(|share| share.without_interval());
    }
}

fn figure(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Figure {
    let values: Vec<f64> = samples.iter().map(of).collect();
    Figure::of_values(&values).unwrap_or(Figure::bare(0.0, 0))
}

fn reasons(samples: &[Sample]) -> Named<Figure> {
    let found = REASONS.iter().enumerate().filter(|(at, reason)| {
        reason.ending != Ending::Completed
            && reason.ending != Ending::Cancelled
            && samples.iter().any(|one| one.tally.endings[*at] > 0)
    });
    found.map(|(at, reason)| (reason.name.to_owned(), figure(samples, |one| one.tally.endings[at] as f64))).collect()
}

fn waiting_share(samples: &[Sample]) -> Option<Figure> {
    let shares = samples.iter().filter_map(|one| {
        let latency = one.tally.latency.mean().filter(|mean| *mean > 0.0)?;
        Some(one.tally.wait.mean()? / latency)
    });
    Figure::of_values(&shares.collect::<Vec<_>>())
}
