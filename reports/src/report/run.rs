//! The runs behind a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Figure, Named};
use crate::{
    RunFigures,
    journal::{EndCause, WarmupRule},
    metrics::SeriesPoint,
};

/// The runs behind a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The version of the program.
    pub program: String,
    /// How many there were.
    pub replications: u32,
    /// What ended them, and how many of them.
    pub ended: Named<u32>,
    /// The horizon in seconds, where one was set.
    pub horizon: Option<f64>,
    /// The arrivals after which they were to end, where that was set.
    pub jobs: Option<u64>,
    /// How long they were in seconds.
    pub duration: Figure,
    /// What remains of them after the warm-up, in seconds.
    pub window: Figure,
    /// The warm-up.
    pub warmup: WarmupReport,
    /// The mean number of jobs in the system.
    pub in_system: Figure,
    /// What Little's law gives for it: arrivals per second times their mean stay.
    pub little: Figure,
    /// The mean number of waiting jobs.
    pub queue: Figure,
    /// Numbers of jobs over time in the first replication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesReport>,
}

/// The warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmupReport {
    /// How it was found.
    pub rule: String,
    /// How much was left out, in seconds.
    pub cut: Figure,
    /// In how many runs more than half would have had to be left out.
    pub too_short: u32,
}

/// Numbers of jobs over time; each is the mean since the point before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesReport {
    /// Seconds.
    pub time: Vec<f64>,
    /// Jobs in the system.
    pub in_system: Vec<f64>,
    /// Waiting jobs.
    pub queue: Vec<f64>,
}

impl RunReport {
    pub(super) fn of(runs: &[RunFigures]) -> RunReport {
        let header = runs.first().map(|run| &run.header);
        let values = |of: fn(&RunFigures) -> f64| {
            let values: Vec<f64> = runs.iter().map(of).collect();
            Figure::of_values(&values).unwrap_or(Figure::bare(0.0, 0))
        };
        RunReport {
            program: header.map(|header| header.program.clone()).unwrap_or_default(),
            replications: runs.len() as u32,
            ended: ended(runs),
            horizon: header.and_then(|header| header.horizon).map(|span| span.as_nanos() as f64 / 1e9),
            jobs: header.and_then(|header| header.jobs),
            duration: values(|run| run.end.t.as_nanos() as f64 / 1e9),
            window: values(RunFigures::window_seconds),
            warmup: WarmupReport {
                rule: header.map(|header| header.warmup.to_string()).unwrap_or_default(),
                cut: values(|run| run.steady.cut.as_nanos() as f64 / 1e9),
                too_short: runs.iter().filter(|run| run.steady.too_short).count() as u32,
            },
            in_system: values(|run| run.crowd.system),
            little: values(|run| run.little),
            queue: values(|run| run.crowd.queue),
            series: runs.first().map(|run| SeriesReport::of(&run.series)),
        }
    }

    /// Its figures by name.
    pub fn figures(&self) -> [(&'static str, Option<Figure>); 6] {
        [
            ("duration", Some(self.duration)),
            ("window", Some(self.window)),
            ("warmup.cut", Some(self.warmup.cut)),
            ("in_system", Some(self.in_system)),
            ("little", Some(self.little)),
            ("queue", Some(self.queue)),
        ]
    }
}

fn ended(runs: &[RunFigures]) -> Named<u32> {
    let causes =
        [EndCause::Horizon, EndCause::Jobs, EndCause::Exhausted, EndCause::Drained, EndCause::Interrupted].into_iter();
    causes
        .map(|cause| (cause.word().to_owned(), runs.iter().filter(|run| run.end.cause == cause).count() as u32))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// A report holds no more points than these.
const POINTS: usize = 128;

impl SeriesReport {
    fn of(points: &[SeriesPoint]) -> SeriesReport {
        let together = points.len().div_ceil(POINTS).max(1);
        let groups = || points.chunks(together);
        let mean = |of: fn(&SeriesPoint) -> f64| {
            groups().map(|group| group.iter().map(of).sum::<f64>() / group.len() as f64).collect()
        };
        SeriesReport {
            time: groups().filter_map(|group| group.last()).map(|point| point.until).collect(),
            in_system: mean(|point| point.system),
            queue: mean(|point| point.queue),
        }
    }
}

impl EndCause {
    /// Its name in reports.
    pub const fn word(self) -> &'static str {
        match self {
            EndCause::Horizon => "horizon",
            EndCause::Jobs => "jobs",
            EndCause::Exhausted => "exhausted",
            EndCause::Drained => "drained",
            EndCause::Interrupted => "interrupted",
        }
    }
}

impl std::fmt::Display for WarmupRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WarmupRule::Auto => f.write_str("MSER-5"),
            WarmupRule::Fixed(span) => write!(f, "{span}"),
            WarmupRule::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}
