//! Whether a lower class may load anything on a device now.

use crate::{
    Class, DeviceId, JobId, Mode, PressureLevel, Scheduler, Time, WaitReason,
    residency::{pending::Guarded, plan::Wanting},
};

impl Scheduler {
    /// On whose account a class may load on a device; otherwise why not.
    pub(crate) fn may_load(&mut self, id: DeviceId, by: &Wanting) -> Result<Guarded, WaitReason> {
        if by.class == Class::Interactive {
            return Ok(Guarded::No);
        }
        let device = &self.devices[id.index()];
        if device.interactive_load_waits {
            return Err(WaitReason::InteractiveLoadFirst { device: id });
        }
        if device.memory.pressure.level >= PressureLevel::Warn {
            return Err(WaitReason::Pressure { device: id, level: device.memory.pressure.level });
        }
        if device.loads_paused > self.now {
            let until = device.loads_paused;
            self.wake_by(until);
            return Err(WaitReason::LoadsPaused { device: id, until });
        }
        match device.mode {
            Mode::Idle => Ok(Guarded::No),
            Mode::Interactive => self.guard_may_load(id, by),
        }
    }

    /// In interactive mode lower classes load only through the guard, one load at a time.
    fn guard_may_load(&mut self, id: DeviceId, by: &Wanting) -> Result<Guarded, WaitReason> {
        let guard_at = self.guard_at(by.job, id);
        let closed = WaitReason::InteractiveMode { device: id, guard_at };
        let Some(at) = guard_at else { return Err(closed) };
        if at > self.now {
            self.wake_by(at);
            return Err(closed);
        }
        if self.guard_loads(id, by) { Err(closed) } else { Ok(Guarded::Yes) }
    }

    /// Whether the guard has a load under way on the device that is not for this one.
    fn guard_loads(&self, id: DeviceId, by: &Wanting) -> bool {
        let device = &self.devices[id.index()];
        let waits = device.pending.iter().any(|one| one.guarded == Guarded::Yes && !by.models.contains(&one.model));
        waits || self.sums(id).guarded == Guarded::Yes
    }

    /// Something will be decided anew at `at`.
    pub(crate) fn wake_by(&mut self, at: Time) {
        if at > self.now && at < Time::MAX {
            self.replan_at = Some(self.replan_at.map_or(at, |known| known.min(at)));
        }
    }

    /// Whether a lower class's step that takes until `end` would outlast a load that interactive work waits for on a device.
    pub(crate) fn outlasts_load(&self, id: DeviceId, class: Class, end: Time) -> bool {
        let Some(load) = self.devices[id.index()].interactive_load else { return false };
        class != Class::Interactive && (self.policy().background_max_starvation.is_zero() || end > load)
    }

    /// Whether the head of a class would, if it started on an instance now.
    pub(crate) fn held_for_load(&self, instance: &crate::instance::Instance, class: Class, head: JobId) -> bool {
        if self.devices[instance.device.index()].interactive_load.is_none() || class == Class::Interactive {
            return false;
        }
        let Some(job) = self.jobs.get(head.0) else { return false };
        let time = self.step_time(instance, job, job.weight_of(job.next_step().unwrap_or(0)));
        self.outlasts_load(instance.device, class, self.now.after(time))
    }
}
