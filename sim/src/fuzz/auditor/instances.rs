//! Instances: where each is in its life, what runs on it, and the least memory it can be booked with.

use windtunnel_core::{Bytes, Class, DeviceId, InstanceId, ModelId, Resident, Snapshot, Time};

use super::Breach;

/// Every instance of the run.
#[derive(Debug)]
pub struct Instances {
    all: Vec<Instance>,
}

/// What is known of an instance.
#[derive(Clone, Debug)]
pub struct Instance {
    pub model: ModelId,
    pub device: DeviceId,
    pub phase: Phase,
    /// Grants under way, by class.
    pub grants: [u32; 3],
    /// The least it can be booked with.
    pub least: Bytes,
    /// The end of its load, or the start or end of its last grant.
    pub used: Time,
}

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Loading,
    Ready,
    Draining,
    Stopping,
    Gone,
}

impl Instances {
    /// Those that are loaded at the start.
    pub fn new(residents: &[Resident]) -> Instances {
        let all = residents.iter().map(|resident| Instance {
            model: resident.model,
            device: resident.device,
            phase: Phase::Ready,
            grants: [0; 3],
            least: Bytes::ZERO,
            used: Time::ZERO,
        });
        Instances { all: all.collect() }
    }

    pub fn add(&mut self, id: InstanceId, model: ModelId, device: DeviceId, reserved: Bytes) -> Result<(), Breach> {
        if id.index() != self.all.len() {
            return Err(Breach::new(
                "instances are numbered in order",
                format!("{id} is loaded as number {}", self.all.len()),
            ));
        }
        let (phase, grants, used) = (Phase::Loading, [0; 3], Time::ZERO);
        self.all.push(Instance { model, device, phase, grants, least: reserved, used });
        Ok(())
    }

    pub fn get(&self, id: InstanceId) -> Result<&Instance, Breach> {
        self.all.get(id.index()).ok_or_else(|| unknown(id))
    }

    pub fn get_mut(&mut self, id: InstanceId) -> Result<&mut Instance, Breach> {
        self.all.get_mut(id.index()).ok_or_else(|| unknown(id))
    }

    /// Those whose process is not gone.
    pub fn live(&self) -> impl Iterator<Item = &Instance> {
        self.all.iter().filter(|one| one.phase != Phase::Gone)
    }

    pub fn exited(&mut self, id: InstanceId) {
        if let Some(instance) = self.all.get_mut(id.index()) {
            instance.phase = Phase::Gone;
        }
    }

    /// A reading may lower what a process is booked with.
    pub fn read(&mut self, snapshot: &Snapshot) {
        for process in &snapshot.processes {
            if let (Some(instance), Some(used)) = (self.all.get_mut(process.instance.index()), process.used)
                && instance.phase != Phase::Loading
            {
                instance.least = instance.least.min(used);
            }
        }
    }
}

impl Instance {
    pub fn running(&self) -> u32 {
        self.grants.iter().sum()
    }

    /// A load that is broken off is on its way out; a grant that is changes nothing.
    pub fn broken_off(&mut self) {
        if self.phase == Phase::Loading {
            self.phase = Phase::Draining;
        }
    }

    /// Whether a model is on its way or there, and not leaving.
    pub fn stays(&self) -> bool {
        matches!(self.phase, Phase::Loading | Phase::Ready)
    }

    pub fn serves_interactive(&self) -> bool {
        self.grants[Class::Interactive.index()] > 0
    }
}

fn unknown(id: InstanceId) -> Breach {
    Breach::new("instances are numbered in order", format!("{id} was never loaded"))
}
