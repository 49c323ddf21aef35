//! Pending loads: models for which memory is being freed. They own the bytes they wait for.

use serde::{Deserialize, Serialize};

use super::{Precedence, plan::Wanting};
use crate::{Bytes, DeviceId, Effects, ModelId, Note, Scheduler, Violation, check::agree};

/// A load that waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub model: ModelId,
    /// The place of the first head that wanted it when it was last looked at.
    #[serde(default = "Precedence::last")]
    pub precedence: Precedence,
    pub needs: Bytes,
    /// Whether the guard is loading it.
    pub guarded: Guarded,
    /// Whether the pass under way still wants it.
    #[serde(skip)]
    pub wanted: bool,
    /// Whether in this pass only jobs further behind still wanted it: others may go before it now.
    #[serde(skip)]
    pub demoted: bool,
}

impl Pending {
    /// A head wants it in the pass under way: it stands where the first of those who do would.
    pub fn claim(&mut self, by: Precedence) {
        let first = if self.wanted { self.precedence.min(by) } else { by };
        self.demoted |= first > self.precedence;
        self.precedence = first;
        self.wanted = true;
    }
}

/// On whose account a load is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Guarded {
    No,
    /// In interactive mode, by the guard.
    Yes,
}

impl Scheduler {
    /// What is available on a device to a model that a head wants: the budget less what is committed and what is owed to
    /// pending loads that go before it. Who had a model that was evicted for another does not take its memory back before that
    /// is loaded, not for another variant either, unless he is a chat and the other is none: it would have been evicted in vain.
    /// Negative where more is owed than there is.
    pub(crate) fn available(&self, id: DeviceId, model: ModelId, by: &Wanting) -> i128 {
        let Some(budget) = self.budget(id) else { return i128::MAX };
        let owed = self.devices[id.index()].pending.iter().filter(|one| one.model != model);
        let variants = self.targets.get(by.target as usize).map_or(&[][..], |target| &target.variants);
        let went_for = |to, one: &ModelId| self.models[one.index()].evicted_for == Some((id, to));
        let chats = by.precedence.is_interactive();
        let gave_way = |to: &Pending| {
            (!chats || to.precedence.is_interactive()) && variants.iter().any(|one| went_for(to.model, one))
        };
        let owed = owed.filter(|one| one.precedence < by.precedence || gave_way(one));
        let owed = owed.map(|one| i128::from(one.needs.get()));
        i128::from(budget.get()) - i128::from(self.committed(id).get()) - owed.sum::<i128>()
    }

    pub(crate) fn pending(&self, id: DeviceId, model: ModelId) -> Option<&Pending> {
        self.devices[id.index()].pending.iter().find(|one| one.model == model)
    }

    /// Makes a load wait for memory, or brings one that does up to date.
    pub(crate) fn await_memory(&mut self, id: DeviceId, load: Pending, missing: Bytes, effects: &mut Effects) {
        let pending = &mut self.devices[id.index()].pending;
        match pending.iter_mut().find(|one| one.model == load.model) {
            Some(known) => {
                known.claim(load.precedence);
                let Pending { precedence, demoted, .. } = *known;
                *known = Pending { precedence, demoted, ..load };
            }
            None => {
                pending.push(load);
                let (model, needs) = (load.model, load.needs);
                effects.note(Note::LoadPending { model, device: id, needs, missing });
            }
        }
    }

    pub(crate) fn forget_pending(&mut self, id: DeviceId, model: ModelId) {
        self.devices[id.index()].pending.retain(|one| one.model != model);
        for state in &mut self.models {
            state.evicted_for = state.evicted_for.filter(|&known| known != (id, model));
        }
    }

    /// Whether each load that waits for memory is owed what its model needs there, once, and has nothing there yet.
    pub(crate) fn check_pending(&self) -> Result<(), Violation> {
        for (number, device) in self.devices.iter().enumerate() {
            let id = DeviceId(number as u32);
            for (at, one) in device.pending.iter().enumerate() {
                let again = device.pending[..at].iter().any(|other| other.model == one.model);
                if again || self.has_instance(one.model, id) {
                    return Err(Violation::OwedTwice { model: one.model, device: id });
                }
                agree("bytes owed to a load", one.needs.get(), self.need(one.model, id).get())?;
            }
        }
        Ok(())
    }

    /// Drops the pending loads that no waiting job wants any more; whether there were any, or some that only jobs
    /// further behind want now. Their victims leave all the same.
    pub(crate) fn drop_unwanted(&mut self, effects: &mut Effects) -> bool {
        let mut any = false;
        for (number, device) in self.devices.iter_mut().enumerate() {
            device.pending.retain_mut(|one| {
                any |= core::mem::take(&mut one.demoted);
                if !one.wanted {
                    effects.note(Note::LoadDropped { model: one.model, device: DeviceId(number as u32) });
                    any = true;
                }
                one.wanted
            });
        }
        any
    }
}
