//! What is going to happen, by time.
//!
//! Two structures, because two kinds of events behave differently. The next end on each card changes its time whenever
//! the card is given work or the work on it slows down: [`Earliest`] keeps one time for each card and finds the least.
//! Clients that will send and clients that will lose patience are set once: [`Agenda`] is a heap of them.

mod agenda;
mod earliest;

pub use agenda::{Agenda, Event};
pub use earliest::Earliest;
