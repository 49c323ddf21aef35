//! Models that fail: loads back off, and after three failures within five minutes a breaker opens.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{BreakerState, Effects, ModelId, Note, Scheduler, Span, Time};

/// So many failures within this time open the breaker.
const FAILURES: usize = 3;
const WITHIN: Span = Span::from_secs(300);
/// It is tried again after a minute, doubled up to a quarter of an hour.
const OPEN_FIRST: Span = Span::from_secs(60);
const OPEN_MOST: Span = Span::from_secs(900);
/// Loads that failed are tried again after a second, doubled up to five minutes.
const BACK_OFF_FIRST: Span = Span::from_secs(1);
const BACK_OFF_MOST: Span = Span::from_secs(300);

/// What is kept of a model's failures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Breaker {
    /// Failures within five minutes, oldest first.
    failures: Vec<Time>,
    /// Loads that failed one after another.
    failed_loads: u32,
    /// No load is tried before then.
    back_off: Option<Time>,
    /// Open until then.
    open: Option<Time>,
    /// One load is tried before anything is believed again.
    half_open: bool,
    /// How often it opened without a quarter of an hour between failures.
    opened: u32,
}

impl Breaker {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether its counts leave room to count on.
    pub fn is_sound(&self) -> bool {
        self.failed_loads <= u32::MAX / 2 && self.opened <= u32::MAX / 2
    }

    /// When a load may next be tried; `None`: now.
    pub fn next_try(&self, now: Time) -> Option<Time> {
        self.open.max(self.back_off).filter(|&at| at > now)
    }

    pub fn doubled(first: Span, times: u32, most: Span) -> Span {
        first.times(1_u64.checked_shl(times).unwrap_or(u64::MAX)).min(most)
    }

    fn failed(&mut self, now: Time) {
        if self.failures.last().is_none_or(|&last| now >= last.after(OPEN_MOST)) && !self.half_open {
            self.opened = 0;
        }
        self.failures.retain(|&at| now < at.after(WITHIN));
        self.failures.push(now);
    }
}

impl Scheduler {
    /// A load failed, or a process died.
    pub(crate) fn count_failure(&mut self, model: ModelId, load: FailedLoad, effects: &mut Effects) {
        let now = self.now;
        let breaker = &mut self.models[model.index()].breaker;
        breaker.failed(now);
        if load == FailedLoad::Yes {
            let until = now.after(Breaker::doubled(BACK_OFF_FIRST, breaker.failed_loads, BACK_OFF_MOST));
            breaker.failed_loads += 1;
            breaker.back_off = Some(until);
            effects.note(Note::BackOff { model, until });
        }
        if breaker.failures.len() >= FAILURES || breaker.half_open {
            let until = now.after(Breaker::doubled(OPEN_FIRST, breaker.opened, OPEN_MOST));
            breaker.open = Some(until);
            breaker.opened += 1;
            breaker.half_open = false;
            breaker.failures = alloc::vec![now];
            effects.note(Note::Breaker { model, state: BreakerState::Open { until } });
        }
    }

    /// Half-opens the breakers that are due: one load is tried.
    pub(crate) fn lapse_breakers(&mut self, effects: &mut Effects) {
        let now = self.now;
        for (number, state) in self.models.iter_mut().enumerate() {
            if state.breaker.open.is_some_and(|until| now >= until) {
                state.breaker.open = None;
                state.breaker.half_open = true;
                effects.note(Note::Breaker { model: ModelId(number as u32), state: BreakerState::HalfOpen });
            }
        }
    }

    /// A load succeeded, or an operator asked: everything is forgotten.
    pub(crate) fn close_breaker(&mut self, model: ModelId, effects: &mut Effects) {
        let breaker = &mut self.models[model.index()].breaker;
        let was_open = breaker.half_open || breaker.open.is_some();
        // Crashes count on: a model that loads well and dies again and again fails all the same.
        breaker.failed_loads = 0;
        breaker.back_off = None;
        breaker.open = None;
        breaker.half_open = false;
        if was_open {
            effects.note(Note::Breaker { model, state: BreakerState::Closed });
        }
    }

    /// An operator wants a model to be tried again.
    pub(crate) fn reset_breaker(&mut self, model: ModelId, effects: &mut Effects) {
        if model.index() >= self.models.len() {
            return effects.note(Note::Ignored { cause: crate::Nonsense::NoSuchPlacement });
        }
        self.models[model.index()].breaker.failures.clear();
        self.close_breaker(model, effects);
    }

    /// When the next open breaker half-opens.
    pub(crate) fn breaker_due(&self) -> Option<Time> {
        self.models.iter().filter_map(|state| state.breaker.open).min()
    }
}

/// Whether a failure was that of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedLoad {
    No,
    Yes,
}
