//! Faults of a device's memory and of who reads it.

use windtunnel_config::{FaultKind, MonitorTrouble};
use windtunnel_core::{Bytes, DeviceId, PressureLevel};

use super::{Faults, Plague, Window};
use crate::{
    memory::Curve,
    random::{Purpose, Stream},
};

/// A monitor that misbehaves for stretches of time.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// How.
    pub kind: MonitorTrouble,
    /// When.
    pub window: Window,
    /// Where random figures come from.
    pub stream: Stream,
}

impl Faults {
    /// What others use of `device`.
    pub fn foreign(&self, device: DeviceId) -> Vec<Curve<Bytes>> {
        let curve = |plague: &Plague| {
            let FaultKind::ForeignMemory { curve } = &plague.fault.kind else { return None };
            Some(Curve::new(curve))
        };
        self.at(device).filter_map(curve).collect()
    }

    /// The pressure that `device` reports, where a fault says it.
    pub fn pressure(&self, device: DeviceId) -> Option<Curve<PressureLevel>> {
        self.at(device).find_map(|plague| {
            let FaultKind::Pressure { curve } = &plague.fault.kind else { return None };
            Some(Curve::new(curve))
        })
    }

    /// How and when the monitor of `device` misbehaves.
    pub fn troubles(&self, device: DeviceId) -> Vec<Trouble> {
        let trouble = |plague: &Plague| {
            let FaultKind::Monitor { trouble: kind, lasts } = plague.fault.kind else { return None };
            let window = Window::new(&plague.fault, lasts, plague.seed.stream(Purpose::Moments));
            let stream = plague.seed.of_occasion(u64::from(device.0)).stream(Purpose::Readings);
            Some(Trouble { kind, window, stream })
        };
        self.at(device).filter_map(trouble).collect()
    }

    /// Whether a fault takes memory of `device`, so that there is something to see.
    pub fn change_memory(&self, device: DeviceId) -> bool {
        self.at(device)
            .any(|plague| matches!(plague.fault.kind, FaultKind::ForeignMemory { .. } | FaultKind::MemoryGrowth { .. }))
    }

    fn at(&self, device: DeviceId) -> impl Iterator<Item = &Plague> {
        self.plagues.iter().filter(move |plague| plague.fault.reaches(device))
    }
}
