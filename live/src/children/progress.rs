//! Whether an instance gets on with its work, as far as those know who read its answers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

/// The work of one instance. Whoever sends it a request begins a [`Flight`] and touches it with every byte that comes.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    in_flight: AtomicUsize,
    /// Nanoseconds from `since` to the last sign of life.
    touched: AtomicU64,
    given_up: CancellationToken,
    ended: CancellationToken,
}

/// A request under way; over when it is dropped.
#[derive(Debug)]
pub struct Flight {
    progress: Arc<Progress>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            since: Instant::now(),
            in_flight: AtomicUsize::new(0),
            touched: AtomicU64::new(0),
            given_up: CancellationToken::new(),
            ended: CancellationToken::new(),
        }
    }

    /// A request is sent.
    pub fn begin(self: &Arc<Progress>) -> Flight {
        self.touch();
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Flight { progress: Arc::clone(self) }
    }

    /// Goes off when the process is found wedged: requests under way fail for that reason.
    pub fn given_up(&self) -> &CancellationToken {
        &self.given_up
    }

    /// Goes off once the scheduler was told that the process is gone. Whoever sees a connection break waits for it a moment
    /// before it says so, since the end of a process is to be said before its grants fail.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// The last sign of life, where work is under way.
    pub(super) fn last(&self) -> Option<Instant> {
        let under_way = self.in_flight.load(Ordering::Relaxed) > 0;
        under_way.then(|| self.since + Duration::from_nanos(self.touched.load(Ordering::Relaxed)))
    }

    fn touch(&self) {
        let nanos = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.touched.fetch_max(nanos, Ordering::Relaxed);
    }
}

impl Flight {
    /// Bytes have come.
    pub fn touch(&self) {
        self.progress.touch();
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.progress.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
