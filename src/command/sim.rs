//! `windtunnel sim`: one scenario, all replications.

use windtunnel_config::parse_span;
use windtunnel_sim::Setup;

use crate::{args::SimArgs, command::report::deliver, failure::Failure, session::Session};

pub fn run(args: &SimArgs, session: &Session) -> Result<(), Failure> {
    let mut setup = Setup::new(session.scenario(args.scenario.as_deref())?)?;
    if let Some(text) = &args.checkpoint {
        let every = parse_span(text).map_err(|wrong| Failure::BadInput(format!("--checkpoint {text}: {wrong}")))?;
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
