//! Journals: JSON Lines of what the scheduler was told and what it wanted.
//!
//! A file holds one run or several, one after another, each with a header. [`JournalWriter`] writes them as they happen,
//! [`Records`] reads them line by line, [`read_runs`] makes figures of them, the very ones that metrics in memory give, and
//! [`Lines`] turns them into what an operator reads.

mod claims;
mod lines;
mod names;
mod reader;
mod record;
mod rotation;
mod runs;
mod words;
mod writer;

use schemars::{Schema, schema_for};

pub use claims::{EventCheck, EventOutcome, matches};
pub use lines::{EventFilter, EventLine, Lines, WORDS};
pub use reader::{JournalError, Records, Warning};
pub use record::*;
pub use rotation::{in_order, latest, left_out, numbered};
pub use runs::{Journals, Runs, read_journals, read_runs, report_from_journals};
pub(crate) use words::obstacle;
pub use writer::JournalWriter;

/// The JSON Schema of a journal's lines.
pub fn schema_journal() -> Schema {
    schema_for!(Record)
}
