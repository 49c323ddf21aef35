//! The replay of journals, record by record.

use std::{collections::BTreeSet, io::BufRead, num::NonZero, ops::ControlFlow};

use serde_json::Value;
use windtunnel_core::{Checkpoint, Time};
use windtunnel_reports::journal::{Header, JournalError, Record, Records, Warning};

use crate::{
    CheckpointRule, Difference, Outcome, ReplayError, Rules, RunName, Start, Tally,
    follower::{Follower, Told},
    trail::Trail,
};

/// The replay of one or several journals.
#[derive(Debug)]
pub struct Replay {
    rules: Rules,
    pub(crate) tally: Tally,
    remarks: Vec<String>,
    difference: Option<Box<Difference>>,
    pub(crate) trail: Trail,
    pub(crate) stage: Stage,
    pub(crate) run: RunName,
    /// Checkpoints of the run so far.
    checkpoints: u32,
    counted: Counted,
    pub(crate) file: Option<String>,
    position: Position,
    versions: BTreeSet<String>,
}

/// How far a run has come.
#[derive(Debug)]
pub(crate) enum Stage {
    /// None is open.
    Closed,
    /// It is followed.
    Following(Box<Follower>),
    /// It cannot be followed until a checkpoint comes, or is not to be.
    Lost(Lost),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    cause: Cause,
    /// The line from which on.
    line: u64,
    /// Inputs left out since.
    inputs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Lines are missing.
    Missing,
    /// The replay starts at a later checkpoint.
    Asked(NonZero<u32>),
}

/// Whether something of the run has been replayed, so that it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    No,
    Yes,
}

/// Whether the next record is the first of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    First,
    Later,
}

/// The replay of journals that lie one after another in these inputs, each of which stands for a file.
///
/// # Errors
/// When one of them cannot be read or is no journal, and when a checkpoint that is needed cannot be restored.
pub fn replay<R: BufRead>(inputs: impl IntoIterator<Item = R>, rules: Rules) -> Result<Outcome, ReplayError> {
    let mut replay = Replay::new(rules);
    for input in inputs {
        replay.begin_file(None);
        let mut records = Records::new(input);
        while let Some(record) = records.next() {
            if replay.record(records.line(), record?)?.is_break() {
                return Ok(replay.finish());
            }
        }
        replay.end_file(records.line(), records.warnings());
    }
    Ok(replay.finish())
}

impl Replay {
    /// Nothing read yet.
    pub fn new(rules: Rules) -> Replay {
        Replay {
            rules,
            tally: Tally::default(),
            remarks: Vec::new(),
            difference: None,
            trail: Trail::new(),
            stage: Stage::Closed,
            run: RunName { title: None, replication: 0 },
            checkpoints: 0,
            counted: Counted::No,
            file: None,
            position: Position::First,
            versions: BTreeSet::new(),
        }
    }

    /// The records of another file follow. One that does not begin with a header goes on where the one before it broke off,
    /// or from its own checkpoint if none did.
    pub fn begin_file(&mut self, name: Option<String>) {
        self.file = name;
        self.position = Position::First;
    }

    /// The file ended after `line`, and this had to be borne to read it.
    pub fn end_file(&mut self, line: u64, warnings: &[Warning]) {
        for warning in warnings {
            self.remark(&warning.to_string());
        }
        let torn = warnings.iter().any(|warning| matches!(warning, Warning::Torn { .. }));
        if torn && let Stage::Following(_) = self.stage {
            self.stage = Stage::Lost(Lost { cause: Cause::Missing, line, inputs: 0 });
        }
    }

    /// The next record and its line; a break once something differs, after which no more is taken.
    ///
    /// # Errors
    /// When the record stands before any header, or is a checkpoint that is needed and cannot be restored.
    pub fn record(&mut self, line: u64, record: Record) -> Result<ControlFlow<()>, ReplayError> {
        if self.difference.is_some() {
            return Ok(ControlFlow::Break(()));
        }
        let first = std::mem::replace(&mut self.position, Position::Later);
        if let (Stage::Closed, Position::First, Record::Checkpoint { .. }) = (&self.stage, first, &record) {
            self.open(RunName { title: None, replication: 0 });
        }
        self.difference = match (&mut self.stage, &record) {
            (_, Record::Header(header)) => {
                self.header(header);
                return Ok(ControlFlow::Continue(()));
            }
            (Stage::Closed, _) => return Err(JournalError::NoHeader { line }.into()),
            (Stage::Lost(lost), Record::Input { .. }) => {
                lost.inputs += 1;
                None
            }
            (Stage::Lost(_), Record::Effect { .. } | Record::Gap { .. }) => None,
            (Stage::Following(follower), Record::Effect { t, effect }) => {
                let owed = follower.owed();
                if owed.as_ref().is_some_and(|(at, wanted)| (at, wanted) == (t, effect)) {
                    follower.meet();
                    self.tally.effects += 1;
                    None
                } else {
                    self.other_effect(line, Some((*t, effect.clone())), owed)
                }
            }
            (Stage::Following(_), Record::Gap { .. }) => {
                self.stage = Stage::Lost(Lost { cause: Cause::Missing, line, inputs: 0 });
                None
            }
            (_, Record::Checkpoint { t, state }) => {
                let difference = self.checkpoint(line, *t, state, first)?;
                return Ok(self.end_with(difference));
            }
            (Stage::Following(follower), Record::Input { t, input }) => match follower.owed() {
                Some(owed) => self.other_effect(line, None, Some(owed)),
                None => {
                    follower.tell(Told { line, t: *t, input: input.clone() });
                    self.tally.inputs += 1;
                    self.count_run();
                    None
                }
            },
            (_, Record::End(_)) => self.end(line),
        };
        if self.difference.is_some() {
            return Ok(ControlFlow::Break(()));
        }
        self.trail.push(record);
        Ok(ControlFlow::Continue(()))
    }

    /// Nothing more comes.
    pub fn finish(mut self) -> Outcome {
        if self.difference.is_none() {
            self.break_off();
        }
        let Replay { tally, difference, remarks, .. } = self;
        Outcome { equal: difference.is_none(), tally, difference, remarks }
    }

    fn end_with(&mut self, difference: Option<Box<Difference>>) -> ControlFlow<()> {
        self.difference = difference;
        if self.difference.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn header(&mut self, header: &Header) {
        self.break_off();
        self.open(RunName { title: Some(header.title.clone()), replication: header.replication });
        self.trail.begin(header);
        let (theirs, ours) = (&header.program, env!("CARGO_PKG_VERSION"));
        if theirs != ours && self.versions.insert(theirs.clone()) {
            self.remark(&format!("written by version {theirs}, replayed by {ours}: the policy may have changed"));
        }
    }

    fn open(&mut self, run: RunName) {
        (self.run, self.checkpoints, self.counted) = (run, 0, Counted::No);
        self.stage = match self.rules.start {
            Start::Beginning => Stage::Following(Box::new(Follower::fresh())),
            Start::Checkpoint(number) => Stage::Lost(Lost { cause: Cause::Asked(number), line: 1, inputs: 0 }),
        };
    }

    /// The run ends here, as it says.
    fn end(&mut self, line: u64) -> Option<Box<Difference>> {
        if let Stage::Following(follower) = &self.stage
            && let Some(owed) = follower.owed()
        {
            return self.other_effect(line, None, Some(owed));
        }
        self.close();
        None
    }

    /// The run ends here without a word; the effects of its last input may never have been written.
    fn break_off(&mut self) {
        if !matches!(self.stage, Stage::Closed) {
            self.remark(&format!("{} breaks off: it is replayed up to its last line", self.run));
            self.close();
        }
    }

    fn close(&mut self) {
        let Stage::Lost(Lost { cause, line, inputs }) = std::mem::replace(&mut self.stage, Stage::Closed) else {
            return;
        };
        self.tally.inputs_left_out += inputs;
        match cause {
            Cause::Asked(number) => {
                let count = self.checkpoints;
                self.remark(&format!("{} has {count} checkpoints, not {number}: it is left out", self.run));
            }
            Cause::Missing if inputs > 0 => {
                let said = format!(
                    "lines are missing at line {line} and no checkpoint follows: {inputs} inputs of {} are left out",
                    self.run
                );
                self.remark(&said);
            }
            Cause::Missing => {}
        }
    }

    /// A checkpoint is what the state has to be, or where the replay goes on.
    fn checkpoint(
        &mut self,
        line: u64,
        t: Time,
        state: &Value,
        position: Position,
    ) -> Result<Option<Box<Difference>>, ReplayError> {
        self.checkpoints += 1;
        match &self.stage {
            Stage::Closed => {}
            Stage::Following(follower) if follower.last().is_none() && self.counted == Counted::No => {
                self.resume(line, state)?;
            }
            Stage::Following(follower) => {
                if let Some(owed) = follower.owed() {
                    return Ok(self.other_effect(line, None, Some(owed)));
                }
                if self.rules.checkpoints == CheckpointRule::Compared {
                    return self.compare(line, t, state, position);
                }
            }
            Stage::Lost(Lost { cause: Cause::Asked(number), inputs, .. }) if number.get() == self.checkpoints => {
                self.tally.inputs_left_out += inputs;
                self.resume(line, state)?;
            }
            Stage::Lost(Lost { cause: Cause::Asked(_), .. }) => {}
            Stage::Lost(Lost { cause: Cause::Missing, line: from, inputs }) => {
                self.tally.inputs_left_out += inputs;
                let said = format!(
                    "lines are missing at line {from}: {} goes on from the checkpoint of line {line}, {inputs} inputs are left out",
                    self.run
                );
                self.remark(&said);
                self.resume(line, state)?;
            }
        }
        Ok(None)
    }

    fn resume(&mut self, line: u64, state: &Value) -> Result<(), ReplayError> {
        let restored = serde_json::from_value::<Checkpoint>(state.clone());
        let checkpoint = restored.map_err(|cause| ReplayError::Checkpoint { line, cause })?;
        let follower = Follower::restored(checkpoint).map_err(|cause| ReplayError::Unsound { line, cause })?;
        self.trail.resume(follower.scheduler());
        self.stage = Stage::Following(Box::new(follower));
        self.count_run();
        Ok(())
    }

    fn count_run(&mut self) {
        if self.counted == Counted::No {
            self.counted = Counted::Yes;
            self.tally.runs += 1;
        }
    }

    fn remark(&mut self, text: &str) {
        self.remarks.push(match &self.file {
            Some(file) => format!("{file}: {text}"),
            None => text.to_owned(),
        });
    }
}
