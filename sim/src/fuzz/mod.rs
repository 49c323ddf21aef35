//! The search for broken rules: random worlds, an auditor, and what is made of a world that fails.
//!
//! A world is drawn from a seed (`world`) and run with the scheduler's own invariants checked after every step and an
//! `auditor` beside it (`trial`). One that breaks a rule is written down so that nothing is drawn any more
//! (`freeze`) and made as small as it can be (`shrink`). A [`Search`] does that for world after world.

mod auditor;
mod dice;
mod freeze;
mod ground;
mod search;
mod shrink;
mod tally;
mod trial;
mod world;

use std::path::Path;

use windtunnel_config::{Override, ScenarioFile};

pub use ground::Ground;
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
    control: &Control,
) -> Result<(Tally, Option<(String, String)>), SimError> {
    let document = file.document(overrides)?;
    let trial = trial::run(&document, origin, trial::Along::Twin, control)?;
    Ok((trial.tally, trial.found.map(|(at, breach)| (breach.rule, format!("at {at}: {}", breach.message)))))
}

#[cfg(test)]
mod tests;
