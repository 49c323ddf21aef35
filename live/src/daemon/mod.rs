//! The daemon as a whole: it reads a configuration, puts the rooms of this crate together, and keeps them running until it
//! is asked to end.
//!
//! * [`continued`] gives a new configuration the ids of the old one, so that it can be taken up while everything runs.
//! * `setting` makes of a configuration what each room is told.
//! * `running` holds what changes while it runs, and answers what the gateway cannot know.
//! * `news` says to people what becomes of models.
//! * `serve` starts everything, waits for signals and changed files, and ends everything in good order.
//! * [`demo`] writes configurations for those who have none.

mod changes;
mod continuation;
pub mod demo;
mod fleet;
mod news;
mod records;
mod running;
mod serve;
mod setting;
mod source;

pub use continuation::{Continued, continued};
pub use serve::{Options, Said, Sayer, ServeError, serve};
pub use source::{Source, Text};
