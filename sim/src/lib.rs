//! Virtual time: simulated cards, arrivals, traces, replications and sweeps around the production scheduler.
//!
//! A [`Setup`] is a scenario made ready. Running one replication of it drives the scheduler from one thing that happens
//! to the next and tells a recorder of every step. Everything random is drawn from streams of its own per workload, so two
//! policies meet the same world. [`Callers`] are its requests without its cards, for whoever sends them elsewhere.

mod arrivals;
mod callers;
mod cards;
mod control;
mod error;
mod events;
mod faults;
#[cfg(test)]
mod fixtures;
pub mod fuzz;
mod memory;
pub mod random;
pub mod recorded;
mod replications;
mod run;
pub mod selftest;
mod setup;
pub mod sweep;
pub mod theory;
pub mod trace;

pub use callers::{Call, Callers};
pub use control::Control;
pub use error::SimError;
pub use replications::Outcome;
pub use setup::Setup;
