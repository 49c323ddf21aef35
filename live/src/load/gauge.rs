//! How far a load has come, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Progress over all runs of a command.
#[derive(Debug, Default)]
pub struct Gauge {
    planned: AtomicU64,
    done: AtomicU64,
    sent: AtomicU64,
    ended: AtomicU64,
}

impl Gauge {
    /// So many more runs are going to be done.
    pub fn plan(&self, runs: u64) {
        self.planned.fetch_add(runs * 1_000_000, Ordering::Relaxed);
    }

    /// Millionths of runs that are done, and that were planned.
    pub fn millionths(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.planned.load(Ordering::Relaxed))
    }

    /// Requests sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Requests that have ended, in whatever way.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    pub(super) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// The run under way has gone from the millionths `from` to `to`.
    pub(super) fn advance(&self, from: u64, to: u64) {
        self.done.fetch_add(to.saturating_sub(from), Ordering::Relaxed);
    }
}
