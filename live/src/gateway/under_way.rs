//! Grants that the gateway runs, by attempt.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use windtunnel_core::{Attempt, InstanceId};

use crate::Running;

/// Grants under way. Who leaves a grant takes it out at once, although its slot may not be free yet.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    grants: Mutex<BTreeMap<Attempt, (InstanceId, CancellationToken)>>,
}

impl UnderWay {
    pub(super) fn enter(&self, running: &Running) {
        self.grants().insert(running.attempt, (running.instance, running.abort.clone()));
    }

    pub(super) fn leave(&self, attempt: Attempt) {
        self.grants().remove(&attempt);
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
            if self.grants().is_empty() {
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
