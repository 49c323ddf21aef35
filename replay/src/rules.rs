//! What is replayed and compared, and why it may be impossible.

use std::num::NonZero;

use thiserror::Error;
use windtunnel_core::Unsound;
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
    /// What should be the state from which the replay goes on is no state.
    #[error("line {line}: the checkpoint cannot be restored: {cause}; it may be of another version of the program")]
    Checkpoint {
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// The scheduler cannot take that state up: it contradicts itself.
    #[error("line {line}: the checkpoint cannot be restored: {cause}")]
    Unsound {
        /// Its line, from 1.
        line: u64,
        /// Where in the state, and how.
        cause: Unsound,
    },
}
