//! What the scheduler is told of footprints and loads before the run: estimates, which may be wrong, and measurements.

use windtunnel_config::{FaultKind, Footprint};
use windtunnel_core::{Bytes, DeviceId, Estimate, ModelId, Ppm, Profile, Span};

use super::Setup;

impl Setup {
    /// What an instance of `model` truly takes; `None`: nobody counts it.
    pub(crate) fn footprint(&self, model: ModelId) -> Option<Bytes> {
        self.counted(model).truth
    }

    /// What every model is believed to need where it may be placed. Where neither its memory nor its load takes anything
    /// there is nothing to believe.
    pub(crate) fn estimates(&self) -> Vec<Estimate> {
        let estimate = |(model, device)| {
            let counted = self.counted(model);
            let believed = counted.estimate.or(counted.truth).unwrap_or(Bytes::ZERO);
            let footprint = self.wrongly(model, device, believed);
            let load_time = self.load_time(model, device, footprint)?;
            let known = counted.truth.is_some() || !load_time.is_zero();
            known.then_some(Estimate { model, device, footprint, load_time })
        };
        self.places().filter_map(estimate).collect()
    }

    /// The measurements that earlier runs left.
    pub(crate) fn profiles(&self) -> Vec<Profile> {
        let profile = |(model, device): (ModelId, DeviceId)| {
            let Footprint { truth: Some(truth), measured: true, estimate: _ } = self.counted(model) else {
                return None;
            };
            let load_time = self.load_time(model, device, truth)?;
            let (footprint, load_time) = (Some(truth), Some(load_time));
            Some(Profile { model, device, factor: Ppm::ONE, observations: 0, footprint, load_time })
        };
        self.places().filter_map(profile).collect()
    }

    /// How long a load of so much takes on a device that has nothing else to load.
    fn load_time(&self, model: ModelId, device: DeviceId, footprint: Bytes) -> Option<Span> {
        let own = || Some(self.scenario().cards.get(device.index())?.upkeep.load_time(footprint));
        self.recorded_load(model, device).or_else(own)
    }

    fn counted(&self, model: ModelId) -> Footprint {
        self.scenario().footprints.get(model.index()).copied().unwrap_or_default()
    }

    /// Every model with every device it may be placed on.
    fn places(&self) -> impl Iterator<Item = (ModelId, DeviceId)> {
        let models = (0..).map(ModelId).zip(&self.scenario().configuration.models);
        models.flat_map(|(id, model)| model.placements.iter().map(move |place| (id, place.device)))
    }

    /// An estimate as the faults of the scenario have it, rounded up.
    fn wrongly(&self, model: ModelId, device: DeviceId, truth: Bytes) -> Bytes {
        let faults = self.scenario().faults.iter().filter(|fault| fault.concerns(model, device));
        faults.fold(truth, |estimate, fault| {
            let FaultKind::WrongEstimate { factor } = fault.kind else { return estimate };
            let wrong = (u128::from(estimate.get()) * u128::from(factor.get())).div_ceil(1_000_000);
            Bytes::new(u64::try_from(wrong).unwrap_or(u64::MAX))
        })
    }
}
