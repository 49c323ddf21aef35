//! What is replayed and compared, and why it may be impossible.

use std::num::NonZero;

use thiserror::Error;
use windtunnel_reports::journal::JournalError;

/// What is replayed and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Where each run's replay starts.
    pub start: Start,
    /// What checkpoints are for.
    pub checkpoints: CheckpointRule,
}

/// Where the replay of a run starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At its first record.
    #[default]
    Beginning,
    /// At its checkpoint of that number, from 1.
    Checkpoint(NonZero<u32>),
}

/// What is done with the checkpoints that are met on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointRule {
    /// The state has to be theirs.
    #[default]
    Compared,
    /// They are passed, as after a change of what the state holds.
    Passed,
}

/// Why a journal cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The scheduler cannot take a state up from which the replay should go on.
    #[error("line {line}: the checkpoint cannot be restored: {cause}; it may be of another version of the program")]
    Checkpoint {
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
}
