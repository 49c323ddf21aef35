//! Whether an instance gets on with its work, as far as those know who read its answers.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio_util::sync::CancellationToken;
use windtunnel_core::ExitCause;

/// The work of one instance, which its [`Endpoint`](crate::Endpoint) brings along. Whoever sends it a request begins a
/// [`Flight`]; whoever looks after its process sees whether bytes come, and says when nothing is to be hoped for.
#[derive(Debug, Default)]
pub struct Progress {
    /// Flights that wait for bytes.
    waiting: AtomicUsize,
    /// How often bytes have come.
    signs: AtomicU64,
    given_up: CancellationToken,
    ended: CancellationToken,
    cause: OnceLock<ExitCause>,
}

/// A request under way; over when it is dropped. It waits for bytes from the beginning.
#[derive(Debug)]
pub struct Flight {
    progress: Arc<Progress>,
    waits: bool,
}

/// What can be seen of an instance's work at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Whether anybody waits for bytes. Somebody whose own client takes none does not.
    pub waits: bool,
    /// How often bytes have come so far.
    pub signs: u64,
}

impl Progress {
    /// A request is sent.
    pub fn begin(self: &Arc<Progress>) -> Flight {
        let mut flight = Flight { progress: Arc::clone(self), waits: false };
        flight.wait();
        flight
    }

    /// What can be seen now.
    pub fn sight(&self) -> Sight {
        Sight { waits: self.waiting.load(Ordering::Relaxed) > 0, signs: self.signs.load(Ordering::Relaxed) }
    }

    /// Goes off when the process is found wedged: requests under way fail for that reason.
    pub fn given_up(&self) -> &CancellationToken {
        &self.given_up
    }

    /// Waits until the scheduler has been told that the process is gone; `None`: it was asked to go. Whoever sees a connection
    /// break waits for this a moment before he says so, since the end of a process is to be said before its grants fail.
    pub async fn ended(&self) -> Option<ExitCause> {
        self.ended.cancelled().await;
        self.cause.get().copied()
    }

    /// The scheduler was told that the process is gone, and why where it was not asked to.
    pub(crate) fn end(&self, cause: Option<ExitCause>) {
        if let Some(cause) = cause {
            self.cause.get_or_init(|| cause);
        }
        self.ended.cancel();
    }
}

impl Flight {
    /// Bytes have come.
    pub fn touch(&mut self) {
        self.progress.signs.fetch_add(1, Ordering::Relaxed);
        self.rest();
    }

    /// More bytes are wanted, and there are none yet.
    pub fn wait(&mut self) {
        if !self.waits {
            self.waits = true;
            self.progress.waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn rest(&mut self) {
        if self.waits {
            self.waits = false;
            self.progress.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_bytes_and_wants_no_more_does_not_wait() {
        let progress = Arc::new(Progress::default());
        let (mut one, other) = (progress.begin(), progress.begin());
        one.touch();
        drop(other);
        assert_eq!(progress.sight(), Sight { waits: false, signs: 1 });
        one.wait();
        one.wait();
        assert_eq!(progress.sight(), Sight { waits: true, signs: 1 });
        drop(one);
        assert_eq!(progress.sight(), Sight { waits: false, signs: 1 });
    }
}
