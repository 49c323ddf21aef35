//! The fake server, asked over its socket like the real one: what it answers, at which pace, and what it does wrong.

mod answers;
mod client;
#[path = "../scheduled/ear.rs"]
mod ear;
mod faults;
#[path = "../scheduled/header.rs"]
mod header;
#[path = "../scheduled/job.rs"]
mod job;
mod paces;
#[cfg(unix)]
mod process;
mod simulated;
