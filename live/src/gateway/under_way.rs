//! Grants that the gateway runs, by attempt.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use windtunnel_core::{Attempt, InstanceId};

use crate::Running;

/// Grants under way. Who leaves a grant takes it out at once, although its slot may not be free yet.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    grants: Mutex<BTreeMap<Attempt, (InstanceId, CancellationToken)>>,
    /// Answers that take several grants, between which there may be none.
    answers: AtomicUsize,
}

/// An answer of several grants.
#[derive(Debug)]
pub(super) struct Answering<'a>(&'a UnderWay);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.answers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UnderWay {
    pub(super) fn enter(&self, running: &Running) {
        self.grants().insert(running.attempt, (running.instance, running.abort.clone()));
    }

    pub(super) fn leave(&self, attempt: Attempt) {
        self.grants().remove(&attempt);
    }

    /// An answer of several grants is under way until what is returned is dropped.
    pub(super) fn answering(&self) -> Answering<'_> {
        self.answers.fetch_add(1, Ordering::Relaxed);
        Answering(self)
    }

    /// How many run on an instance.
    pub(super) fn on(&self, instance: InstanceId) -> usize {
        self.grants().values().filter(|(at, _)| *at == instance).count()
    }

    /// Breaks all of them off.
    pub(super) fn cut(&self) {
        self.grants().values().for_each(|(_, abort)| abort.cancel());
    }

    /// Waits until there are none, `limit` at most; whether there are none.
    pub(super) async fn emptied(&self, limit: Duration) -> bool {
        let started = Instant::now();
        loop {
            if self.grants().is_empty() && self.answers.load(Ordering::Relaxed) == 0 {
                return true;
            }
            if started.elapsed() >= limit {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn grants(&self) -> MutexGuard<'_, BTreeMap<Attempt, (InstanceId, CancellationToken)>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
