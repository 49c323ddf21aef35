//! Recorded traces: when requests came and how long their prompts and answers were.
//!
//! A trace is read once, row by row, into sixteen bytes a row, and shared by all replications. Its clock starts with its
//! first arrival, so absolute stamps and seconds since some start are the same to it. Prompt and output sizes of a row
//! stay together. What was wrong with the file is counted and told ([`Summary`]), not silently repaired:
//!
//! * a row that makes no sense is left out; more than one in a hundred is an error;
//! * a row with no output tokens is a request that failed where it was recorded, and is left out;
//! * rows are sorted by arrival, equal ones in the order of the file.

mod error;
mod format;
mod read;
mod stamp;
mod summary;

pub use error::{BadRow, RowError, TraceError};
pub use read::{load, read};
pub use summary::{Summary, Zone};

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Nanoseconds since the first arrival that is played back.
    pub at: u64,
    /// Prompt tokens.
    pub prompt_tokens: u32,
    /// Output tokens, at least 1.
    pub output_tokens: u32,
}

/// A trace, ready to be played back.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Its requests, sorted by arrival.
    pub rows: std::sync::Arc<[Row]>,
    /// What was found in the file.
    pub summary: Summary,
}
