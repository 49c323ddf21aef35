//! What can be wrong with a trace.

use std::path::PathBuf;

use thiserror::Error;

/// Why a trace cannot be used.
#[derive(Debug, Error)]
pub enum TraceError {
    /// It cannot be opened or read.
    #[error("read the trace {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Its first line is not the header of a known format.
    #[error(
        "recognise the trace {}: its header is {found:?}; known are {known}",
        path.display()
    )]
    UnknownHeader {
        /// The file.
        path: PathBuf,
        /// Its first line.
        found: String,
        /// The headers that would do.
        known: String,
    },
    /// Too many of its rows make no sense.
    #[error(
        "read the trace {}: {bad} of {rows} rows make no sense, more than one in a hundred; first {}",
        path.display(),
        listed(first)
    )]
    TooManyBadRows {
        /// The file.
        path: PathBuf,
        /// How many rows make no sense.
        bad: u64,
        /// How many rows there are.
        rows: u64,
        /// The first ten of them.
        first: Vec<BadRow>,
    },
    /// No row is left to play back.
    #[error("play the trace {}: of its {rows} rows none is left inside `from` and `to` with output tokens", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// How many rows there are.
        rows: u64,
    },
}

/// A row that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its line in the file, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub error: RowError,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// It is too short.
    #[error("has no column `{column}`")]
    Missing {
        /// The column it lacks.
        column: &'static str,
    },
    /// Its time cannot be read.
    #[error("{found:?} is not a time such as {example}")]
    Time {
        /// What stands there.
        found: String,
        /// What would be right.
        example: &'static str,
    },
    /// A number of tokens cannot be read.
    #[error("{found:?} in `{column}` is not a whole number of tokens")]
    Tokens {
        /// Where it stands.
        column: &'static str,
        /// What stands there.
        found: String,
    },
}

fn listed(rows: &[BadRow]) -> String {
    rows.iter().map(|row| format!("line {}: {}", row.line, row.error)).collect::<Vec<_>>().join("; ")
}
