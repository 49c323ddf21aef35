//! What is due when. Every due time but the expiries is read off devices and instances, so no stale timer exists.

use crate::{DeviceId, Effects, Scheduler, Time, residency::Residency, scheduler::Holding};

impl Scheduler {
    /// Acts on everything that was due by `until`.
    pub(crate) fn lapse(&mut self, until: Time, effects: &mut Effects) {
        self.now = self.now.max(until);
        self.lapsed = Some(self.now);
        self.lapsing = true;
        self.expire(until, effects);
        if self.residency == Residency::Managed {
            self.lapse_memory(effects);
        }
        for id in (0..self.devices.len() as u32).map(DeviceId) {
            self.lapse_turn(id, effects);
            self.lapse_holds(id);
            self.update_mode(id, effects);
            self.offer_device(id, effects);
            self.settle_device(id, effects);
        }
        self.lapsing = false;
    }

    /// Acts on what is due of memory and residency.
    fn lapse_memory(&mut self, effects: &mut Effects) {
        self.lapse_breakers(effects);
        for id in (0..self.devices.len() as u32).map(DeviceId) {
            self.lapse_releases(id, effects);
            self.lapse_freeze(id, effects);
            self.lapse_pressure(id, effects);
            self.shrink(id, effects);
            self.relieve(id, effects);
            self.lapse_idle(id, effects);
        }
    }

    fn memory_due(&self) -> Option<Time> {
        let mut due = earlier(self.replan_at, self.breaker_due());
        for id in (0..self.devices.len() as u32).map(DeviceId) {
            let own = [
                self.release_due(id),
                self.freeze_due(id),
                self.pressure_due(id),
                self.shrinks_at(id),
                self.relief_due(id),
                self.idle_due(id),
            ];
            due = own.into_iter().fold(due, earlier);
        }
        due
    }

    fn lapse_holds(&mut self, id: DeviceId) {
        for one in &self.devices[id.index()].instances {
            let held = &mut self.instances[*one].held;
            *held = held.filter(|&until| until > self.now);
        }
    }

    #[inline]
    pub(crate) fn next_wake(&self) -> Option<Time> {
        if self.residency == Residency::Managed || self.holding == Holding::Yes || self.lower_queued() > 0 {
            return self.earliest_due();
        }
        let wake = self.expiry.first();
        if self.unengaged == 0 { wake } else { earlier(wake, self.disengaged_due()) }
    }

    /// What is due first where anything may be.
    #[inline(never)]
    fn earliest_due(&self) -> Option<Time> {
        let mut wake = self.expiry.first();
        if self.residency == Residency::Managed {
            wake = earlier(wake, self.memory_due());
        }
        let lower = self.lower_queued() > 0;
        if !lower && self.holding == Holding::No {
            return earlier(wake, self.disengaged_due());
        }
        for (number, device) in self.devices.iter().enumerate() {
            let id = DeviceId(number as u32);
            wake = earlier(wake, self.window_end(id));
            wake = earlier(wake, device.turn.map(|turn| turn.until));
            if lower {
                wake = earlier(wake, self.guard_due(id));
                wake = earlier(wake, self.reserve_ends(id));
            }
            if self.holding == Holding::Yes {
                let held = device.instances.iter().filter_map(|one| self.instances[*one].held);
                wake = earlier(wake, held.min());
            }
        }
        wake
    }

    /// When the mode or turn of a device ends on which no interactive work runs.
    fn disengaged_due(&self) -> Option<Time> {
        let devices = self.devices.iter().enumerate().filter(|(_, device)| !device.is_engaged());
        devices.fold(None, |due, (number, device)| {
            let due = earlier(due, self.window_end(DeviceId(number as u32)));
            earlier(due, device.turn.map(|turn| turn.until))
        })
    }

    /// Whether what is due then has not been acted on: it lies ahead, or the timer of this very moment is yet to come.
    pub(crate) fn is_to_come(&self, due: Time) -> bool {
        due > self.now || (due == self.now && self.lapsed != Some(self.now))
    }

    /// When a model of the device cools down, and its reserved slots are free for lower classes. One that cools down at this
    /// very moment is hot no more, but until the timer nobody has been offered its slots.
    fn reserve_ends(&self, id: DeviceId) -> Option<Time> {
        let instances = self.devices[id.index()].instances.iter().map(|one| &self.instances[*one]);
        let kept = instances.filter(|one| self.kept_while_hot(one) > 0 && one.free() > 0);
        let ends = kept.filter_map(|one| self.models[one.model.index()].last_interactive);
        ends.map(|last| last.after(self.policy().hot_ttl)).filter(|&end| self.is_to_come(end)).min()
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
