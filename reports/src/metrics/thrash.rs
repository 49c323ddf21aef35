//! Models that were loaded again and again.

use windtunnel_core::ModelId;

/// How much one model thrashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thrash {
    /// Which.
    pub model: ModelId,
    /// Loads that the scheduler called thrashing: the sixth or a later one within five minutes.
    pub times: u64,
    /// The most loads within five minutes.
    pub most: u32,
}

/// Every model that did.
#[derive(Clone, Debug, Default)]
pub(super) struct Thrashing(Vec<Thrash>);

impl Thrashing {
    /// The scheduler said so of a model that has begun its load number `loads` within five minutes.
    pub fn noted(&mut self, model: ModelId, loads: u32) {
        match self.0.iter_mut().find(|one| one.model == model) {
            Some(known) => {
                known.times += 1;
                known.most = known.most.max(loads);
            }
            None => self.0.push(Thrash { model, times: 1, most: loads }),
        }
    }

    pub fn into_models(self) -> Vec<Thrash> {
        self.0
    }
}
