//! The gateway between real sockets: a client that says what it likes, a child that answers by script, and the scheduler between
//! them.

mod access;
mod arriving;
mod client;
mod connections;
mod failing;
#[path = "../scheduled/header.rs"]
mod header;
mod holding;
mod leaving;
mod listing;
mod passing;
mod refusing;
mod reuse;
mod upstream;
mod vectors;
mod waiting;
mod world;
