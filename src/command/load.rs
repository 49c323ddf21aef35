//! `windtunnel load`: the workloads of a scenario, or one from the command line, against an OpenAI endpoint.

mod bridge;
mod endpoint;
mod flags;

use std::{fs::File, sync::Arc};

use windtunnel_config::ScenarioFile;
use windtunnel_live::load::{Gauge, Recording};
use windtunnel_reports::{Report, journal::EndCause};
use windtunnel_sim::Setup;

use crate::{
    args::LoadArgs,
    command::{report::deliver, sim::spare_scenario},
    failure::Failure,
    session::Session,
};
pub use bridge::send;
pub use endpoint::{settings, span};

pub fn run(args: &LoadArgs, session: &Session) -> Result<(), Failure> {
    spare_scenario(args.journal.as_deref(), args.scenario.as_deref())?;
    let file = match &args.scenario {
        Some(path) => ScenarioFile::load(path)?.served_elsewhere(),
        None => flags::scenario(args)?,
    };
    let setup = Setup::new(file.resolve(&session.overrides)?)?;
    let settings = settings(&args.url, &args.endpoint)?;
    let mut recording = Recording::new(None);
    if let Some(path) = &args.journal {
        let journal = File::create(path).map_err(|wrong| Failure::file("create", path, &wrong))?;
        recording = Recording::new(Some(Box::new(journal)));
    }
    bridge::left_out(setup.scenario()).iter().for_each(|remark| session.remark(remark));
    let gauge = Arc::new(Gauge::default());
    gauge.plan(1);
    let progress = session.loading("loading", &gauge);
    let sent = send(&setup, 0, &settings, &mut recording, &session.control, &gauge);
    drop(progress);
    sent?;
    let run = recording.into_run();
    let interrupted = run.end.cause == EndCause::Interrupted;
    deliver(&Report::from_runs(vec![run]), args.report.as_deref(), session)?;
    if interrupted {
        let (ended, sent) = (gauge.ended(), gauge.sent());
        return Err(Failure::Interrupted(format!("{ended} of {sent} requests that were sent had ended")));
    }
    Ok(())
}
