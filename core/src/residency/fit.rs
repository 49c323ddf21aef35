//! What a model needs on a device, and whether that can ever be had.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::raise::Raised;
use crate::{Bytes, DeviceId, Effect, Effects, Estimate, InstanceId, ModelId, Profile, Scheduler, Span};

/// What is known of a model's memory and load time on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Needs {
    pub device: DeviceId,
    pub estimate: Option<Bytes>,
    pub measured: Option<Bytes>,
    /// What a load needs at least since one ran out of memory.
    pub raised: Option<Raised>,
    pub load_time: Span,
}

impl Needs {
    fn unknown(device: DeviceId) -> Needs {
        Needs { device, estimate: None, measured: None, raised: None, load_time: Span::ZERO }
    }
}

impl Scheduler {
    pub(crate) fn learn_estimate(&mut self, estimate: &Estimate) {
        if let Some(needs) = self.needs_mut(estimate.model, estimate.device) {
            needs.estimate = Some(estimate.footprint);
            needs.load_time = estimate.load_time;
        }
    }

    pub(crate) fn learn_profile(&mut self, profile: &Profile) {
        if let Some(needs) = self.needs_mut(profile.model, profile.device) {
            needs.measured = profile.footprint;
            needs.load_time = profile.load_time.unwrap_or(needs.load_time);
        }
    }

    pub(crate) fn needs_mut(&mut self, model: ModelId, device: DeviceId) -> Option<&mut Needs> {
        let places = &mut self.models.get_mut(model.index())?.places;
        let at = places.iter().position(|one| one.device == device).unwrap_or_else(|| {
            places.push(Needs::unknown(device));
            places.len() - 1
        });
        places.get_mut(at)
    }

    fn needs(&self, model: ModelId, device: DeviceId) -> Option<&Needs> {
        self.models[model.index()].places.iter().find(|one| one.device == device)
    }

    /// What is believed since a load of a model ran out of memory on a device.
    pub(crate) fn raised(&self, model: ModelId, device: DeviceId) -> Option<Raised> {
        self.needs(model, device)?.raised
    }

    /// The memory a load reserves: what was measured, or else the estimate and the device's headroom; more after it ran out.
    pub(crate) fn need(&self, model: ModelId, device: DeviceId) -> Bytes {
        let Some(needs) = self.needs(model, device) else { return Bytes::ZERO };
        let headroom = self.configuration.devices[device.index()].headroom;
        let estimated = needs.estimate.map_or(Bytes::ZERO, |bytes| bytes.plus(headroom));
        needs.measured.unwrap_or(estimated).max(needs.raised.map_or(Bytes::ZERO, |raised| raised.to))
    }

    /// What a resident instance holds until it is read: what was measured, or else the estimate.
    pub(crate) fn resident_bytes(&self, model: ModelId, device: DeviceId) -> Bytes {
        let needs = self.needs(model, device);
        needs.and_then(|needs| needs.measured.or(needs.estimate)).unwrap_or(Bytes::ZERO)
    }

    /// How long a load is believed to take.
    pub(crate) fn load_time(&self, model: ModelId, device: DeviceId) -> Span {
        self.needs(model, device).map_or(Span::ZERO, |needs| needs.load_time)
    }

    /// The most that a model could ever have on a device: the budget less what is pinned there. What other programs use does
    /// not count, since they may give it back.
    pub(crate) fn most_room(&self, model: ModelId, device: DeviceId) -> Bytes {
        let Some(budget) = self.budget(device) else { return Bytes::new(u64::MAX) };
        let own = self.instances_of(model).map(|id| &self.instances[id]);
        let own = own.filter(|one| one.device == device && self.is_pinned(model) && !one.slot.is_leaving());
        let pinned = self.sums(device).pinned.minus(own.fold(Bytes::ZERO, |sum, one| sum.plus(one.booked)));
        budget.minus(pinned)
    }

    /// Whether no variant can ever be loaded: the least that one needs, and the most room there is for it.
    pub(crate) fn never_fits(&self, variants: &[ModelId]) -> Option<(Bytes, Bytes)> {
        let mut least: Option<(Bytes, Bytes)> = None;
        for &model in variants {
            for place in &self.configuration.models[model.index()].placements {
                let (need, room) = (self.need(model, place.device), self.most_room(model, place.device));
                if need <= room || self.has_instance(model, place.device) {
                    return None;
                }
                if least.is_none_or(|(known, _)| need < known) {
                    least = Some((need, room));
                }
            }
        }
        least
    }

    pub(crate) fn is_pinned(&self, model: ModelId) -> bool {
        self.configuration.model(model).is_some_and(|model| model.pinned)
    }

    /// Whether a model has an instance on a device, in whatever state.
    pub(crate) fn has_instance(&self, model: ModelId, device: DeviceId) -> bool {
        self.instances_of(model).any(|id| self.instances[id].device == device)
    }

    /// The devices a model may be placed on.
    pub(crate) fn places(&self, model: ModelId) -> Vec<DeviceId> {
        let places = self.configuration.model(model).map_or(&[][..], |model| &model.placements);
        places.iter().map(|place| place.device).filter(|device| device.index() < self.devices.len()).collect()
    }

    /// An instance was measured to hold so much.
    pub(crate) fn measured(&mut self, id: InstanceId, bytes: Bytes, effects: &mut Effects) {
        let (model, device) = (self.instances[id].model, self.instances[id].device);
        if let Some(needs) = self.needs_mut(model, device) {
            needs.raised = None;
            if needs.measured != Some(bytes) {
                needs.measured = Some(bytes);
                self.store_profile(model, device, effects);
            }
        }
    }

    /// An instance has stayed lower than what was measured: what it had grown since its load is not reserved for the next one.
    pub(crate) fn measured_less(&mut self, id: InstanceId, bytes: Bytes, effects: &mut Effects) {
        let instance = &self.instances[id];
        let (model, device) = (instance.model, instance.device);
        // Where nobody saw what the load took, a low reading may be of a pause in which the process holds less than it loads with.
        let Some(loaded) = instance.loaded else { return };
        let known = self.needs(model, device).and_then(|needs| needs.measured);
        if known.is_some_and(|known| known > bytes.max(loaded)) {
            self.measured(id, bytes.max(loaded), effects);
        }
    }

    /// Has everything that was learned of a model on a device kept over restarts.
    pub(crate) fn store_profile(&mut self, model: ModelId, device: DeviceId, effects: &mut Effects) {
        let factor = self.factors.entry(model, device);
        let (factor, observations) = (factor.value, factor.observations);
        let needs = self.needs(model, device);
        let footprint = needs.and_then(|needs| needs.measured);
        let load_time = needs.map(|needs| needs.load_time).filter(|time| !time.is_zero());
        effects.push(Effect::Learned(Profile { model, device, factor, observations, footprint, load_time }));
    }
}
