//! Why a job waits.

use crate::{
    Class, InstanceId, JobId, Mode, Scheduler, WaitReason,
    instance::{Instance, Slot},
    queue::{Line, LineId},
};

impl Scheduler {
    /// Why a job of this class waits in a line.
    #[inline]
    pub(crate) fn reason(&self, id: JobId, class: Class, line: LineId) -> WaitReason {
        let line = &self.lines[line.index()];
        let queue = line.class(class);
        if queue.first() != Some(id) {
            return WaitReason::Behind { jobs: queue.len().saturating_sub(1) as u32 };
        }
        self.head_reason(id, class, line)
    }

    fn head_reason(&self, id: JobId, class: Class, line: &Line) -> WaitReason {
        let servers = self.servers(line);
        let planned = self.targets[line.target as usize].why[class.index()];
        if !servers.as_slice().is_empty() && !self.any_open(line) {
            return planned.unwrap_or(WaitReason::SlotsBusy);
        }
        let ready = servers.as_slice().iter().map(|id| &self.instances[*id]);
        let Some(roomy) = ready.clone().find(|instance| instance.free() > 0) else {
            let fallback = if ready.count() > 0 { WaitReason::SlotsBusy } else { self.absence(line) };
            return planned.unwrap_or(fallback);
        };
        let able = |instance: &Instance| self.suits(line, class, instance.model);
        if let Some(reason) = planned.filter(|_| !ready.clone().any(able)) {
            return reason;
        }
        let kept = ready.clone().find(|instance| self.has_room(instance, class));
        self.open_reason(id, class, kept, roomy)
    }

    /// Why a head waits although an instance of its line has a free slot.
    fn open_reason(&self, id: JobId, class: Class, kept: Option<&Instance>, roomy: &Instance) -> WaitReason {
        let Some(instance) = kept else { return WaitReason::SlotsReserved };
        let device = instance.device;
        if let Some(until) = instance.held.or(roomy.held) {
            return WaitReason::BatchHeld { until };
        }
        match self.devices[device.index()].mode {
            Mode::Interactive if class != Class::Interactive => {
                WaitReason::InteractiveMode { device, guard_at: self.guard_at(id, device) }
            }
            Mode::Interactive | Mode::Idle if class == Class::Interactive => WaitReason::SlotsBusy,
            Mode::Interactive | Mode::Idle if self.held_for_load(instance, class, id) => {
                WaitReason::LoadFirst { device }
            }
            Mode::Interactive | Mode::Idle => WaitReason::HigherClass { device },
        }
    }

    /// Why no instance serves a line.
    fn absence(&self, line: &Line) -> WaitReason {
        let variants = &self.targets[line.target as usize].variants;
        let mut instances = variants.iter().flat_map(|&model| self.instances_of(model));
        instances.find_map(|id| self.on_its_way(id)).unwrap_or(WaitReason::NotLoaded)
    }

    fn on_its_way(&self, instance: InstanceId) -> Option<WaitReason> {
        match self.instances[instance].slot {
            Slot::Loading { .. } => Some(WaitReason::Loading { instance }),
            Slot::Draining { .. } | Slot::Stopping { .. } => Some(WaitReason::Draining { instance }),
            Slot::Ready { .. } => None,
        }
    }
}
