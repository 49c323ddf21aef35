//! What a load that ran out of memory teaches: its model needs more than was tried and than there was, unless other programs had
//! taken the memory unseen. What they use is frozen while models move, and what a model takes beyond its reservation looks like
//! theirs, so that shows only when nothing moves any more.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, Effects, ModelId, Scheduler, instance::Instance, residency::FailedLoad};

/// What is believed of a model's need since a load of it ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Raised {
    /// A load needs at least so much.
    pub to: Bytes,
    /// What is not known yet of the failure; `None`: the model was at fault.
    pub open: Option<Open>,
}

/// A load that ran out, before it is known why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// What had been measured of the model.
    pub measured: Option<Bytes>,
    /// What the load had reserved, or was seen to take beyond that.
    pub tried: Bytes,
    /// What was booked of the device, with what the load had reserved.
    pub booked: Bytes,
}

impl Scheduler {
    /// The measurement proved wrong: more is needed than was tried, and than there was. One retry comes at once, with an
    /// eviction where one is possible.
    pub(super) fn load_ran_out(&mut self, model: ModelId, device: DeviceId, tried: Bytes, effects: &mut Effects) {
        let most = self.most_room(model, device);
        let kept = self.committed(device).minus(self.coming(device));
        let left = self.budget(device).map_or(Bytes::ZERO, |budget| budget.minus(kept));
        // What it was seen to take beyond its reservation is nobody else's, so that is no shortage that others explain.
        let outgrown = tried.minus(self.need(model, device));
        let more = tried.plus(Bytes::new(tried.get() / 8)).max(left.plus(Bytes::from_mib(1)));
        let (to, booked) = (more.min(most).max(tried.min(most)), self.booked(device).minus(outgrown));
        if let Some(needs) = self.needs_mut(model, device) {
            let before = needs.raised.and_then(|raised| raised.open?.measured);
            let measured = needs.measured.take().or(before);
            needs.raised = Some(Raised { to, open: Some(Open { measured, tried, booked }) });
        }
        self.store_profile(model, device, effects);
        if core::mem::replace(&mut self.models[model.index()].loads.retried, true) {
            self.count_failure(model, FailedLoad::Yes, effects);
        }
    }

    /// Settles, with the first reading that nothing disturbs, why loads ran out. If what was booked and what others turn out to
    /// use are more than there is, they were the cause, and nothing was learned of the model. Else it is believed to need more,
    /// though not what could only be had if they gave something back that they had all the time.
    pub(crate) fn settle_shortages(&mut self, id: DeviceId, effects: &mut Effects) {
        if !self.is_settled(id) {
            return;
        }
        let memory = &self.devices[id.index()].memory;
        let (foreign, total) = (memory.foreign, memory.total.unwrap_or(Bytes::new(u64::MAX)));
        for model in (0..self.models.len() as u32).map(ModelId) {
            let Some(Raised { to, open: Some(Open { measured, tried, booked }) }) = self.raised(model, id) else {
                continue;
            };
            let most = self.most_room(model, id);
            let others = booked.plus(foreign) > total;
            let Some(needs) = self.needs_mut(model, id) else { continue };
            if others {
                (needs.measured, needs.raised) = (measured, None);
                self.store_profile(model, id, effects);
            } else {
                needs.raised = Some(Raised { to: to.min(most.minus(foreign)).max(tried.min(most)), open: None });
            }
        }
    }

    /// Whether a reading of a device is disturbed by nothing: no process comes or goes, or has just gone.
    pub(crate) fn is_settled(&self, id: DeviceId) -> bool {
        let memory = &self.devices[id.index()].memory;
        memory.frozen == 0 && memory.leftovers.is_empty() && !self.moves(id)
    }

    /// Whether any instance of a device is loading or stopping.
    pub(crate) fn moves(&self, id: DeviceId) -> bool {
        let mut instances = self.devices[id.index()].instances.iter().map(|one| &self.instances[*one]);
        instances.any(|instance: &Instance| instance.slot.is_moving())
    }
}
