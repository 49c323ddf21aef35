//! The life of instances: loading, ready, draining, stopping, gone. An instance with steps in flight is never stopped: it
//! drains first, and draining is final.

use alloc::vec::Vec;

use crate::{
    Attempt, Bytes, Capacity, Class, DeviceId, Effect, Effects, Estimate, InstanceId, ModelId, Nonsense, Note, Request,
    Scheduler, ServiceTimes, StopCause, Time,
    instance::{Instance, Leaving, Slot},
    residency::{FailedLoad, Guarded, Load},
    scheduler::{ModelState, may_hold},
};

impl Scheduler {
    /// Makes room for every configured model that is not known yet, each with a target of its own.
    pub(crate) fn add_models(&mut self, estimates: &[Estimate]) {
        for number in self.models.len()..self.configuration.models.len() {
            let model = ModelId(number as u32);
            self.models.push(ModelState::default());
            self.add_target(alloc::vec![model]);
        }
        estimates.iter().for_each(|estimate| self.learn_estimate(estimate));
    }

    /// A model that is loaded before the run begins.
    pub(crate) fn admit_resident(&mut self, model: ModelId, device: DeviceId) -> Option<InstanceId> {
        let instance = self.add_instance(model, device, Slot::Ready { running: Vec::new() })?;
        let bytes = self.resident_bytes(model, device);
        self.book(instance, bytes);
        Some(instance)
    }

    pub(crate) fn add_instance(&mut self, model: ModelId, device: DeviceId, slot: Slot) -> Option<InstanceId> {
        let (capacity, times) = self.placement(model, device)?;
        let factor = self.factor(model, device);
        let prediction = self.configuration.models[model.index()].prediction;
        let id = self.instances.add(Instance {
            model,
            device,
            slot,
            capacity,
            times,
            factor,
            prediction,
            lines: Vec::new(),
            held: None,
            booked: Bytes::ZERO,
            loaded: None,
            lower: None,
            loaded_for: Class::Batch,
            guarded: Guarded::No,
            began: None,
            ready_at: Time::ZERO,
            last_used: Time::ZERO,
            last_background: None,
            turn_since: None,
        });
        self.devices[device.index()].instances.push(id);
        self.enlist(model, device, id);
        Some(id)
    }

    fn placement(&self, model: ModelId, device: DeviceId) -> Option<(Capacity, ServiceTimes)> {
        let known = self.configuration.model(model)?;
        let times = known.predicted_on(device)?;
        (device.index() < self.devices.len()).then_some((known.capacity, times))
    }

    pub(crate) fn operate(&mut self, request: Request, effects: &mut Effects) {
        match request {
            Request::Load { model, device } => self.load(model, device, effects),
            Request::Reset { model } => self.reset_breaker(model, effects),
            Request::Unload { instance } => {
                self.manage_models();
                self.drain(instance, StopCause::Operator, effects);
            }
            Request::Renew { instance } => {
                self.manage_models();
                self.drain(instance, StopCause::Changed, effects);
            }
            Request::TurnAway { job } => self.turn_away(job, effects),
        }
    }

    /// An operator's load reserves its memory as any other, but asks nobody whether there is any.
    fn load(&mut self, model: ModelId, device: DeviceId, effects: &mut Effects) {
        let known = self.models.get(model.index()).is_some_and(|state| !state.removed);
        if !known || self.placement(model, device).is_none() {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchPlacement });
        }
        if self.has_instance(model, device) {
            return effects.note(Note::Ignored { cause: Nonsense::AlreadyThere });
        }
        self.manage_models();
        self.begin_load(Load { model, device, class: Class::Interactive, guarded: Guarded::No }, effects);
    }

    /// Lets an instance finish what it has, then stops it. Jobs that were routed to it find new places at once.
    pub(crate) fn drain(&mut self, id: InstanceId, cause: StopCause, effects: &mut Effects) {
        let Some(instance) = self.instances.get_mut(id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchInstance });
        };
        match &mut instance.slot {
            Slot::Loading { then, .. } => *then = Some(cause),
            Slot::Ready { running } => {
                let running = core::mem::take(running);
                instance.slot = Slot::Draining { running, after: Leaving::Stop(cause) };
                self.leave_service(id);
                effects.note(Note::Draining { instance: id, cause });
                self.finish_draining(id, effects);
                self.settle_all(effects);
            }
            Slot::Draining { .. } | Slot::Stopping { .. } => {}
        }
    }

    /// Takes an instance out of every list of servers.
    fn leave_service(&mut self, id: InstanceId) {
        self.instances[id].held = None;
        let model = self.instances[id].model;
        self.connect_model(model);
        self.reroute(id);
    }

    /// Offers everything to everybody: after a change of who is there, which no single line or device bounds.
    pub(crate) fn settle_all(&mut self, effects: &mut Effects) {
        for device in (0..self.devices.len() as u32).map(DeviceId) {
            self.offer_device(device, effects);
            self.settle_device(device, effects);
        }
    }

    /// Stops a draining instance that has nothing left to finish; whether it was draining.
    #[inline]
    pub(crate) fn finish_draining(&mut self, id: InstanceId, effects: &mut Effects) -> bool {
        let Slot::Draining { running, after } = &self.instances[id].slot else { return false };
        if !running.is_empty() {
            return true;
        }
        match *after {
            Leaving::Exited => self.gone(id, effects),
            Leaving::Stop(cause) => self.stop(id, cause, effects),
        }
        true
    }

    fn stop(&mut self, id: InstanceId, cause: StopCause, effects: &mut Effects) {
        self.audit_stop(id);
        let attempt = self.attempt();
        self.instances[id].slot = Slot::Stopping { attempt };
        effects.push(Effect::Stop { attempt, instance: id, cause });
    }

    /// The process of an instance is gone, and it is forgotten. Its memory is awaited under its id alone, and lines and reasons
    /// that name the id find nobody.
    pub(crate) fn gone(&mut self, id: InstanceId, effects: &mut Effects) {
        self.await_release(id, effects);
        let instance = &self.instances[id];
        let (model, device, may_have_held) = (instance.model, instance.device, may_hold(instance.capacity));
        self.devices[device.index()].instances.retain(|&other| other != id);
        self.models[model.index()].instances.retain(|&other| other != id);
        self.instances.forget(id);
        if may_have_held {
            self.look_for_holds();
            self.look_for_short_ways();
        }
    }

    /// Enters an instance among those of its model.
    fn enlist(&mut self, model: ModelId, device: DeviceId, id: InstanceId) {
        let Some(state) = self.models.get_mut(model.index()) else { return };
        let place = |other: &InstanceId| (self.instances[*other].device, *other);
        let at = state.instances.partition_point(|other| place(other) < (device, id));
        state.instances.insert(at, id);
    }

    /// Makes the lists of instances by model anew, which a checkpoint leaves out.
    pub(crate) fn enlist_all(&mut self) {
        self.models.iter_mut().for_each(|model| model.instances.clear());
        for device in (0..self.devices.len() as u32).map(DeviceId) {
            for id in self.devices[device.index()].instances.clone() {
                if let Some(model) = self.instances.get(id).map(|instance| instance.model) {
                    self.enlist(model, device, id);
                }
            }
        }
    }

    pub(crate) fn exited(&mut self, id: InstanceId, effects: &mut Effects) {
        let Some(instance) = self.instances.get_mut(id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchInstance });
        };
        match &mut instance.slot {
            Slot::Ready { running } | Slot::Draining { running, .. } => {
                let running = core::mem::take(running);
                instance.slot = Slot::Draining { running, after: Leaving::Exited };
                let model = instance.model;
                self.manage_models();
                self.count_failure(model, FailedLoad::No, effects);
                self.leave_service(id);
                self.finish_draining(id, effects);
                self.settle_all(effects);
            }
            Slot::Loading { .. } | Slot::Stopping { .. } => {}
        }
    }

    pub(crate) fn stop_finished(&mut self, attempt: Attempt, id: InstanceId, effects: &mut Effects) {
        let stopping = self.instance(id).is_some_and(|instance| match instance.slot {
            Slot::Stopping { attempt: own } => own == attempt,
            Slot::Loading { .. } | Slot::Ready { .. } | Slot::Draining { .. } => false,
        });
        if stopping {
            self.gone(id, effects);
        } else {
            effects.note(Note::Ignored { cause: Nonsense::NoSuchAttempt });
        }
    }
}
