//! Which device of a scenario is which of a recording.
//!
//! Names decide. A scenario numbers the cards of a group, so a recorded device whose name has no number, such as a daemon's
//! `cpu`, is the first card of the group of that name.

use windtunnel_core::{Configuration, DeviceId};

/// The devices that a recording and a scenario share.
#[derive(Clone, Debug)]
pub struct SameDevices {
    /// By recorded device: the scenario's.
    ours: Vec<Option<usize>>,
}

impl SameDevices {
    /// Those of `recorded` among those of `ours`.
    pub fn of(recorded: &Configuration, ours: &Configuration) -> SameDevices {
        let named = |name: &str| ours.devices.iter().position(|other| other.name == name);
        let exact: Vec<Option<usize>> = recorded.devices.iter().map(|device| named(&device.name)).collect();
        let first = |name: &str| named(&format!("{name}0")).filter(|at| !exact.contains(&Some(*at)));
        let matched = exact.iter().zip(&recorded.devices).map(|(found, device)| found.or_else(|| first(&device.name)));
        SameDevices { ours: matched.collect() }
    }

    /// The scenario's device that `recorded` is.
    pub fn here(&self, recorded: DeviceId) -> Option<DeviceId> {
        self.ours.get(recorded.index()).copied().flatten().map(|at| DeviceId(at as u32))
    }

    /// The recorded device that the scenario's is.
    pub fn recorded(&self, here: DeviceId) -> Option<DeviceId> {
        self.ours.iter().position(|at| *at == Some(here.index())).map(|at| DeviceId(at as u32))
    }
}
