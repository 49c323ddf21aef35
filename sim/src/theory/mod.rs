//! Queues whose behaviour is known exactly: what the simulator has to agree with.
//!
//! Every queue here has Poisson arrivals. Some are closed forms (Erlang, Pollaczek-Khinchine, Cobham); the others are
//! solved through a Markov chain embedded at moments after which the past no longer matters, and that chain is solved
//! without a single subtraction ([`Chain`]). Times and rates are in any unit and its reciprocal.
//!
//! A queue that does not settle has no figures: those functions return `None`.

mod admission;
mod batch;
mod chain;
mod constant;
mod erlang;
mod general;
mod poisson;
mod quantile;
mod sojourn;

pub use admission::*;
pub use batch::*;
pub use chain::*;
pub use constant::*;
pub use erlang::*;
pub use general::*;
pub use sojourn::*;
