//! Who runs the points of a sweep, and how much of it a search is worth.

use rayon::prelude::*;
use windtunnel_reports::{RunFigures, RunMetrics};

use crate::{Control, SimError, setup::Setup};

/// Somewhere to run a scenario.
pub trait Runner {
    /// Runs one replication of a setting for each of the `tasks`, and gives their figures in the same order; `None` for
    /// one that did not end because the control asked to stop.
    ///
    /// # Errors
    /// When one cannot be run at all; the sweep ends with the same error.
    fn run(&self, tasks: &[(&Setup, u32)], control: &Control) -> Result<Vec<Option<RunFigures>>, SimError>;

    /// What can be carried there at most, where the scenario's cards can carry `simulated`: in requests a second, `None` if
    /// that is not known.
    fn capacity(&self, simulated: Option<f64>) -> Option<f64>;
}

/// Simulated cards, as many side by side as there are threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulated;

/// What a search for the rate at a target is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The share of a rate down to which it is searched.
    pub precision: f64,
    /// Replications of a rate to begin with, at least 2.
    pub replications: u32,
    /// Replications after which a rate is undecided.
    pub most_replications: u32,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { precision: 0.01, replications: 10, most_replications: 40 }
    }
}

impl Runner for Simulated {
    fn run(&self, tasks: &[(&Setup, u32)], control: &Control) -> Result<Vec<Option<RunFigures>>, SimError> {
        control.plan(tasks.len() as u64);
        let one = |&(setup, number): &(&Setup, u32)| {
            let metrics = setup.run_one(number, |_| Ok(RunMetrics::new()), control)?;
            Ok(metrics.map(RunMetrics::into_run))
        };
        let results: Vec<Result<Option<RunFigures>, SimError>> = tasks.par_iter().with_max_len(1).map(one).collect();
        results.into_iter().collect()
    }

    fn capacity(&self, simulated: Option<f64>) -> Option<f64> {
        simulated
    }
}
