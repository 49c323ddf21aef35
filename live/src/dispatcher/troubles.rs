//! Why models that fail are not tried, and when they are again: for those who have to tell clients.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use windtunnel_core::{BreakerState, Effect, Effects, ExitCause, LoadFailure, ModelId, Note, Time};

/// What is known of a model that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// How it failed last.
    pub cause: Option<TroubleCause>,
    /// When it is tried again.
    pub next_try: Option<Time>,
}

/// How a model failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleCause {
    /// When it was to be loaded.
    Load(LoadFailure),
    /// While it ran.
    Exit(ExitCause),
}

/// What is known of all of them. Kept up to date by the dispatcher, read by anybody.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    models: Mutex<BTreeMap<ModelId, Trouble>>,
}

impl Troubles {
    pub(super) fn of(&self, model: ModelId) -> Option<Trouble> {
        self.models().get(&model).copied()
    }

    /// A model failed.
    pub(super) fn failed(&self, model: ModelId, cause: TroubleCause) {
        self.models().entry(model).or_default().cause = Some(cause);
    }

    /// Takes up what was decided of models that fail.
    pub(super) fn decided(&self, effects: &Effects) {
        for effect in effects {
            let &Effect::Note(Note::Breaker { model, state }) = effect else { continue };
            match state {
                BreakerState::Open { until } => self.models().entry(model).or_default().next_try = Some(until),
                BreakerState::HalfOpen => self.models().entry(model).or_default().next_try = None,
                BreakerState::Closed => drop(self.models().remove(&model)),
            }
        }
    }

    fn models(&self) -> MutexGuard<'_, BTreeMap<ModelId, Trouble>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
