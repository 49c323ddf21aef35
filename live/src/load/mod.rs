//! A load generator: requests go to an endpoint at their times, and what a client sees is recorded.
//!
//! What is to be sent comes from a [`Plan`], which hands out one [`Call`] after another and is told when each has ended, so
//! that clients of a closed loop can ask again. Nothing here knows how a plan makes its requests up.
//!
//! [`run`] is one loop on the thread of its caller: it sleeps until the next call is due, hands it to the runtime and
//! takes in what the exchanges under way tell. Everything slow is elsewhere: a task per request writes the prompt, holds the
//! connection and reads the answer. So there is no limit on requests in flight but memory, and none on connections: like
//! the pools of common SDKs, one is kept alive and used again when an answer has ended, and a new one is opened whenever
//! none is free. (A connection per request would time handshakes, and run out of ports at a few hundred requests a second;
//! a pool of a given size would keep requests waiting in the client, where nobody counts it.)
//!
//! **Time.** A request counts from when it was to be sent, not from when it was: a generator that is held up by a slow
//! server, or is slow itself, would otherwise leave out the very waits it was to measure (coordinated omission). How late it
//! was itself is measured too ([`Lag`]) and told at the end of the run. The first token is out with the first frame that
//! has content; a request ends with the last byte of its answer.
//!
//! **Records.** What is seen goes into the very records that a scheduler's journal has ([`Recording`]): a submission when a
//! request was to be sent, a grant when the answer began and told how long the request had waited, an end. Metrics and
//! reports take them as they take any other.

mod address;
mod connections;
mod exchange;
mod gauge;
mod lag;
mod pace;
mod question;
mod recording;
mod stream;
mod tally;
mod verdict;
pub(crate) mod wording;

use std::{io, time::Duration};

use windtunnel_core::{Span, Time};

pub use address::Address;
pub use gauge::Gauge;
pub use lag::Lag;
pub use pace::{Watch, run};
pub use question::{Fields, Prompts};
pub use recording::Recording;

/// What is to be sent, as far as is known by now.
pub trait Plan {
    /// When the next call is due; `None`: none is, unless one that is under way ends.
    fn next(&self) -> Option<Time>;

    /// The next call. To be asked for only when it is due.
    fn take(&mut self) -> Option<Call>;

    /// `call` has ended at `ended`; it was served since `started`, if it was served at all.
    fn ended(&mut self, call: &Call, started: Option<Time>, ended: Time);
}

/// A request that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub at: Time,
    /// After how long its client gives up; `None`: never.
    pub patience: Option<Span>,
    /// The place of its workload in the scenario.
    pub workload: usize,
    /// Which client of a closed loop sends it; `None` in an open workload.
    pub client: Option<u32>,
    /// Inputs, at least 1.
    pub inputs: u32,
    /// Prompt tokens of each input.
    pub prompt_tokens: u32,
    /// Output tokens.
    pub output_tokens: u32,
}

/// Where to send, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The endpoint.
    pub address: Address,
    /// The key that is presented, where one is.
    pub key: Option<String>,
    /// What prompts are like.
    pub prompts: Prompts,
    /// Which fields requests have.
    pub fields: Fields,
    /// A request without an end after so long has failed.
    pub timeout: Duration,
    /// How long requests that are under way at the end of a run may take to end by themselves before they are broken off.
    pub cool_down: Duration,
    /// Varies the words of the prompts; another one in every run keeps prompt caches from knowing them.
    pub seed: u64,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Calls due later than this are not sent.
    pub horizon: Option<Span>,
    /// No more calls than this are sent.
    pub jobs: Option<u64>,
    /// What happens then.
    pub rest: Rest,
}

/// What becomes of requests that are under way when the last one has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// They are unfinished.
    Unfinished,
    /// They are waited for.
    Awaited,
}

/// Why no load can be put on an endpoint.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nobody answers there.
    #[error("connect to {address}: {cause}; is the server running?")]
    Unreachable {
        /// The address.
        address: String,
        /// What was tried and failed.
        cause: io::Error,
    },
    /// A workload asks for what cannot be sent.
    #[error("send the requests of {workload}: {cause}")]
    Workload {
        /// The workload.
        workload: String,
        /// Why.
        cause: String,
    },
    /// The threads that hold connections cannot be started.
    #[error("start the load generator: {0}")]
    Threads(io::Error),
    /// The journal cannot be written; a load without the journal that was asked for would be worth little.
    #[error("write the journal: {0}")]
    Journal(#[from] io::Error),
}
