//! What a model takes and how fast it is, measured through a daemon.
//!
//! ```text
//! a daemon of our own (daemon), or one that runs -> load, questions (measure) -> points -> equations (fit) -> rows, a block of
//!                                                                                                              TOML (told)
//! ```
//!
//! The daemon starts the model with its own code, reads its memory and keeps the profile, as it does at all times, and one of our
//! own does so apart from the user's state ([`apart`]); this asks
//! it for one thing after another and reads the runtime's own times off the answers. What is fitted are the numbers of the
//! simulator's service: see [`fit`].

mod apart;
mod daemon;
mod fit;
mod measure;
mod told;

pub use apart::Apart;
pub use daemon::OwnDaemon;
pub use measure::{Bench, Plan, Pulse};
pub use told::{json, rows, text};
