//! `windtunnel replay`: what a journal recorded, fed to the scheduler of this program.

use std::path::Path;

use windtunnel_replay::{CheckpointRule, Outcome, Replay, ReplayError, Rules, Start};
use windtunnel_reports::journal::{Record, Records, in_order, left_out};

use crate::{
    args::{Format, ReplayArgs},
    failure::Failure,
    output::print,
    reading::Reading,
    session::Session,
};

/// Ctrl-C is heard every so many records.
const HEARD_EVERY: u64 = 1_024;

pub fn run(args: &ReplayArgs, session: &Session) -> Result<(), Failure> {
    check(session)?;
    let outcome = replay(args, session)?;
    session.unless_interrupted(&format!("{} were equal", outcome.tally))?;
    for remark in &outcome.remarks {
        session.remark(remark);
    }
    if outcome.tally.runs == 0 && outcome.equal {
        return Err(Failure::BadInput(nothing(args)));
    }
    print(&match session.format {
        Format::Json => format!("{}\n", json(&outcome)?),
        Format::Table | Format::Csv => outcome.to_string(),
    })?;
    if outcome.equal { Ok(()) } else { Err(Failure::Unmet) }
}

fn check(session: &Session) -> Result<(), Failure> {
    if session.format == Format::Csv {
        return Err(Failure::BadInput("--format: `replay` prints text or JSON".to_owned()));
    }
    match session.overrides.first() {
        None => Ok(()),
        Some(set) => {
            let message = format!("--set {}: `replay` changes nothing; `whatif` tries other settings", set.text());
            Err(Failure::BadInput(message))
        }
    }
}

fn replay(args: &ReplayArgs, session: &Session) -> Result<Outcome, Failure> {
    let mut replay = Replay::new(Rules {
        start: args.from_checkpoint.map_or(Start::Beginning, Start::Checkpoint),
        checkpoints: if args.no_checkpoints { CheckpointRule::Passed } else { CheckpointRule::Compared },
    });
    let reading = Reading::of(&args.journals);
    let _progress = session.reading("replaying", &reading);
    let journals = in_order(&args.journals);
    left_out(&journals).iter().for_each(|remark| session.remark(remark));
    for path in &journals {
        replay.begin_file(Some(path.display().to_string()));
        let mut records = Records::new(reading.open(path)?);
        while let Some(record) = records.next() {
            let record = record.map_err(|wrong| in_file(path, &wrong.into()))?;
            check_decisions(path, &record)?;
            if replay.record(records.line(), record).map_err(|wrong| in_file(path, &wrong))?.is_break() {
                return Ok(replay.finish());
            }
            reading.record();
            if records.line().is_multiple_of(HEARD_EVERY) && session.control.is_interrupted() {
                return Ok(replay.finish());
            }
        }
        replay.end_file(records.line(), records.warnings());
    }
    Ok(replay.finish())
}

/// An error if the journal of this record holds no decisions.
pub fn check_decisions(path: &Path, record: &Record) -> Result<(), Failure> {
    match record {
        Record::Header(header) if header.is_of_load_generator() => Err(Failure::BadInput(format!(
            "{}: this journal was written by a load generator; it has no decisions to replay, only what its clients saw \
             (`windtunnel report`)",
            path.display()
        ))),
        Record::Header(_)
        | Record::Input { .. }
        | Record::Effect { .. }
        | Record::Checkpoint { .. }
        | Record::Gap { .. }
        | Record::End(_) => Ok(()),
    }
}

fn in_file(path: &Path, wrong: &ReplayError) -> Failure {
    Failure::BadInput(format!("{}: {wrong}", path.display()))
}

fn nothing(args: &ReplayArgs) -> String {
    match args.from_checkpoint {
        None => "there is no run in what was given; a journal begins with a header".to_owned(),
        Some(number) => format!("--from-checkpoint {number}: no run has so many; see `sim --checkpoint`"),
    }
}

fn json(outcome: &Outcome) -> Result<String, Failure> {
    serde_json::to_string(outcome).map_err(|wrong| Failure::BadInput(format!("write JSON: {wrong}")))
}
