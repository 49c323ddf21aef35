//! Where chance comes from.
//!
//! A run has one number as its seed. From it, the replication, the purpose, the name of the workload and the number of
//! the client every [`Stream`] gets a seed of its own, so that no stream knows how often another was asked. The gap, the
//! sizes, the patience and the service noise of a request each come from their own stream of its workload (of its client
//! in a closed loop) and are drawn when the request is generated: request 17 of a workload is the same request under
//! every policy, every rate and every setting of the others (common random numbers). A constant asks no stream.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019) and every function on the way to a value is either exact
//! in IEEE 754 arithmetic or comes from `libm`, not from the platform: values are the same everywhere.

mod sampler;
mod stream;
mod ziggurat;

pub use sampler::Sampler;
pub use stream::{Purpose, Seed, Stream};
