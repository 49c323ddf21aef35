//! Who asks for what, and when.
//!
//! Open workloads do not care how the system fares: each is a sorted stream of moments of which only the next is known
//! ([`OpenSource`]), and [`Merge`] hands out the earliest of them, at equal times that of the earlier workload. They stay
//! outside the event queue. In a closed loop ([`ClosedLoop`]) each client thinks, sends a request, waits for its end and
//! thinks again; when it sends next is told to the event queue by whoever learns of the end.
//!
//! A request is complete when it is generated: sizes, patience and service noise travel with it ([`Request`]), and which
//! streams they come from does not depend on when it is sent (see [`crate::random`]).
//!
//! Rounding: gaps are kept with their fraction of a nanosecond, moments are rounded down to whole ones; so rates are exact
//! over runs of any length.

mod closed;
mod gaps;
mod merge;
mod open;
mod request;
mod words;

pub use closed::ClosedLoop;
pub use merge::Merge;
pub use open::OpenSource;
pub use request::{NO_CLIENT, NoiseKinds, Request, UnitNoise};
pub use words::describe;
