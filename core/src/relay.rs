//! The short way from the end of a grant to what comes after it.
//!
//! Most grants end on an instance that takes its next batch from the one line it serves, interactive work after interactive
//! work, while nothing of a lower class waits. Then there is nothing to decide: the device stays engaged and keeps its mode,
//! no turn begins or ends, no variant is chosen, no model comes or goes, nothing is learned, the instance is as full as
//! before, and the line's head is next. So the new grant is written over the old one. Where the line is empty, the instance
//! rests, and all that can change is the mode of its device. This is what [`Scheduler::end_grant`] would do on the long way,
//! which is taken wherever anything else could matter.

use alloc::vec::Vec;

use crate::{
    Attempt, Capacity, Class, Effect, Effects, Grant, InstanceId, Measured, Prediction, Right, Scheduler,
    instance::{Aborted, Instance, Running, Slot},
    prediction::batch_time,
    queue::LineId,
};

/// What the short way leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShortWay {
    /// The next grant, from this line.
    Relay(LineId),
    /// Nothing: nobody waits for the instance.
    Rest,
}

impl Scheduler {
    /// Where the short way leads, where it is open.
    #[inline]
    pub(crate) fn short_way(&self, attempt: Attempt, id: InstanceId) -> Option<ShortWay> {
        let instance = self.instances.recent(id)?;
        let ([line], Slot::Ready { running }) = (&instance.lines[..], &instance.slot) else { return None };
        let open = matches!(running[..], [Running { attempt: own, class: Class::Interactive, right: Right::Order, .. }] if own == attempt)
            && matches!(instance.capacity, Capacity::Batch { .. })
            && instance.prediction == Prediction::Configured
            && self.devices[instance.device.index()].is_engaged()
            && self.is_plain();
        let waits = self.lines[line.index()].class(Class::Interactive).len() > 0;
        open.then_some(if waits { ShortWay::Relay(*line) } else { ShortWay::Rest })
    }

    /// Ends the only grant of an instance for which nobody waits.
    #[inline(never)]
    pub(crate) fn rest(&mut self, id: InstanceId, measured: &Measured, effects: &mut Effects) {
        let instance = &mut self.instances[id];
        let (model, device) = (instance.model, instance.device);
        let Some(mut steps) = instance.slot.running_mut().and_then(Vec::pop).map(|grant| grant.steps) else { return };
        self.end_steps(&steps, measured.first_token, effects);
        steps.clear();
        self.spare_steps.push(steps);
        let window = self.now.after(self.policy().interactive_idle);
        self.change_device(device, |device| {
            device.interactive -= 1;
            device.window = window;
        });
        let model = &mut self.models[model.index()];
        model.open += 1;
        model.last_interactive = Some(self.now);
        self.update_mode(device, effects);
    }

    /// Ends the only grant of an instance and makes the next one from the same line.
    #[inline(never)]
    pub(crate) fn relay(&mut self, id: InstanceId, line: LineId, measured: &Measured, effects: &mut Effects) {
        let instance = &mut self.instances[id];
        let (model, device, room) = (instance.model, instance.device, instance.room());
        let Some(ended) = only_grant(instance) else { return };
        let (attempt, mut steps) = (ended.attempt, core::mem::take(&mut ended.steps));
        match steps[..] {
            [only] => self.step_done(only.job, measured.first_token, effects),
            _ => self.end_steps(&steps, measured.first_token, effects),
        }
        steps.clear();
        let weight = self.collect_from(line, Class::Interactive, model, room, &mut steps, effects);
        if steps.is_empty() {
            self.spare_steps.push(steps);
            return self.end_grant(attempt, id, measured, effects);
        }
        let attempt = self.attempt();
        let range = effects.latest_steps(steps.len());
        let instance = &mut self.instances[id];
        let expected = self.now.after(batch_time(instance, u64::from(weight)));
        let (class, right, aborted) = (Class::Interactive, Right::Order, Aborted::No);
        if let Some(grant) = only_grant(instance) {
            *grant = Running { attempt, class, right, start: self.now, expected, weight, beside: 0, steps, aborted };
        }
        self.devices[device.index()].window = self.now.after(self.policy().interactive_idle);
        self.models[model.index()].last_interactive = Some(self.now);
        effects.push(Effect::Grant(Grant { attempt, instance: id, model, device, class, right, weight, steps: range }));
    }
}

/// The grant of a ready instance that has no other.
#[inline]
fn only_grant(instance: &mut Instance) -> Option<&mut Running> {
    match &mut instance.slot {
        Slot::Ready { running } => match running.as_mut_slice() {
            [only] => Some(only),
            _ => None,
        },
        Slot::Loading { .. } | Slot::Draining { .. } | Slot::Stopping { .. } => None,
    }
}
