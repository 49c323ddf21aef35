//! Models and devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Figure, FlowReport, starved, thrash};
use crate::{
    RunFigures,
    metrics::{Absorb, Work},
};

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelReport {
    /// What became of the jobs that asked for it or ran on it.
    #[serde(flatten)]
    pub flow: FlowReport,
    /// Loads begun.
    pub loads: Figure,
    /// Instances stopped to make room for others.
    pub evictions: Figure,
    /// Loads that were the sixth or a later one within five minutes; null: a report of before that was counted.
    #[serde(default)]
    pub thrash: Option<Figure>,
    /// The longest that a job of a lower class which asked for it made no progress, over all replications; null: there was none.
    #[serde(default)]
    pub starvation: Option<Figure>,
    /// The mean number of inputs of a batch; null: there was none.
    pub mean_batch: Option<Figure>,
    /// The mean size of the batch that an input finds itself in.
    pub mean_batch_seen: Option<Figure>,
    /// The share of the time of its ready instances with a grant under way.
    pub busy: Option<Figure>,
    /// How often batches of each size were, over all replications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_sizes: Vec<BatchSize>,
}

/// Batches of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchSize {
    /// Inputs; the greatest that is counted stands for all greater ones too.
    pub size: u32,
    /// Batches.
    pub count: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceReport {
    /// Whether any model may be placed on it.
    pub used: bool,
    /// The share of time with a grant under way. It misleads under batching: see `capacity_fraction`.
    pub busy: Option<Figure>,
    /// Work done as a share of the most it can do; null where that is not known.
    pub capacity_fraction: Option<Figure>,
    /// The most memory seen in use, over all replications; null: unknown.
    pub memory_peak: Option<Figure>,
    /// The shares of time in each mode; null: it never said.
    pub mode: Option<ModeReport>,
}

/// Shares of time by mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModeReport {
    /// Lower classes run only through the guard.
    pub interactive: Figure,
    /// Background and batch run.
    pub idle: Figure,
}

impl ModelReport {
    pub(super) fn of(flow: FlowReport, runs: &[RunFigures], model: usize) -> ModelReport {
        let works: Vec<Work> = runs.iter().map(|run| work(run, model)).collect();
        let count = |of: fn(&Work) -> u64| {
            let values: Vec<f64> = works.iter().map(|work| of(work) as f64).collect();
            Figure::of_values(&values).unwrap_or(Figure::bare(0.0, 0))
        };
        let ratio = |of: fn(&Work) -> (f64, f64)| {
            let pairs = works.iter().map(of).filter(|(_, below)| *below > 0.0);
            Figure::of_values(&pairs.map(|(above, below)| above / below).collect::<Vec<_>>())
        };
        ModelReport {
            flow,
            loads: count(|work| work.loads),
            evictions: count(|work| work.evictions),
            thrash: Some(thrash::times(runs, model)),
            starvation: starved::longest(runs, model),
            mean_batch: ratio(|work| (work.weight() as f64, work.grants() as f64)),
            mean_batch_seen: ratio(|work| (work.squares() as f64, work.weight() as f64)),
            busy: ratio(|work| (work.busy as f64, work.ready as f64)),
            batch_sizes: sizes(works),
        }
    }

    /// Its own figures by name, without those of its jobs.
    pub fn figures(&self) -> [(&'static str, Option<Figure>); 7] {
        [
            ("loads", Some(self.loads)),
            ("evictions", Some(self.evictions)),
            ("thrash", self.thrash),
            ("starvation", self.starvation),
            ("mean_batch", self.mean_batch),
            ("mean_batch_seen", self.mean_batch_seen),
            ("busy", self.busy),
        ]
    }
}

fn work(run: &RunFigures, model: usize) -> Work {
    let mut all = Work::default();
    run.places.iter().filter(|place| place.model == model).for_each(|place| all.absorb(place.work.clone()));
    all
}

fn sizes(works: Vec<Work>) -> Vec<BatchSize> {
    let mut all = Work::default();
    works.into_iter().for_each(|work| all.absorb(work));
    let huge = u32::try_from(all.sizes.len()).map(|size| (size, all.huge));
    let sizes = (0u32..).zip(all.sizes).chain(huge).filter(|(_, count)| *count > 0);
    sizes.map(|(size, count)| BatchSize { size, count }).collect()
}

impl DeviceReport {
    pub(super) fn of(runs: &[RunFigures], device: usize) -> DeviceReport {
        let used = runs.iter().any(|run| run.header.devices.get(device).is_some_and(|facts| facts.used));
        let shares = |of: &dyn Fn(&RunFigures) -> Option<f64>| {
            Figure::of_values(&runs.iter().filter_map(of).collect::<Vec<_>>())
        };
        let interactive = |run: &RunFigures| {
            let device = run.devices.get(device).filter(|device| device.mode_known)?;
            share(device.shares.interactive, run)
        };
        let peak = runs.iter().filter_map(|run| run.devices.get(device)?.memory_peak).max();
        let idle = |run: &RunFigures| Some(1.0 - interactive(run)?);
        let mode = shares(&interactive).zip(shares(&idle)).map(|(interactive, idle)| ModeReport { interactive, idle });
        DeviceReport {
            used,
            busy: shares(&|run| share(run.devices.get(device)?.shares.busy, run)),
            capacity_fraction: shares(&|run| run.capacity_fraction(device)),
            memory_peak: peak.map(|bytes| Figure::bare(bytes.get() as f64, runs.len() as u32)),
            mode,
        }
    }

    /// Its figures by name.
    pub fn figures(&self) -> [(&'static str, Option<Figure>); 5] {
        [
            ("busy", self.busy),
            ("capacity_fraction", self.capacity_fraction),
            ("memory_peak", self.memory_peak),
            ("mode.interactive", self.mode.map(|mode| mode.interactive)),
            ("mode.idle", self.mode.map(|mode| mode.idle)),
        ]
    }
}

fn share(nanos: u64, run: &RunFigures) -> Option<f64> {
    let window = run.window.as_nanos();
    (window > 0).then(|| nanos as f64 / window as f64)
}
