//! What surrounds the work on a card: processes that load, hold memory and leave, and the monitor that reads it.
//!
//! A [`Machine`] stands beside each card. A **load** starts its process (a fixed time), then fills memory up to the
//! model's footprint; loads that fill at one time share the card's bandwidth. A **stop** takes its time, and the memory of
//! a process is free a while after its end. What others use follows a curve. Loading does not slow the work on the card.
//!
//! **Too much memory.** A load that does not fit into what is there fails at its end where the memory is the card's own; a
//! process that has grown beyond it dies. On unified memory a load always succeeds; while more is taken than there is, every
//! grant that ends on the device fails.
//!
//! **Readings** come from two calls that need not agree: the memory in use, and the list of processes. One is taken when the
//! scheduler asks, others at multiples of the polling time while there is something to see: a load, a stop or a release is
//! under way, a figure differs from the last reading, or the monitor misbehaves. A device on which no model has a known
//! footprint shows its size and who is there, and is not polled.
//!
//! Order within a moment: ends of loads and processes by instance, memory that gets free, memory of others, processes that
//! have outgrown the card, the reading, and at last the pressure, which is that of the memory in use after all of it.

mod curve;
mod machine;
mod monitor;
mod process;

pub use curve::Curve;
pub use machine::{Happened, Machine};
pub use process::{Claim, LoadEnd, LoadFate};

#[cfg(test)]
mod tests;
