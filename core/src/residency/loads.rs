//! Loads: how they begin, and what their end means.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{
    breaker::{Breaker, FailedLoad},
    pending::Guarded,
};
use crate::{
    Attempt, Bytes, Class, DeviceId, Effect, Effects, InstanceId, LoadFailure, ModelId, Nonsense, Note, Scheduler,
    Span, StopCause, Time, instance::Slot,
};

/// So many loads of one model within this time are thrashing.
const THRASH: usize = 6;
const WITHIN: Span = Span::from_secs(300);
/// Lower classes begin no load for so long after the second that was broken off for interactive work, doubled for each that
/// follows: what they free may come back so late that the one it was wanted for has to wait again, and they must not take it
/// then every time.
const REST_FIRST: Span = Span::from_secs(1);
const REST_MOST: Span = Span::from_secs(300);

/// When a model was loaded lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Loads {
    began: Vec<Time>,
    /// Whether it has been loaded at the start of the run.
    pub preloaded: bool,
    /// Whether the last load that ran out of memory was tried again.
    pub retried: bool,
}

/// A load that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub model: ModelId,
    pub device: DeviceId,
    pub class: Class,
    pub guarded: Guarded,
}

impl Scheduler {
    /// Whether as many loads are under way on a device as may be.
    pub(crate) fn loads_are_full(&self, id: DeviceId) -> bool {
        let instances = self.devices[id.index()].instances.iter();
        let loading = instances.filter(|one| matches!(self.instances[**one].slot, Slot::Loading { .. })).count();
        loading >= self.configuration.devices[id.index()].parallel_loads.max(1) as usize
    }

    /// Begins a load and reserves its memory.
    pub(crate) fn begin_load(&mut self, load: Load, effects: &mut Effects) -> Option<InstanceId> {
        let Load { model, device, class, guarded } = load;
        let attempt = self.attempt();
        let books = self.close_books();
        let expected = self.now.after(self.load_time(model, device));
        let instance = self.add_instance(model, device, Slot::Loading { attempt, expected, then: None })?;
        let reservation = self.need(model, device);
        self.book(instance, reservation);
        let entry = &mut self.instances[instance];
        (entry.loaded_for, entry.guarded, entry.began) = (class, guarded, Some(self.now));
        self.forget_pending(device, model);
        self.count_load(model, effects);
        effects.push(Effect::Load { attempt, instance, model, device, reservation });
        self.reopen_books(books);
        Some(instance)
    }

    fn count_load(&mut self, model: ModelId, effects: &mut Effects) {
        let now = self.now;
        let loads = &mut self.models[model.index()].loads;
        loads.began.retain(|&at| now < at.after(WITHIN));
        loads.began.push(now);
        if loads.began.len() >= THRASH {
            effects.note(Note::Thrash { model, loads: loads.began.len() as u32 });
        }
    }

    pub(crate) fn load_finished(
        &mut self,
        attempt: Attempt,
        id: InstanceId,
        footprint: Option<Bytes>,
        effects: &mut Effects,
    ) {
        let Some(then) = self.loading(attempt, id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchAttempt });
        };
        let instance = &mut self.instances[id];
        let (model, device, began) = (instance.model, instance.device, instance.began);
        instance.slot = Slot::Ready { running: Vec::new() };
        (instance.ready_at, instance.last_used) = (self.now, self.now);
        self.models[model.index()].loads.retried = false;
        self.devices[device.index()].broken_off = 0;
        let took = self.now.since(began.unwrap_or(self.now));
        if let Some(needs) = self.needs_mut(model, device) {
            needs.load_time = took;
        }
        if let Some(bytes) = footprint {
            self.instances[id].loaded = Some(bytes);
            self.book(id, bytes);
            self.measured(id, bytes, effects);
        }
        self.close_breaker(model, effects);
        self.ask(device, effects);
        if let Some(cause) = then {
            return self.drain(id, cause, effects);
        }
        self.connect_model(model);
        self.settle_all(effects);
    }

    pub(crate) fn load_failed(&mut self, attempt: Attempt, id: InstanceId, cause: LoadFailure, effects: &mut Effects) {
        let Some(then) = self.loading(attempt, id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchAttempt });
        };
        let instance = &self.instances[id];
        let (model, device, tried, class) = (instance.model, instance.device, instance.booked, instance.loaded_for);
        self.gone(id, effects);
        match cause {
            LoadFailure::Stopped if then == Some(StopCause::Evicted) && class != Class::Interactive => {
                self.rest_from_loads(device);
            }
            LoadFailure::Stopped => {}
            LoadFailure::OutOfMemory => self.load_ran_out(model, device, tried, effects),
            LoadFailure::Crashed | LoadFailure::Stalled | LoadFailure::NotStarted => {
                self.count_failure(model, FailedLoad::Yes, effects);
            }
        }
        self.settle_all(effects);
    }

    /// A load of a lower class was broken off for interactive work.
    fn rest_from_loads(&mut self, id: DeviceId) {
        let now = self.now;
        let device = &mut self.devices[id.index()];
        if let Some(times) = device.broken_off.checked_sub(1) {
            let rest = now.after(Breaker::doubled(REST_FIRST, times, REST_MOST));
            device.loads_paused = device.loads_paused.max(rest);
        }
        device.broken_off = device.broken_off.saturating_add(1);
    }

    /// What is to follow the load of that attempt, if it is under way.
    fn loading(&self, attempt: Attempt, id: InstanceId) -> Option<Option<StopCause>> {
        match self.instance(id)?.slot {
            Slot::Loading { attempt: own, then, .. } if own == attempt => Some(then),
            Slot::Loading { .. } | Slot::Ready { .. } | Slot::Draining { .. } | Slot::Stopping { .. } => None,
        }
    }
}
