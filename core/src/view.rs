//! A read-only picture for status pages. It is not journaled.

use alloc::vec::Vec;

use crate::{
    Class, DeviceId, InstanceId, JobId, Mode, ModelId, Scheduler, Span, Time, WaitReason,
    instance::{Instance, Slot},
    queue::{Line, LineId},
};

/// What the scheduler knows, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// As of when.
    pub now: Time,
    /// Every device.
    pub devices: Vec<DeviceView>,
    /// Every queue in which jobs wait.
    pub queues: Vec<QueueView>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceView {
    /// Which.
    pub device: DeviceId,
    /// Its mode.
    pub mode: Mode,
    /// When the guard may next start a grant.
    pub guard_next: Time,
    /// The model that has a batch turn.
    pub turn: Option<ModelId>,
    /// Its instances.
    pub instances: Vec<InstanceView>,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceView {
    /// Which.
    pub instance: InstanceId,
    /// Its model.
    pub model: ModelId,
    /// Where it is in its life.
    pub stage: Stage,
    /// Grants under way.
    pub running: u32,
    /// Grants it could take.
    pub free: u32,
}

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its process starts.
    Loading,
    /// It takes work.
    Ready,
    /// It takes no more work.
    Draining,
    /// Its process ends.
    Stopping,
    /// Its process is gone.
    Gone,
}

/// The jobs of a class that wait in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// The models that could serve them, best first.
    pub variants: Vec<ModelId>,
    /// The instance they were routed to, where they were.
    pub bound_to: Option<InstanceId>,
    /// Their class.
    pub class: Class,
    /// How many.
    pub jobs: usize,
    /// Their inputs.
    pub weight: u64,
    /// The first in order.
    pub head: JobId,
    /// How long the head has been without progress.
    pub without_progress: Span,
    /// Why it waits.
    pub reason: WaitReason,
}

impl Scheduler {
    /// A picture of the moment.
    pub fn view(&self) -> View {
        let devices = (0..self.devices.len() as u32).map(|number| self.device_view(DeviceId(number))).collect();
        let lines = self.lines.iter().enumerate();
        let queues = lines.flat_map(|(number, line)| {
            Class::ALL.into_iter().filter_map(move |class| self.queue_view(LineId(number as u32), line, class))
        });
        View { now: self.now, devices, queues: queues.collect() }
    }

    fn device_view(&self, id: DeviceId) -> DeviceView {
        let device = &self.devices[id.index()];
        let instances = device.instances.iter().map(|&id| instance_view(id, &self.instances[id.index()])).collect();
        let (mode, guard_next, turn) = (device.mode, device.guard_next, device.turn.map(|turn| turn.model));
        DeviceView { device: id, mode, guard_next, turn, instances }
    }

    fn queue_view(&self, id: LineId, line: &Line, class: Class) -> Option<QueueView> {
        let queue = line.class(class);
        let head = queue.first()?;
        let progress = self.jobs.get(head.0)?.progress;
        Some(QueueView {
            variants: self.targets[line.target as usize].variants.clone(),
            bound_to: match line.scope {
                crate::queue::Scope::Shared => None,
                crate::queue::Scope::Instance(instance) => Some(instance),
            },
            class,
            jobs: queue.len(),
            weight: queue.weight(),
            head,
            without_progress: self.now.since(progress),
            reason: self.reason(head, class, id),
        })
    }
}

fn instance_view(id: InstanceId, instance: &Instance) -> InstanceView {
    let stage = match instance.slot {
        Slot::Loading { .. } => Stage::Loading,
        Slot::Ready { .. } => Stage::Ready,
        Slot::Draining { .. } => Stage::Draining,
        Slot::Stopping { .. } => Stage::Stopping,
        Slot::Gone => Stage::Gone,
    };
    let running = instance.slot.running().len() as u32;
    InstanceView { instance: id, model: instance.model, stage, running, free: instance.free() }
}
