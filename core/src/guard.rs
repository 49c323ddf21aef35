//! The guard: in interactive mode a starved job of a lower class gets a bounded share of the device's time.

use crate::{
    Class, DeviceId, Effects, InstanceId, JobId, Mode, Right, Scheduler, Time, instance::Instance, queue::LineId,
};

/// The classes that can starve.
const LOWER: [Class; 2] = [Class::Background, Class::Batch];

/// A head of a lower class on a device.
#[derive(Clone, Copy)]
struct Head {
    progress: Time,
    job: JobId,
    class: Class,
    line: LineId,
    instance: InstanceId,
}

impl Scheduler {
    /// Gives starved heads grants, the longest without progress first, while the share allows.
    pub(crate) fn guard(&mut self, device: DeviceId, effects: &mut Effects) {
        while self.guard_open(device)
            && let Some(head) = self.starved_head(device)
        {
            self.grant(head.instance, head.class, Right::Guard, head.line, effects);
        }
    }

    fn guard_open(&self, id: DeviceId) -> bool {
        let (device, policy) = (&self.devices[id.index()], self.policy());
        device.mode == Mode::Interactive
            && !policy.background_max_starvation.is_zero()
            && device.guards < policy.guard_parallel
            && self.now >= device.guard_next
    }

    /// The starved head with the oldest progress that can run now, over both lower classes.
    fn starved_head(&self, device: DeviceId) -> Option<Head> {
        let patience = self.policy().background_max_starvation;
        let starved = self.heads(device).filter(|head| self.now >= head.progress.after(patience));
        let able = starved.filter(|head| self.can_run(&self.instances[head.instance], head.class));
        able.min_by_key(|head| (head.progress, head.job, head.instance))
    }

    /// Whether an instance has room for a guard grant and none under way: they run side by side on different instances. If an
    /// interactive job waits for it all the same, its batch is held.
    fn can_run(&self, instance: &Instance, class: Class) -> bool {
        let guarded = instance.slot.running().iter().any(|grant| grant.right == Right::Guard);
        !guarded && self.has_room(instance, class) && self.head(instance, Class::Interactive).is_none()
    }

    /// The heads of the lower classes' lines on a device that have no step running, once for each instance that serves them.
    fn heads(&self, device: DeviceId) -> impl Iterator<Item = Head> {
        self.devices[device.index()].instances.iter().flat_map(move |&instance| {
            let lines = self.instances[instance].lines.iter();
            lines
                .flat_map(move |&line| LOWER.into_iter().filter_map(move |class| self.idle_head(line, class, instance)))
        })
    }

    fn idle_head(&self, line: LineId, class: Class, instance: InstanceId) -> Option<Head> {
        let job = self.lines[line.index()].class(class).first()?;
        let data = self.jobs.get(job.0).filter(|data| data.running == 0)?;
        Some(Head { progress: data.progress, job, class, line, instance })
    }

    /// When the guard may next have something to do on a device.
    pub(crate) fn guard_due(&self, id: DeviceId) -> Option<Time> {
        let (device, patience) = (&self.devices[id.index()], self.policy().background_max_starvation);
        if device.mode != Mode::Interactive || patience.is_zero() || device.guards >= self.policy().guard_parallel {
            return None;
        }
        let heads = self.heads(id).map(|head| head.progress.after(patience).max(device.guard_next));
        heads.filter(|&due| self.is_to_come(due)).min()
    }

    /// When the guard may come to a waiting job at the earliest; `None` under strict exclusivity.
    pub(crate) fn guard_at(&self, job: JobId, device: DeviceId) -> Option<Time> {
        let patience = self.policy().background_max_starvation;
        let data = self.jobs.get(job.0)?;
        let due = data.progress.after(patience).max(self.devices[device.index()].guard_next);
        (!patience.is_zero()).then_some(due)
    }
}
