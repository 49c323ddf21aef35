//! Grants: how they are made, and what their end means for jobs, devices and the next in line.

use alloc::vec::Vec;

use crate::{
    Attempt, Capacity, Choice, Class, Effect, Effects, Failure, Grant, GrantFailure, GrantedStep, InstanceId, JobId,
    Measured, ModelId, Nonsense, Note, Outcome, Overdue, Right, Scheduler, Sent, Span, Time,
    instance::{Aborted, Running},
    job::Requeued,
    queue::LineId,
    relay::ShortWay,
    residency::Residency,
    target::Assigned,
};

/// What became of an attempt to take a head's next step.
enum Taken {
    Step(GrantedStep),
    /// The head can no longer meet its deadline.
    Hopeless,
    /// It is too heavy.
    Nothing,
}

impl Scheduler {
    /// Starts steps of a class on an instance that has room: one, or a batch in queue order while the weights fit. The first
    /// comes from `line`.
    #[inline]
    pub(crate) fn grant(&mut self, id: InstanceId, class: Class, right: Right, line: LineId, effects: &mut Effects) {
        if class != Class::Interactive {
            self.audit_grant(id, class, right, line);
        }
        if right != Right::Order && self.drop_hopeless_head(line, class, effects) {
            // The right was that of the head; who comes after it may not have it.
            return;
        }
        let mut steps = self.spare_steps.pop().unwrap_or_default();
        let weight = self.collect(id, class, line, &mut steps, effects);
        if steps.is_empty() {
            return self.spare_steps.push(steps);
        }
        self.begin_grant(id, class, right, steps, weight, effects);
    }

    /// Starts these steps of that weight on an instance that has room; they are listed and counted as running already.
    #[inline]
    pub(crate) fn begin_grant(
        &mut self,
        id: InstanceId,
        class: Class,
        right: Right,
        steps: Vec<GrantedStep>,
        weight: u32,
        effects: &mut Effects,
    ) {
        let Some(first) = steps.first().copied() else { return };
        let expected = self.expected_end(id, &steps, weight);
        let attempt = self.attempt();
        let instance = &mut self.instances[id];
        instance.held = None;
        let (model, device) = (instance.model, instance.device);
        let range = effects.latest_steps(steps.len());
        if let Some(running) = instance.slot.running_mut() {
            let (start, beside) = (self.now, running.len() as u32);
            let aborted = Aborted::No;
            running.push(Running { attempt, class, right, start, expected, weight, beside, steps, aborted });
            self.models[model.index()].open -= u32::from(instance.free() == 0);
        }
        self.count_grant(id, class, right);
        if right == Right::Turn {
            self.begin_turn(id, effects);
        }
        if class == Class::Batch {
            self.keep_promise(device, model);
        }
        self.explain(first.job, class, model, right, id, effects);
        effects.push(Effect::Grant(Grant { attempt, instance: id, model, device, class, right, weight, steps: range }));
        if class == Class::Interactive {
            // At once: the next slot may be offered to a lower class before the device is settled.
            self.update_mode(device, effects);
        }
    }

    /// Takes the steps of a grant out of their lines, the first from `line`, and lists them; says what they weigh. A slot takes
    /// one step, a batch steps as long as their weights fit; the first is taken whatever it weighs.
    pub(crate) fn collect(
        &mut self,
        id: InstanceId,
        class: Class,
        line: LineId,
        steps: &mut Vec<GrantedStep>,
        effects: &mut Effects,
    ) -> u32 {
        let instance = &self.instances[id];
        let model = instance.model;
        let mut room = instance.room();
        if instance.lines.len() == 1 {
            return self.collect_from(line, class, model, room, steps, effects);
        }
        let (mut weight, mut next) = (0, Some(line));
        while room > 0
            && let Some(line) = next
            && let Some(taken) = self.collect_one(line, class, model, room, steps, effects)
        {
            weight += taken;
            room = room.saturating_sub(taken);
            next = self.head(&self.instances[id], class).map(|(line, _)| line);
        }
        weight
    }

    /// The same from one line alone, for an instance of `model` that has `room`.
    #[inline(never)]
    pub(crate) fn collect_from(
        &mut self,
        line: LineId,
        class: Class,
        model: ModelId,
        room: u32,
        steps: &mut Vec<GrantedStep>,
        effects: &mut Effects,
    ) -> u32 {
        let (mut weight, mut rest) = (0, room);
        while rest > 0
            && let Some(taken) = self.collect_one(line, class, model, rest, steps, effects)
        {
            weight += taken;
            rest = rest.saturating_sub(taken);
        }
        weight
    }

    /// Takes a step of a line's head, if it weighs no more than `room` or is the first, and says what it weighs: nothing if
    /// the head was hopeless instead and ended.
    #[inline(always)]
    fn collect_one(
        &mut self,
        line: LineId,
        class: Class,
        model: ModelId,
        room: u32,
        steps: &mut Vec<GrantedStep>,
        effects: &mut Effects,
    ) -> Option<u32> {
        let queue = self.lines[line.index()].class_mut(class);
        let head = queue.first()?;
        let most = if steps.is_empty() { u32::MAX } else { room };
        let job = self.jobs.get_mut(head.0)?;
        // Most jobs are one step, and where no models come and go nothing else is to be done for them.
        if job.is_untouched() && job.inputs <= most && self.residency == Residency::Fixed {
            let (weight, queued) = (job.inputs, &mut self.queued[class.index()]);
            job.take_only_step(self.now, model);
            queue.remove_first(u64::from(weight));
            queued.jobs -= 1;
            queued.bytes -= job.body.get();
            let step = GrantedStep { job: head, step: 0, of: 1, weight };
            steps.push(step);
            effects.add_step(step);
            return Some(weight);
        }
        self.collect_any(head, line, model, most, steps, effects)
    }

    fn collect_any(
        &mut self,
        head: JobId,
        line: LineId,
        model: ModelId,
        most: u32,
        steps: &mut Vec<GrantedStep>,
        effects: &mut Effects,
    ) -> Option<u32> {
        match self.take_step(head, line, model, most) {
            Taken::Step(step) => {
                steps.push(step);
                effects.add_step(step);
                Some(step.weight)
            }
            Taken::Hopeless => {
                self.leave_line(head);
                self.end(head, Outcome::TimedOut(Overdue::Hopeless), effects);
                Some(0)
            }
            Taken::Nothing => None,
        }
    }

    /// Whether a waiting job cannot meet its deadline even if it starts now, though its timer has not said so: that is due at
    /// this very moment, or was set before it was known how long a step takes here.
    #[inline]
    fn is_lost(&self, id: JobId, line: LineId) -> bool {
        self.jobs.get(id.0).is_some_and(|job| job.expires().is_some() && self.is_hopeless(job, line))
    }

    /// Ends the head of a line if it has become hopeless; whether it had.
    fn drop_hopeless_head(&mut self, line: LineId, class: Class, effects: &mut Effects) -> bool {
        let head = self.lines[line.index()].class(class).first();
        let hopeless = head.filter(|&head| self.is_lost(head, line));
        if let Some(head) = hopeless {
            self.leave_line(head);
            self.end(head, Outcome::TimedOut(Overdue::Hopeless), effects);
        }
        hopeless.is_some()
    }

    /// When a grant of these steps, which weigh so much together, should end if it started now.
    #[inline]
    pub(crate) fn expected_end(&self, id: InstanceId, steps: &[GrantedStep], weight: u32) -> Time {
        let instance = &self.instances[id];
        let duration = match (instance.capacity, steps) {
            (Capacity::Slots { .. }, [step]) => {
                self.jobs.get(step.job.0).map_or(Span::ZERO, |job| self.step_time(instance, job, step.weight))
            }
            (Capacity::Slots { .. } | Capacity::Batch { .. }, _) => self.batch_time(instance, u64::from(weight)),
        };
        self.now.after(duration)
    }

    /// Marks the next step of a line's head as running on an instance of `model`, if it weighs no more than `most`; the job
    /// leaves its line with its last step. A head that has become hopeless must not waste a slot.
    fn take_step(&mut self, id: JobId, line: LineId, model: ModelId, most: u32) -> Taken {
        if self.is_lost(id, line) {
            return Taken::Hopeless;
        }
        let Some(job) = self.jobs.get_mut(id.0) else { return Taken::Nothing };
        let Some(step) = job.next_step() else { return Taken::Nothing };
        let weight = job.weight_of(step);
        if weight > most {
            return Taken::Nothing;
        }
        if let Some((due, _)) = job.take_expires() {
            self.expiry.remove(due, id);
        }
        if job.started().is_none() && self.residency == Residency::Managed {
            self.models[model.index()].demand.count(job.class, self.now);
        }
        job.start(self.now, model);
        job.take_step();
        let queue = self.lines[line.index()].class_mut(job.class);
        if job.next_step().is_some() {
            queue.lighten_first(u64::from(weight));
        } else {
            queue.remove_first(u64::from(weight));
            job.set_line(None);
            let queued = &mut self.queued[job.class.index()];
            queued.jobs -= 1;
            queued.bytes -= job.body.get();
        }
        Taken::Step(GrantedStep { job: id, step, of: job.steps, weight })
    }

    #[inline]
    fn count_grant(&mut self, id: InstanceId, class: Class, right: Right) {
        let (model, at) = (self.instances[id].model, self.instances[id].device);
        if class == Class::Interactive {
            self.change_device(at, |device| device.interactive += 1);
            self.models[model.index()].last_interactive = Some(self.now);
        }
        if self.residency == Residency::Managed {
            self.touched.all = true;
            self.instances[id].touch(class, self.now);
        }
        match right {
            Right::Guard => {
                let device = &mut self.devices[at.index()];
                device.guards += 1;
                device.guard_limit = self.configuration.policy.guard_parallel;
            }
            Right::Order | Right::Turn => {}
        }
    }

    /// Notes what cannot be seen from the grant itself: another variant than before.
    #[inline]
    fn explain(
        &mut self,
        job: JobId,
        class: Class,
        model: ModelId,
        right: Right,
        id: InstanceId,
        effects: &mut Effects,
    ) {
        if right != Right::Guard && self.configuration.families.is_empty() {
            return;
        }
        let Some(data) = self.jobs.get(job.0) else { return };
        let starved = self.now.since(data.progress);
        let target = &mut self.targets[data.target as usize];
        if target.variants.len() > 1 && target.chosen[class.index()] != Some(model) {
            target.chosen[class.index()] = Some(model);
            let better = target.variants.iter().copied().take_while(|&variant| variant != model);
            let better: Vec<_> = better.collect();
            let planned = target.assigned[class.index()] == Assigned::To(model);
            let because = target.because[class.index()];
            let choice = if better.is_empty() {
                Choice::Best
            } else if planned && because != Choice::Best {
                because
            } else if better.iter().any(|&variant| self.is_present(variant)) {
                Choice::BetterBusy
            } else {
                Choice::BetterAbsent
            };
            effects.note(Note::Variant { job, model, choice });
        }
        if right == Right::Guard {
            effects.note(Note::Guard { device: self.instances[id].device, job, class, starved });
        }
    }

    #[inline]
    pub(crate) fn grant_finished(
        &mut self,
        attempt: Attempt,
        id: InstanceId,
        measured: &Measured,
        effects: &mut Effects,
    ) {
        match self.short_way(attempt, id) {
            Some(ShortWay::Relay(line)) => self.relay(id, line, measured, effects),
            Some(ShortWay::Rest) => self.rest(id, measured, effects),
            None => self.end_grant(attempt, id, measured, effects),
        }
    }

    /// The long way from the end of a grant to whatever may start then.
    #[inline(never)]
    pub(crate) fn end_grant(&mut self, attempt: Attempt, id: InstanceId, measured: &Measured, effects: &mut Effects) {
        let Some(grant) = self.take_grant(attempt, id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchAttempt });
        };
        self.learn(id, &grant, measured, effects);
        self.end_steps(&grant.steps, measured.first_token, effects);
        self.after_grant(id, grant, effects);
    }

    /// The steps of a grant are done.
    #[inline(never)]
    pub(crate) fn end_steps(&mut self, steps: &[GrantedStep], first_token: Option<Time>, effects: &mut Effects) {
        for step in steps {
            self.step_done(step.job, first_token, effects);
        }
    }

    /// A step of a job is done.
    #[inline(always)]
    pub(crate) fn step_done(&mut self, id: JobId, first_token: Option<Time>, effects: &mut Effects) {
        let Some(room) = self.jobs.room_of(id.0) else { return };
        let Some(job) = self.jobs.in_room(room) else { return };
        job.running -= 1;
        job.done += 1;
        job.progress = self.now;
        job.token(first_token);
        if job.done == job.steps {
            effects.push(Effect::Finish(job.finish(id, Outcome::Completed)));
            self.jobs.leave(id.0, room);
        } else if job.running == 0 && job.line().is_some() {
            self.arm_expiry(id);
        }
    }

    pub(crate) fn grant_failed(
        &mut self,
        attempt: Attempt,
        id: InstanceId,
        cause: GrantFailure,
        sent: Sent,
        effects: &mut Effects,
    ) {
        let Some(grant) = self.take_grant(attempt, id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchAttempt });
        };
        for at in 0..grant.steps.len() {
            let step = grant.steps[at];
            let earlier = grant.steps[..at].iter().any(|other| other.job == step.job);
            self.step_failed(step, earlier, cause, sent, effects);
        }
        self.after_grant(id, grant, effects);
        self.settle_all(effects);
    }

    /// A failed step sends its job back to its place once, if its client has seen nothing; else the job fails. Steps of one
    /// grant count as one failure.
    fn step_failed(
        &mut self,
        step: GrantedStep,
        same_grant: bool,
        cause: GrantFailure,
        sent: Sent,
        effects: &mut Effects,
    ) {
        let Some(job) = self.jobs.get_mut(step.job.0) else { return };
        job.running -= 1;
        job.progress = self.now;
        let again = sent == Sent::Nothing && cause != GrantFailure::Rejected;
        if !again || (job.requeued == Requeued::Once && !same_grant) {
            return self.drop_job(step.job, Outcome::Failed(Failure::Step(cause)), effects);
        }
        job.requeued = Requeued::Once;
        let (class, ask) = (job.class, job.ask());
        let Ok(target) = self.target_of(ask) else {
            return self.drop_job(step.job, Outcome::Failed(Failure::ModelRemoved), effects);
        };
        self.leave_line(step.job);
        if let Some(job) = self.jobs.get_mut(step.job.0) {
            job.do_again(step.step);
            job.set_target(target);
        }
        let refusal = self.jobs.get(step.job.0).and_then(|job| self.fits(job).err());
        if let Some(refusal) = refusal {
            return self.drop_job(step.job, Outcome::Refused(refusal), effects);
        }
        let line = self.route(step.job, class, target);
        self.enqueue(step.job, line);
        effects.note(Note::Requeued { job: step.job, cause });
    }

    #[inline]
    fn take_grant(&mut self, attempt: Attempt, id: InstanceId) -> Option<Running> {
        let instance = self.instances.get_mut(id)?;
        let was_full = instance.free() == 0;
        let running = instance.slot.running_mut()?;
        let at = running.iter().position(|grant| grant.attempt == attempt)?;
        let grant = running.swap_remove(at);
        self.models[instance.model.index()].open += u32::from(was_full && instance.free() > 0);
        Some(grant)
    }

    /// Settles the accounts of an ended grant and gives its place to the next.
    #[inline]
    fn after_grant(&mut self, id: InstanceId, mut grant: Running, effects: &mut Effects) {
        let (model, at) = (self.instances[id].model, self.instances[id].device);
        if grant.class == Class::Interactive {
            let window = self.now.after(self.policy().interactive_idle);
            self.change_device(at, |device| {
                device.interactive -= 1;
                device.window = window;
            });
            self.models[model.index()].last_interactive = Some(self.now);
        }
        match grant.right {
            Right::Guard => {
                let share = self.configuration.policy.background_share;
                self.devices[at.index()].charge_guard(grant.start, self.now, share);
            }
            Right::Order | Right::Turn => {}
        }
        if self.residency == Residency::Managed {
            self.instances[id].touch(grant.class, self.now);
        }
        grant.steps.clear();
        self.spare_steps.push(grant.steps);
        if self.finish_draining(id, effects) {
            return self.settle_device(at, effects);
        }
        self.offer_instance(id, effects);
        self.settle_device(at, effects);
        self.end_turn_without_work(at, effects);
    }
}
