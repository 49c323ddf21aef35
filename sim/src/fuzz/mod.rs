//! The search for broken rules: random worlds, an auditor, and what is made of a world that fails.
//!
//! A world is drawn from a seed (`world`) and run with the scheduler's own invariants checked after every step and an
//! `auditor` beside it (`trial`). One that breaks a rule is written down so that nothing is drawn any more
//! (`freeze`) and made as small as it can be (`shrink`). A [`Search`] does that for world after world.

mod auditor;
mod dice;
mod freeze;
mod ground;
mod pulse;
mod search;
mod shrink;
mod tally;
mod trial;
mod world;

use std::path::Path;

use serde_json::Value;
use windtunnel_config::{Override, ScenarioFile};

pub use ground::Ground;
pub(crate) use pulse::Noted;
pub use pulse::Pulses;
pub use search::{Find, Findings, Frozen, Progress, Search};
pub use tally::Tally;

use crate::{Control, SimError};

/// Runs a scenario once, exactly as it stands, with every check.
///
/// # Errors
/// If it is no scenario, or cannot be simulated.
pub fn as_it_stands(
    file: &ScenarioFile,
    origin: &Path,
    overrides: &[Override],
    pulses: &Pulses,
    control: &Control,
) -> Result<(Tally, Option<(String, String)>), SimError> {
    let document = file.document(overrides)?;
    let seed = document.pointer("/run/seed").and_then(Value::as_u64).unwrap_or(1);
    let bench = trial::Bench { origin, pulse: pulses.iter().next(), control };
    let trial = trial::run(&document, seed, trial::Along::Twin, &bench)?;
    Ok((trial.tally, trial.found.map(|(at, breach)| (breach.rule, format!("at {at}: {}", breach.message)))))
}

#[cfg(test)]
mod tests;
