//! `windtunnel sim`: one scenario, all replications.

use std::{fs, path::Path};

use windtunnel_config::parse_span;
use windtunnel_sim::Setup;

use crate::{args::SimArgs, command::report::deliver, failure::Failure, session::Session};

pub fn run(args: &SimArgs, session: &Session) -> Result<(), Failure> {
    spare_scenario(args.journal.as_deref(), args.scenario.as_deref())?;
    let mut setup = Setup::new(session.scenario(args.scenario.as_deref())?)?;
    if let Some(text) = &args.checkpoint {
        let every = parse_span(text).map_err(|wrong| Failure::BadInput(format!("--checkpoint {text}: {wrong}")))?;
        if every.is_zero() {
            return Err(Failure::BadInput("--checkpoint must be more than 0s".to_owned()));
        }
        setup = setup.with_checkpoints(every);
    }
    let progress = session.progress("simulating");
    let outcome = setup.run_all(args.journal.as_deref(), &session.control)?;
    drop(progress);
    if outcome.finished > 0 {
        deliver(&outcome.report, args.report.as_deref(), session)?;
    }
    session.unless_interrupted(&format!("{} of {} replications were finished", outcome.finished, outcome.asked))
}

/// An error if the journal would take the scenario's place.
pub fn spare_scenario(journal: Option<&Path>, scenario: Option<&Path>) -> Result<(), Failure> {
    let (Some(journal), Some(scenario)) = (journal, scenario) else { return Ok(()) };
    let same = matches!((fs::canonicalize(journal), fs::canonicalize(scenario)), (Ok(one), Ok(other)) if one == other);
    if same {
        let message = format!("--journal {}: would overwrite the scenario; give another file", journal.display());
        return Err(Failure::BadInput(message));
    }
    Ok(())
}
