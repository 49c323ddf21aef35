//! The gateway between real sockets: a client that says what it likes, a child that answers by script, and the scheduler between
//! them.

mod client;
mod passing;
mod upstream;
mod world;
