//! The first thing that is not as it was recorded, in its context.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use windtunnel_core::Time;

/// What differs, where, and what led to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The file, where there are files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the record that differs or before which one is missing, from 1.
    pub line: u64,
    /// The run it is in.
    pub run: RunName,
    /// When, in nanoseconds since the run began.
    pub t: Time,
    /// What differs.
    pub what: What,
    /// The readable lines of the records before.
    pub before: Vec<String>,
    /// The input that led to it: its line in the journal and its record.
    pub input: Option<(u64, Value)>,
    /// What was recorded; `None`: nothing.
    pub journal: Option<Said>,
    /// What the scheduler wants now; `None`: nothing.
    pub replay: Option<Said>,
    /// What may have brought it about.
    pub hints: Vec<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunName {
    /// Its title, where its header is there.
    pub title: Option<String>,
    /// Its replication, from 0.
    pub replication: u32,
}

/// What can differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Another effect was recorded than is wanted now.
    Effect,
    /// An effect was recorded that is not wanted now.
    Unwanted,
    /// An effect is wanted now that was not recorded.
    Missing,
    /// The state of a checkpoint is another.
    State {
        /// Where in the state, as dotted keys.
        place: String,
    },
}

/// One side of a difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Said {
    /// Its readable lines; some records have none.
    pub lines: Vec<String>,
    /// The record, or the part of the state.
    pub json: Value,
}

/// How much of a long JSON text is printed for people.
const SHOWN: usize = 600;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { line, run, t, what, .. } = self;
        match &self.file {
            Some(file) => writeln!(f, "{file}:{line}: {run} differs at {t}: {what}")?,
            None => writeln!(f, "line {line}: {run} differs at {t}: {what}")?,
        }
        if !self.before.is_empty() {
            writeln!(f, "\nbefore it")?;
            self.before.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        if let Some((line, input)) = &self.input {
            writeln!(f, "\nthe input, line {line}\n  {}", shortened(input))?;
        }
        side(f, "in the journal", self.journal.as_ref())?;
        side(f, "in the replay", self.replay.as_ref())?;
        self.hints.iter().try_for_each(|hint| writeln!(f, "\nhint: {hint}"))
    }
}

fn side(f: &mut fmt::Formatter<'_>, name: &str, said: Option<&Said>) -> fmt::Result {
    let Some(said) = said else { return writeln!(f, "\n{name}\n  nothing") };
    writeln!(f, "\n{name}")?;
    said.lines.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
    writeln!(f, "  {}", shortened(&said.json))
}

fn shortened(json: &Value) -> String {
    let text = json.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{} .. (cut; --format json shows all)", &text[..at]),
        None => text,
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.title {
            Some(title) => write!(f, "replication {} of \"{title}\"", self.replication),
            None => f.write_str("a run without a header"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Effect => f.write_str("another effect"),
            What::Unwanted => f.write_str("an effect that nothing leads to"),
            What::Missing => f.write_str("an effect is missing in the journal"),
            What::State { place } if place.is_empty() => f.write_str("another state"),
            What::State { place } => write!(f, "another state, first at {place}"),
        }
    }
}
