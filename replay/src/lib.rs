//! A journal is a recording: its inputs, fed into a fresh scheduler, give its effects, and where they do not, something has
//! changed since it was written.
//!
//! [`Replay`] is handed the records of journals one by one. Each input goes to a scheduler of its own; each recorded effect is
//! held against the one that this scheduler wants next, and each checkpoint against its state. The first [`Difference`] ends
//! the replay: what comes after it follows from it. Where lines are missing the scheduler cannot know what happened, so nothing
//! is compared until a checkpoint gives the whole state, and what was left out is counted and said.
//!
//! Nothing is kept but the scheduler and a handful of records for context, so memory does not grow with a journal's length.
//! Nothing here decides about scheduling, reads files, or knows a clock.

mod compare;
mod difference;
mod follower;
mod outcome;
mod replay;
mod rules;
mod state;
mod trail;

pub use difference::{Difference, RunName, Said, What};
pub use outcome::{Outcome, Tally};
pub use replay::{Replay, replay};
pub use rules::{CheckpointRule, ReplayError, Rules, Start};
