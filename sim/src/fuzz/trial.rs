//! One world, run once with every check there is.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, PoisonError},
};

use serde_json::Value;
use windtunnel_config::{Fault, FaultKind, Occurrence, Scenario, ScenarioFile, to_toml};
use windtunnel_core::{Bytes, Span, Time};

use super::{
    auditor::{Auditor, Breach, Calm},
    pulse::{Noted, Pulse},
    tally::Tally,
};
use crate::{Control, Setup, SimError, run::Arrival};

/// What came of a trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What was found, and when.
    pub found: Option<(Time, Breach)>,
    pub tally: Tally,
    /// Every request that came.
    pub arrivals: Vec<Arrival>,
}

/// Whether a restored scheduler runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    Nobody,
    Twin,
}

/// So long may everything take to end, whatever is left: breakers stay open for up to a quarter of an hour.
const FIXED: Span = Span::from_secs(45 * 60);
/// So long may each job take that is left, besides the loads it may need.
const PER_JOB: Span = Span::from_secs(120);

/// Where worlds run.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// Where their relative paths start.
    pub origin: &'a Path,
    /// Who is told that they get on.
    pub pulse: Option<&'a Pulse>,
    pub control: &'a Control,
}

/// Runs the world of `document`, which was drawn from `seed`.
///
/// # Errors
/// If the document is no scenario, or one that cannot be simulated.
pub fn run(document: &Value, seed: u64, along: Along, bench: &Bench<'_>) -> Result<Trial, SimError> {
    let noted = bench.pulse.map(|pulse| pulse.begin(document, seed)).unwrap_or_default();
    let trial = run_noting(document, along, noted, bench);
    bench.pulse.into_iter().for_each(Pulse::end);
    trial
}

fn run_noting(document: &Value, along: Along, noted: Noted, bench: &Bench<'_>) -> Result<Trial, SimError> {
    let &Bench { origin, pulse, control } = bench;
    let scenario = ScenarioFile::parse(&to_toml(document), origin)?.resolve(&[])?;
    let calm = calm(&scenario);
    let horizon = scenario.run.horizon.unwrap_or(Span::from_secs(60));
    let mut setup = Setup::new(scenario)?.with_rigour();
    if along == Along::Twin {
        setup = setup.with_checkpoints(Span::from_nanos(horizon.as_nanos() / 5 + 1));
    }
    let mut auditor = Auditor::new(calm, pulse);
    let ran = catch_unwind(AssertUnwindSafe(|| setup.run_noting(&mut auditor, Arc::clone(&noted), control)));
    let Auditor { mut found, tally, enough, .. } = auditor;
    match ran {
        Ok(Err(wrong)) if found.is_none() && !enough => return Err(wrong),
        Ok(_) => {}
        Err(panic) => found = Some((Time::ZERO, Breach::of_panic(panic.as_ref()))),
    }
    let arrivals = std::mem::take(&mut *noted.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Trial { found, tally, arrivals })
}

fn calm(scenario: &Scenario) -> Calm {
    let horizon = scenario.run.horizon.unwrap_or(Span::ZERO);
    let from = scenario.faults.iter().fold(Time::ZERO.after(horizon), |from, fault| from.after(aftermath(fault)));
    let policy = &scenario.configuration.policy;
    let footprints = scenario.footprints.iter().filter_map(|one| one.truth);
    let largest = footprints.max().unwrap_or(Bytes::ZERO);
    let slowest = scenario.cards.iter().map(|card| card.upkeep.load_time(largest).plus(card.upkeep.stop)).max();
    // Faults that slow a load down can all strike the same one.
    let slow = |load: Span, fault: &Fault| {
        if let FaultKind::SlowLoad { factor } = fault.kind { load.max(load.scaled_up(factor)) } else { load }
    };
    let slowest = scenario.faults.iter().fold(slowest.unwrap_or(Span::ZERO), slow);
    let load = slowest.plus(policy.release_timeout).plus(policy.min_residency);
    let sleeps = scenario.faults.iter().any(|fault| matches!(fault.kind, FaultKind::ClockJump { .. }));
    Calm { from, fixed: FIXED, per_job: PER_JOB.plus(load.times(2)), sleeps }
}

/// For so long a fault may be felt after the horizon.
fn aftermath(fault: &Fault) -> Span {
    match &fault.kind {
        FaultKind::LingeringMemory { lasts } | FaultKind::SlowExit { lasts } => *lasts,
        FaultKind::StalledLoad { lasts } | FaultKind::Wedge { lasts } => *lasts,
        FaultKind::SlowDevice { lasts, .. } | FaultKind::Monitor { lasts, .. } => lasts.unwrap_or(Span::ZERO),
        FaultKind::ForeignMemory { curve } => curve.last().map_or(Span::ZERO, |(at, _)| *at),
        FaultKind::Pressure { curve } => curve.last().map_or(Span::ZERO, |(at, _)| *at),
        FaultKind::ClockJump { by } => by.times(match &fault.when {
            Occurrence::At(moments) => moments.len() as u64,
            Occurrence::Always | Occurrence::Rate(_) | Occurrence::Probability(_) => 10,
        }),
        FaultKind::PhantomMemory { .. }
        | FaultKind::NeverExits
        | FaultKind::SlowLoad { .. }
        | FaultKind::FailedLoad
        | FaultKind::LoadOom
        | FaultKind::WrongEstimate { .. }
        | FaultKind::MemoryGrowth { .. }
        | FaultKind::SilentOvercommit
        | FaultKind::Crash
        | FaultKind::ConnectionLimit { .. } => Span::from_secs(60),
    }
}
