//! The points of a sweep against an endpoint: one run after another, since each needs the whole of it.

use std::{cell::Cell, sync::Arc, time::Duration};

use windtunnel_config::{Scenario, ScenarioFile, SweepValues};
use windtunnel_core::Span;
use windtunnel_live::load::{Gauge, Recording, Settings};
use windtunnel_reports::{RunFigures, journal::EndCause};
use windtunnel_sim::{
    Control, Setup, SimError,
    sweep::{Effort, Runner, SweepOptions, SweepOutcome, sweep_with},
};

use crate::{
    args::SweepArgs,
    command::load::{send, settings, span},
    failure::Failure,
    session::Session,
};

/// A live search ends within this share of a rate: minutes buy no more.
const PRECISION: f64 = 0.05;

/// An endpoint, run by run.
struct Endpoint {
    settings: Settings,
    gauge: Arc<Gauge>,
    /// How many runs have begun.
    runs: Cell<u64>,
}

/// Sweeps the scenario in `file` against the endpoint at `url`.
pub fn sweep(
    file: &ScenarioFile,
    options: SweepOptions,
    url: &str,
    args: &SweepArgs,
    session: &Session,
) -> Result<SweepOutcome, Failure> {
    let scenario = file.resolve(&options.overrides)?;
    check(&scenario)?;
    let mut settings = settings(url, &args.endpoint)?;
    settings.cool_down = span("--cool-down", &args.cool_down)?;
    session.remark(&forecast(&scenario, &options, settings.cool_down));
    let options = SweepOptions { effort: effort(&scenario), ..options };
    let gauge = Arc::new(Gauge::default());
    let endpoint = Endpoint { settings, gauge: Arc::clone(&gauge), runs: Cell::new(0) };
    let _progress = session.loading("sweeping", &gauge);
    Ok(sweep_with(&endpoint, file, &options, &session.control)?)
}

/// As many replications as the scenario has, up to twice as many, and at least the two that an interval needs.
fn effort(scenario: &Scenario) -> Effort {
    let replications = scenario.run.replications.max(2);
    Effort { precision: PRECISION, replications, most_replications: replications.saturating_mul(2) }
}

/// An error if the sweep varies what only simulated cards have.
fn check(scenario: &Scenario) -> Result<(), Failure> {
    match scenario.sweeps.iter().find(|sweep| !sweep.key.starts_with("workload.")) {
        None => Ok(()),
        Some(sweep) => Err(Failure::BadInput(format!(
            "--live: the sweep of `{}` changes the endpoint, which is as it is; only keys of workloads can be varied",
            sweep.key
        ))),
    }
}

/// How long it is going to take at least.
fn forecast(scenario: &Scenario, options: &SweepOptions, cool_down: Duration) -> String {
    let replaced = |key: &str| !options.rates.is_empty() && key.ends_with(".arrivals.rate");
    let axes = scenario.sweeps.iter().filter(|sweep| !replaced(&sweep.key)).map(|sweep| match &sweep.values {
        SweepValues::List(values) => values.len() as u64,
        SweepValues::Steps { steps, .. } => u64::from(*steps),
    });
    let points = axes.product::<u64>() * options.rates.len().max(1) as u64;
    let replications = u64::from(scenario.run.replications);
    let runs = format!("{points} points, {replications} replications each, one after another");
    let search = if scenario.target.is_some() { ", and the search for the target after them" } else { "" };
    let span = |span: Duration| Span::from_millis(span.as_millis() as u64);
    match scenario.run.horizon {
        Some(horizon) => {
            let all = horizon.times(points * replications);
            format!("{runs}: {all} and up to {} more after each run{search}", span(cool_down))
        }
        None => format!("{runs}{search}"),
    }
}

impl Runner for Endpoint {
    fn run(&self, tasks: &[(&Setup, u32)], control: &Control) -> Result<Vec<Option<RunFigures>>, SimError> {
        self.gauge.plan(tasks.len() as u64);
        tasks.iter().map(|&(setup, replication)| self.run_one(setup, replication, control)).collect()
    }

    /// What the scenario's cards could carry says nothing of the endpoint, not even where to look.
    fn capacity(&self, _simulated: Option<f64>) -> Option<f64> {
        None
    }
}

impl Endpoint {
    fn run_one(&self, setup: &Setup, replication: u32, control: &Control) -> Result<Option<RunFigures>, SimError> {
        if control.is_interrupted() {
            return Ok(None);
        }
        // Other words in every run: a prompt cache would know those of the last.
        let number = self.runs.replace(self.runs.get() + 1);
        let seed = self.settings.seed.wrapping_add(number << 40);
        let settings = Settings { seed, ..self.settings.clone() };
        let mut recording = Recording::new(None);
        send(setup, replication, &settings, &mut recording, control, &self.gauge)
            .map_err(|wrong| SimError::Elsewhere(Box::new(wrong)))?;
        let run = recording.into_run();
        Ok((run.end.cause != EndCause::Interrupted).then_some(run))
    }
}
