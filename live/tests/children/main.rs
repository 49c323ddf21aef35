//! The supervisor with fake servers as its children: every fact it owes the scheduler, and everything a process can do
//! wrong. Processes are real, so this needs Linux.
#![cfg(target_os = "linux")]

mod daemon;
mod ends;
#[path = "../scheduled/header.rs"]
mod header;
mod loads;
mod nursery;
mod served;
mod wedged;
