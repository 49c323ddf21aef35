//! A read-only picture for status pages. It is not journaled.

use alloc::vec::Vec;

use crate::{
    Bytes, Class, DeviceId, InstanceId, JobId, Mode, ModelId, MonitorHealth, PressureLevel, Scheduler, Span, Tier,
    Time, WaitReason,
    device::DeviceState,
    instance::Slot,
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
    /// Its memory.
    pub memory: MemoryView,
    /// Its instances.
    pub instances: Vec<InstanceView>,
}

/// The memory of a device as the scheduler's books have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryView {
    /// What may be used; `None`: nothing bounds it.
    pub budget: Option<Bytes>,
    /// What our own instances hold in every state, and what is awaited of those that are gone.
    pub booked: Bytes,
    /// What of that is about to become free.
    pub coming: Bytes,
    /// What other programs are believed to use.
    pub foreign: Bytes,
    /// What is promised to loads that wait for memory.
    pub owed: Bytes,
    /// When it was last read.
    pub read_at: Option<Time>,
    /// For how long the monitor has said nothing, once that is longer than `monitor_stale`. It may have nothing to say; it is
    /// asked when something is to be loaded.
    pub silent_for: Option<Span>,
    /// Whether the monitor answers when it is asked.
    pub monitor: MonitorHealth,
    /// How scarce unified memory is.
    pub pressure: PressureLevel,
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
    /// How dear it is.
    pub tier: Tier,
    /// The bytes it is believed to hold.
    pub booked: Bytes,
    /// What its eviction would cost: the time to load it again, by the demand for it.
    pub cost: Span,
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
        let instances = device.instances.iter().map(|&id| self.instance_view(id)).collect();
        let (mode, guard_next, turn) = (device.mode, device.guard_next, device.turn.map(|turn| turn.model));
        DeviceView { device: id, mode, guard_next, turn, memory: self.memory_view(id), instances }
    }

    fn memory_view(&self, id: DeviceId) -> MemoryView {
        let DeviceState { memory, pending, .. } = &self.devices[id.index()];
        MemoryView {
            budget: self.budget(id),
            booked: self.booked(id),
            coming: self.coming(id),
            foreign: memory.foreign,
            owed: pending.iter().fold(Bytes::ZERO, |sum, one| sum.plus(one.needs)),
            read_at: memory.read_at,
            silent_for: self.silent_for(id),
            monitor: memory.health,
            pressure: memory.pressure.level,
        }
    }

    fn instance_view(&self, id: InstanceId) -> InstanceView {
        let instance = &self.instances[id];
        let stage = match instance.slot {
            Slot::Loading { .. } => Stage::Loading,
            Slot::Ready { .. } => Stage::Ready,
            Slot::Draining { .. } => Stage::Draining,
            Slot::Stopping { .. } => Stage::Stopping,
        };
        let reload = self.load_time(instance.model, instance.device);
        InstanceView {
            instance: id,
            model: instance.model,
            stage,
            tier: self.tier(id),
            booked: instance.booked,
            cost: Scheduler::cost(reload, self.demand(instance.model)),
            running: instance.slot.running().len() as u32,
            free: instance.free(),
        }
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
