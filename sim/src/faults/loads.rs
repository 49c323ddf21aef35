//! Faults of loads.

use windtunnel_config::{Fault, FaultKind, Occurrence};
use windtunnel_core::{Bytes, DeviceId, LoadFailure, ModelId, Span, Time};

use super::Faults;
use crate::memory::{Claim, LoadEnd, LoadFate};

impl Faults {
    /// What becomes of a load that begins at `now`. Where several faults decide how it ends, the first of the file does.
    pub fn load(&mut self, now: Time, model: ModelId, device: DeviceId) -> LoadFate {
        let factor = |kind: &FaultKind| if let FaultKind::SlowLoad { factor } = *kind { Some(factor) } else { None };
        let silent = |kind: &FaultKind| (*kind == FaultKind::SilentOvercommit).then_some(Claim::Overcommitted);
        let factors = self.struck(now, model, device, factor);
        LoadFate {
            factor: factors.fold(1.0, |product, (factor, _)| product * f64::from(factor.get()) / 1e6),
            recorded: None,
            end: first(self.struck(now, model, device, end)).unwrap_or(LoadEnd::Natural),
            growth: self.growth_of_load(now, model, device),
            claim: first(self.struck(now, model, device, silent)).unwrap_or(Claim::Honest),
        }
    }

    /// What becomes of a process that is loaded when the run starts.
    pub fn resident(&mut self, model: ModelId, device: DeviceId) -> LoadFate {
        LoadFate { growth: self.growth_of_load(Time::ZERO, model, device), ..LoadFate::NATURAL }
    }

    /// By how much the loaded processes grow that a fault concerns whose moment has come, and over how long.
    pub fn growth(&mut self, now: Time) -> Option<(Fault, Bytes, Span)> {
        self.plagues.iter_mut().find_map(|plague| {
            let FaultKind::MemoryGrowth { bytes, over } = plague.fault.kind else { return None };
            plague.take_moment(now).then(|| (plague.fault.clone(), bytes, over))
        })
    }

    /// Memory that a process takes after its load; growth at given moments is not of that kind.
    fn growth_of_load(&mut self, now: Time, model: ModelId, device: DeviceId) -> Option<(Bytes, Span)> {
        let mut growing = self.plagues.iter_mut().filter(|plague| match plague.fault.when {
            Occurrence::Always | Occurrence::Probability(_) => true,
            Occurrence::At(_) | Occurrence::Rate(_) => false,
        });
        growing.find_map(|plague| {
            let FaultKind::MemoryGrowth { bytes, over } = plague.fault.kind else { return None };
            plague.strikes(now, model, device).map(|_| (bytes, over))
        })
    }
}

/// How a load ends that a fault of that kind strikes, where it says so.
fn end(kind: &FaultKind) -> Option<LoadEnd> {
    if let FaultKind::StalledLoad { lasts } = *kind {
        return Some(LoadEnd::Stalls(lasts));
    }
    let crashed = (*kind == FaultKind::FailedLoad).then_some(LoadFailure::Crashed);
    let cause = crashed.or((*kind == FaultKind::LoadOom).then_some(LoadFailure::OutOfMemory));
    cause.map(LoadEnd::Fails)
}

/// The first of those that strike. All of them are looked at, so that each counts its occasions.
fn first<T, D>(struck: impl Iterator<Item = (T, D)>) -> Option<T> {
    struck.fold(None, |first, (one, _)| first.or(Some(one)))
}
