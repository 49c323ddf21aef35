//! How far each thread of a search is, for somebody with a clock: a step of the scheduler that never returns stops its thread, and
//! only another one can say so.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use serde_json::Value;
use windtunnel_config::to_toml;
use windtunnel_core::Time;

use super::{
    freeze::{Noise, frozen},
    search::{Find, Findings, Frozen, Progress},
};
use crate::run::Arrival;

/// Requests as they come, to be looked at while the run goes on.
pub(crate) type Noted = Arc<Mutex<Vec<Arrival>>>;

/// What every thread of a search is at, and what all of them have found.
#[derive(Debug, Default)]
pub struct Pulses {
    threads: Vec<Pulse>,
    findings: Mutex<Findings>,
}

/// What one thread is at.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Steps that have returned, over all worlds.
    beats: AtomicU64,
    /// The time of the last of them, in its world.
    now: AtomicU64,
    at: Mutex<Option<Begun>>,
}

/// A world under way.
#[derive(Debug)]
struct Begun {
    document: Value,
    seed: u64,
    /// The beats before it.
    before: u64,
    noted: Noted,
}

impl Pulses {
    /// Of so many threads.
    pub fn new(threads: usize) -> Pulses {
        Pulses { threads: (0..threads).map(|_| Pulse::default()).collect(), findings: Mutex::default() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pulse> {
        self.threads.iter()
    }

    /// What has been found so far.
    pub(super) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The beats of every thread that has a world under way; `None` of the others.
    pub fn beats(&self) -> Vec<Option<u64>> {
        self.iter().map(|pulse| pulse.has_begun().then(|| pulse.beats.load(Ordering::Relaxed))).collect()
    }

    /// What has been found so far, and besides that the world in which a thread stands still has a step that does not return;
    /// `None`: the thread has none.
    pub fn findings_with_stuck(&self, thread: usize) -> Option<Findings> {
        let steps = self.iter().map(|pulse| pulse.beats.load(Ordering::Relaxed)).sum();
        let mut findings = std::mem::take(&mut *self.findings());
        let after = Progress { worlds: findings.worlds + 1, steps, finds: findings.finds.len() as u64 };
        findings.finds.push(self.threads.get(thread)?.stuck(after)?);
        Some(findings)
    }
}

impl Pulse {
    /// A world begins; where its requests are to be noted.
    pub fn begin(&self, document: &Value, seed: u64) -> Noted {
        let noted = Noted::default();
        let before = self.beats.load(Ordering::Relaxed);
        self.now.store(0, Ordering::Relaxed);
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Begun { document: document.clone(), seed, before, noted: Arc::clone(&noted) });
        noted
    }

    /// A step at `t` has returned. Only its own thread says so.
    #[inline]
    pub fn beat(&self, t: Time) {
        self.now.store(t.as_nanos(), Ordering::Relaxed);
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The world has ended.
    pub fn end(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn has_begun(&self) -> bool {
        self.at.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn stuck(&self, after: Progress) -> Option<Find> {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let Begun { document, seed, before, noted } = at.as_ref()?;
        let arrivals = noted.lock().unwrap_or_else(PoisonError::into_inner);
        let step = self.beats.load(Ordering::Relaxed) - before + 1;
        Some(Find {
            seed: *seed,
            rule: "every step returns".to_owned(),
            message: format!("step {step} of the world does not; requests are written down up to it"),
            at: Time::from_nanos(self.now.load(Ordering::Relaxed)),
            after,
            scenario: to_toml(&frozen(document, &arrivals, Noise::Kept)),
            frozen: Frozen::ButNoise,
            trials: 0,
            seen: 1,
        })
    }
}
