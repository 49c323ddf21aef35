//! The short way from the end of a grant to the next one.
//!
//! Most grants end on an instance that takes its next batch from the one line it serves, interactive work after interactive
//! work, while nothing of a lower class waits. Then there is nothing to decide: the device stays engaged and keeps its mode,
//! no turn begins or ends, no variant is chosen, no model comes or goes, nothing is learned, the instance is as full as
//! before, and the line's head is next. So the new grant is written over the old one. This is what
//! [`Scheduler::end_grant`] would do on the long way, which is taken wherever anything else could matter.

use crate::{
    Attempt, Capacity, Class, Effect, Effects, Grant, InstanceId, Measured, Prediction, Right, Scheduler,
    instance::{Aborted, Instance, Running, Slot},
    queue::LineId,
    residency::Residency,
    scheduler::Holding,
};

impl Scheduler {
    /// The line from which the short way would take the next grant, where it is open.
    #[inline]
    pub(crate) fn short_way(&self, attempt: Attempt, id: InstanceId) -> Option<LineId> {
        let instance = self.instances.get(id.index())?;
        let ([id], Slot::Ready { running }) = (&instance.lines[..], &instance.slot) else { return None };
        let line = &self.lines[id.index()];
        let open = matches!(running[..], [Running { attempt: own, class: Class::Interactive, right: Right::Order, .. }] if own == attempt)
            && matches!(instance.capacity, Capacity::Batch { .. })
            && instance.prediction == Prediction::Configured
            && line.class(Class::Interactive).len() > 0
            && self.targets[line.target as usize].variants.len() == 1
            && self.devices[instance.device.index()].is_engaged()
            && self.lower_queued() == 0
            && self.holding == Holding::No
            && self.residency == Residency::Fixed;
        open.then_some(*id)
    }

    /// Ends the only grant of an instance and makes the next one from the same line.
    #[inline]
    pub(crate) fn relay(&mut self, id: InstanceId, line: LineId, measured: Measured, effects: &mut Effects) {
        let Some(ended) = only_grant(&mut self.instances[id.index()]) else { return };
        let (attempt, mut steps) = (ended.attempt, core::mem::take(&mut ended.steps));
        for step in &steps {
            self.step_done(step.job, measured.first_token, effects);
        }
        steps.clear();
        let expected = self.collect(id, Class::Interactive, line, &mut steps, effects);
        if steps.is_empty() {
            self.spare_steps.push(steps);
            return self.end_grant(attempt, id, measured, effects);
        }
        let attempt = self.attempt();
        let weight = steps.iter().map(|step| step.weight).sum();
        let range = effects.add_steps(&steps);
        let instance = &mut self.instances[id.index()];
        let (model, device) = (instance.model, instance.device);
        let (class, right, aborted) = (Class::Interactive, Right::Order, Aborted::No);
        if let Some(grant) = only_grant(instance) {
            *grant = Running { attempt, class, right, start: self.now, expected, weight, beside: 0, steps, aborted };
        }
        self.devices[device.index()].window = self.now.after(self.policy().interactive_idle);
        self.models[model.index()].last_interactive = Some(self.now);
        effects.push(Effect::Grant(Grant { attempt, instance: id, model, device, class, right, weight, steps: range }));
    }
}

#[inline]
fn only_grant(instance: &mut Instance) -> Option<&mut Running> {
    match instance.slot.running_mut()?.as_mut_slice() {
        [only] => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::{boxed::Box, collections::VecDeque, string::String, vec, vec::Vec};

    use super::*;
    use crate::{
        Bytes, Configuration, Device, DeviceId, DeviceKind, Input, JobId, JobKind, LabelId, Model, ModelId, Needs,
        Order, Placement, Policy, Replicas, Resident, ServiceTimes, Span, Started, Submission, Time, Wanted,
    };

    const MS: Span = Span::from_millis(1);

    /// Two devices with one model each batches of up to three, and hopeless jobs that are dropped.
    fn configuration() -> Configuration {
        let device = |name: &str| Device {
            name: name.into(),
            kind: DeviceKind::Discrete,
            memory: None,
            limit: None,
            headroom: Bytes::ZERO,
            parallel_loads: 1,
        };
        let predicted = ServiceTimes::Batch { alpha: MS, beta: MS };
        let mut policy = Policy::default();
        policy.classes[0].order = Order::Edf;
        policy.classes[0].drop_hopeless = true;
        let model = Model {
            name: "m".into(),
            aliases: Vec::new(),
            capabilities: Vec::new(),
            capacity: Capacity::Batch { max: 3, wait: Span::ZERO },
            replicas: Replicas::All,
            placements: [0, 1].map(|device| Placement { device: DeviceId(device), predicted }).into(),
            prediction: Prediction::Configured,
            pinned: false,
            preload: false,
            idle_ttl: None,
        };
        Configuration {
            policy,
            devices: vec![device("a"), device("b")],
            models: vec![model],
            families: Vec::new(),
            labels: Vec::new(),
            seed: 1,
        }
    }

    fn submission(number: u64) -> Submission {
        Submission {
            label: LabelId(0),
            wanted: Wanted::Model(ModelId(0)),
            class: Some(Class::Interactive),
            kind: JobKind::Embedding,
            inputs: 1 + (number % 3) as u32,
            prompt_tokens: 0,
            max_tokens: None,
            deadline: Some(MS.times(4 + number * 7 % 60)),
            max_wait: None,
            drop_hopeless: None,
            quality: None,
            needs: Needs::NONE,
            body: Bytes::new(5),
            client: None,
            affinity: None,
        }
    }

    fn started() -> Started {
        let residents = [0, 1].map(|device| Resident { model: ModelId(0), device: DeviceId(device) }).into();
        Started { configuration: configuration(), profiles: Vec::new(), estimates: Vec::new(), residents }
    }

    fn granted(effects: &Effects, now: Time) -> Vec<(Attempt, InstanceId, Time)> {
        let grants =
            effects.iter().filter_map(|effect| if let Effect::Grant(grant) = effect { Some(grant) } else { None });
        grants.map(|grant| (grant.attempt, grant.instance, now.after(MS.times(1 + u64::from(grant.weight))))).collect()
    }

    fn state(scheduler: &Scheduler) -> String {
        serde_json::to_string(&scheduler.checkpoint()).unwrap()
    }

    /// Every grant of a loaded world ends on both ways, which leave the same state and want the same.
    #[test]
    fn both_ways_lead_to_the_same_place() {
        let (mut scheduler, mut effects) = (Scheduler::new(), Effects::new());
        let (mut under_way, mut relays) = (VecDeque::new(), 0);
        scheduler.step(Time::ZERO, &Input::Started(Box::new(started())), &mut effects);
        for number in 0..3_000 {
            let now = Time::from_nanos(number * 1_400_000);
            let arrival = Input::Submitted { job: JobId(number), submission: submission(number) };
            for input in [arrival, Input::TimerDue] {
                scheduler.step(now, &input, &mut effects);
                under_way.extend(granted(&effects, now));
            }
            while let Some((attempt, instance, _)) = under_way.pop_front_if(|(_, _, due)| *due <= now) {
                relays += u32::from(scheduler.short_way(attempt, instance).is_some());
                end_both_ways(&mut scheduler, attempt, instance, &mut effects);
                under_way.extend(granted(&effects, now));
            }
        }
        assert!(relays > 500, "{relays}");
    }

    fn end_both_ways(scheduler: &mut Scheduler, attempt: Attempt, instance: InstanceId, effects: &mut Effects) {
        let measured = Measured { first_token: None, output_tokens: 0 };
        let (mut other, mut others) = (scheduler.clone(), Effects::new());
        other.end_grant(attempt, instance, measured, &mut others);
        other.wake = other.next_wake();
        scheduler.step(scheduler.now, &Input::GrantFinished { attempt, instance, measured }, effects);
        assert_eq!((&effects.list, &effects.steps), (&others.list, &others.steps));
        assert_eq!(state(scheduler), state(&other));
    }
}
