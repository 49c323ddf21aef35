//! The policy of Windtunnel: who gets the GPU now, what waits, and why.
//!
//! A deterministic state machine that is told everything. A driver owns the clock, hands every fact to
//! [`Scheduler::step`] and carries out the [`Effect`]s it gets back; [`Scheduler::wake_at`] is the only timer. The same
//! inputs at the same times give the same effects, byte for byte.
//!
//! The crate knows no clock, thread, file, socket, random number or floating-point number, and iterates over ordered
//! collections only.
#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod admission;
mod arrivals;
mod audit;
mod check;
mod configuration;
mod device;
mod direct;
mod dispatch;
mod effect;
mod expiry;
mod grants;
mod guard;
mod id_table;
mod ids;
mod input;
mod instance;
mod instances;
mod job;
mod lifecycle;
mod margin;
mod memory;
mod modes;
mod note;
mod outcome;
mod prediction;
mod queue;
mod reasons;
mod reconfigure;
mod relay;
mod residency;
mod restore;
mod routing;
mod scheduler;
mod service;
#[cfg(test)]
mod short_way_tests;
mod soundness;
mod submission;
mod target;
mod timers;
mod turns;
mod units;
mod view;

pub use check::Violation;
pub use configuration::*;
pub use effect::*;
pub use id_table::IdTable;
pub use ids::*;
pub use input::*;
pub use note::*;
pub use outcome::*;
pub use scheduler::{Checkpoint, Scheduler};
pub use service::*;
pub use soundness::{Flaw, Unsound};
pub use submission::*;
pub use units::*;
pub use view::*;
