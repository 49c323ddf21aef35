//! A recorded run played again under other settings.
//!
//! What a journal holds of a request: when it came, what it asked for, when its client gave up, how many tokens came out,
//! and which grants ran its steps, from when to when. [`Reader`] gathers that, run by run. What it does not hold is how
//! service would have gone under other conditions; so service is a model times the request's own residual: the time its
//! grant took, in time of the card for itself, over what the model says for the same weight; with continuous batching, of its
//! prefill and of its tokens, beside those that were under way. Under the recorded settings that gives the recorded times
//! again; under others the request keeps what was its own. Faults that strike work are not played again, since what they did
//! is in the recorded times; those of memory and loads are, where the scenario has them. Loads take as long as they did, where the
//! scenario lets them take no time.
//!
//! A [`Playback`] is such a run as workloads of given moments, open loop: a client that waited for an answer sends its next
//! request when it did, however fast the answer comes. What never ran has no residual and no output, and takes those of
//! another request of its workload, drawn from a stream of its own; how many did is counted.

mod devices;
mod generation;
mod loads;
mod playback;
mod read;
mod residuals;

pub use loads::{LoadTimes, RecordedLoad};
pub use playback::{Drawn, Playback, Requests};
pub use read::{Reader, RecordedGrant, RecordedJob, RecordedRun};
