//! Relief: what goes when memory runs out while models serve, or when the host says that it is scarce.

use crate::{
    DeviceId, Effect, Effects, InstanceId, Nonsense, Note, PressureLevel, Scheduler, Span, StopCause, Tier, Time,
    effect::AbortCause,
    instance::{Aborted, Leaving, Slot},
};

/// After memory ran out while models served, nothing more is unloaded for this long, and lower classes load nothing.
const AFTER_RUNNING_OUT: Span = Span::from_secs(30);
/// An instance loaded less than this before is taken to be the cause.
const JUST_LOADED: Span = Span::from_secs(60);
/// Under critical pressure one cold model goes every five seconds.
const UNDER_PRESSURE: Span = Span::from_secs(5);
/// After each of them lower classes load nothing for a minute, else they would load it straight back.
const AFTER_PRESSURE: Span = Span::from_secs(60);

impl Scheduler {
    /// A request on a device ran out of memory: the instance loaded last goes if that was within a minute, else the cheapest
    /// cold one, then an idle hot one.
    pub(crate) fn ran_out(&mut self, id: DeviceId, teller: InstanceId, effects: &mut Effects) {
        if id.index() >= self.devices.len() || !self.instances.was_handed_out(teller) {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchInstance });
        }
        if self.devices[id.index()].relief_next > self.now {
            return;
        }
        if self.break_off_relief(id, effects) {
            self.devices[id.index()].relief_next = self.now.after(AFTER_RUNNING_OUT);
            return;
        }
        let Some(victim) = self.cause_of_shortage(id).or_else(|| self.cheapest_spared(id, teller)) else { return };
        let until = self.now.after(AFTER_RUNNING_OUT);
        let device = &mut self.devices[id.index()];
        device.relief_next = until;
        device.loads_paused = device.loads_paused.max(until);
        let model = self.instances[victim].model;
        if let Some(needs) = self.needs_mut(model, id) {
            needs.measured = None;
        }
        self.store_profile(model, id, effects);
        self.drain(victim, StopCause::OutOfMemory, effects);
    }

    /// What was to go for want of memory and is still at work when requests run out again is broken off: whether there was
    /// anything.
    fn break_off_relief(&mut self, id: DeviceId, effects: &mut Effects) -> bool {
        let mut any = false;
        for &instance in &self.devices[id.index()].instances {
            let Slot::Draining { running, after: Leaving::Stop(StopCause::OutOfMemory) } =
                &mut self.instances[instance].slot
            else {
                continue;
            };
            for grant in running.iter_mut().filter(|grant| grant.aborted == Aborted::No) {
                grant.aborted = Aborted::Yes;
                any = true;
                effects.push(Effect::Abort { attempt: grant.attempt, instance, cause: AbortCause::OutOfMemory });
            }
        }
        any
    }

    fn ready_on(&self, id: DeviceId) -> impl Iterator<Item = InstanceId> {
        let instances = self.devices[id.index()].instances.iter().copied();
        instances.filter(|one| self.instances[*one].slot.is_ready())
    }

    fn cause_of_shortage(&self, id: DeviceId) -> Option<InstanceId> {
        let late = self.ready_on(id).filter(|one| {
            let instance = &self.instances[*one];
            instance.began.is_some() && self.now < instance.ready_at.after(JUST_LOADED)
        });
        late.max_by_key(|one| (self.instances[*one].ready_at, *one))
    }

    /// The request that ran out keeps its instance busy for a moment only.
    fn cheapest_spared(&self, id: DeviceId, teller: InstanceId) -> Option<InstanceId> {
        let may_go = self.ready_on(id).filter(|&one| match self.tier(one) {
            Tier::Cold => true,
            Tier::Hot => self.instances[one].slot.running().len() <= usize::from(one == teller),
            Tier::Pinned => false,
        });
        may_go.min_by_key(|&one| (self.tier(one), self.price_of(one), one))
    }

    fn price_of(&self, id: InstanceId) -> Span {
        let instance = &self.instances[id];
        Scheduler::cost(self.load_time(instance.model, instance.device), self.demand(instance.model))
    }

    /// Under critical pressure one cold model at a time is unloaded, whatever it was loaded for and when.
    pub(crate) fn relieve(&mut self, id: DeviceId, effects: &mut Effects) {
        let device = &self.devices[id.index()];
        if device.memory.pressure.level < PressureLevel::Critical || device.relief_next > self.now {
            return;
        }
        let cold = self.ready_on(id).filter(|&one| self.tier(one) == Tier::Cold);
        let Some(victim) = cold.min_by_key(|&one| (self.price_of(one), one)) else { return };
        let (next, paused) = (self.now.after(UNDER_PRESSURE), self.now.after(AFTER_PRESSURE));
        let device = &mut self.devices[id.index()];
        device.relief_next = next;
        device.loads_paused = device.loads_paused.max(paused);
        self.drain(victim, StopCause::Pressure, effects);
    }

    /// When a device under critical pressure lets the next model go.
    pub(crate) fn relief_due(&self, id: DeviceId) -> Option<Time> {
        let device = &self.devices[id.index()];
        let pressed = device.memory.pressure.level == PressureLevel::Critical;
        let any = pressed && self.ready_on(id).any(|one| self.tier(one) == Tier::Cold);
        any.then_some(device.relief_next).filter(|&at| at > self.now)
    }
}
