//! The fake server, asked over its socket like the real one: what it answers, at which pace, and what it does wrong.

mod answers;
mod client;
mod faults;
mod paces;
#[cfg(unix)]
mod process;
mod simulated;
