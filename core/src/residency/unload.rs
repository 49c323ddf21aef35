//! Unloading what nobody uses.

use alloc::vec::Vec;

use crate::{Class, DeviceId, Effects, InstanceId, Scheduler, StopCause, Time};

impl Scheduler {
    /// Unloads the instances of a device that were not used for their model's `idle_ttl`.
    pub(crate) fn lapse_idle(&mut self, id: DeviceId, effects: &mut Effects) {
        let unused = self.devices[id.index()].instances.iter().copied();
        let unused: Vec<InstanceId> =
            unused.filter(|&one| self.unused_at(one).is_some_and(|at| at <= self.now)).collect();
        for one in unused {
            self.drain(one, StopCause::Idle, effects);
        }
    }

    /// When an instance will have been unused for too long, if nothing happens.
    fn unused_at(&self, id: InstanceId) -> Option<Time> {
        let instance = &self.instances[id];
        let model = self.configuration.model(instance.model)?;
        let ttl = model.idle_ttl.filter(|_| !model.pinned)?;
        let waits = || Class::ALL.into_iter().any(|class| self.head(instance, class).is_some());
        let idle = instance.slot.is_ready() && instance.slot.running().is_empty() && !waits();
        idle.then(|| instance.last_used.after(ttl))
    }

    pub(crate) fn idle_due(&self, id: DeviceId) -> Option<Time> {
        self.devices[id.index()].instances.iter().filter_map(|&one| self.unused_at(one)).min()
    }
}
