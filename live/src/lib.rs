//! Real time: the scheduler in front of real runtimes.
//!
//! One thread owns the scheduler ([`dispatcher`]). Everything else in the daemon talks to it through a [`Desk`]: the gateway
//! brings jobs and says what became of their grants, runtimes say what became of loads and stops, monitors bring readings
//! of memory. What the scheduler wants goes the other way: grants to whoever brought the job, loads and stops to the
//! [`Runtimes`], records to a [`journal`] that never makes anybody wait.

mod clock;
pub mod dispatcher;
pub mod journal;
mod runtimes;

pub use clock::Clock;
pub use dispatcher::{BatchOrder, Desk, Dispatcher, Order, Running, Ticket, Told};
pub use runtimes::{Endpoint, LoadOrder, Runtimes};
