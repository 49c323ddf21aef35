//! Grants: how they are made, and what their end means for jobs, devices and the next in line.

use alloc::vec::Vec;

use crate::{
    Attempt, Capacity, Choice, Class, Effect, Effects, Failure, Grant, GrantFailure, GrantedStep, InstanceId, JobId,
    Measured, Nonsense, Note, Outcome, Overdue, Right, Scheduler, Sent, StepRange, Time,
    instance::{Aborted, Running},
    job::Requeued,
    queue::LineId,
};

impl Scheduler {
    /// Starts steps of a class on an instance that has room: one, or a batch in queue order while the weights fit. The first
    /// comes from `from`, where that is given.
    pub(crate) fn grant(
        &mut self,
        id: InstanceId,
        class: Class,
        right: Right,
        from: Option<LineId>,
        effects: &mut Effects,
    ) {
        let mut steps = self.spare_steps.pop().unwrap_or_default();
        let expected = self.collect(id, class, from, &mut steps, effects);
        let Some(first) = steps.first().copied() else { return self.spare_steps.push(steps) };
        let attempt = self.attempt();
        let weight: u32 = steps.iter().map(|step| step.weight).sum();
        let instance = &mut self.instances[id.index()];
        instance.held = None;
        let (model, device) = (instance.model, instance.device);
        let range = StepRange { first: effects.steps.len() as u32, count: steps.len() as u32 };
        effects.steps.extend_from_slice(&steps);
        if let Some(running) = instance.slot.running_mut() {
            let (start, beside) = (self.now, running.len() as u32);
            let aborted = Aborted::No;
            running.push(Running { attempt, class, right, start, expected, weight, beside, steps, aborted });
        }
        self.count_grant(id, class, right);
        if right == Right::Turn {
            self.begin_turn(id, effects);
        }
        self.explain(first.job, class, model, right, id, effects);
        effects.push(Effect::Grant(Grant { attempt, instance: id, model, device, class, right, weight, steps: range }));
    }

    /// Takes the steps of a grant out of their lines; says when it should end.
    fn collect(
        &mut self,
        id: InstanceId,
        class: Class,
        from: Option<LineId>,
        steps: &mut Vec<GrantedStep>,
        effects: &mut Effects,
    ) -> Time {
        let mut line = from;
        let mut room = match self.instances[id.index()].capacity {
            Capacity::Slots { .. } => None,
            Capacity::Batch { max, .. } => Some(max),
        };
        let mut expected = self.now;
        while let Some(job) = self.next_job_for(id, class, line.take()) {
            if self.drop_if_hopeless(job, effects) {
                continue;
            }
            let Some(weight) = self.next_weight(job) else { break };
            if !steps.is_empty() && room.is_none_or(|room| weight > room) {
                break;
            }
            if room.is_none()
                && let Some(data) = self.jobs.get(job.0)
            {
                expected = self.now.after(self.step_time(&self.instances[id.index()], data, weight));
            }
            steps.extend(self.take_step(job, id));
            room = room.map(|room| room.saturating_sub(weight));
            if room.is_none_or(|room| room == 0) {
                break;
            }
        }
        match room {
            None => expected,
            Some(_) => {
                let weight = steps.iter().map(|step| u64::from(step.weight)).sum();
                self.now.after(self.batch_time(&self.instances[id.index()], weight))
            }
        }
    }

    /// Ends a head that has become hopeless at this very moment, before its timer says so: it must not waste a slot.
    fn drop_if_hopeless(&mut self, id: JobId, effects: &mut Effects) -> bool {
        let expires = self.jobs.get(id.0).and_then(|job| job.expires);
        let hopeless = expires.is_some_and(|(due, kind)| kind == Overdue::Hopeless && due <= self.now);
        if hopeless {
            self.leave_line(id);
            self.end(id, Outcome::TimedOut(Overdue::Hopeless), effects);
        }
        hopeless
    }

    /// The head of the line given, or the best head among those that the instance serves.
    fn next_job_for(&self, id: InstanceId, class: Class, line: Option<LineId>) -> Option<JobId> {
        match line {
            Some(line) => self.lines[line.index()].class(class).first(),
            None => self.head(&self.instances[id.index()], class).map(|(_, rank)| rank.job),
        }
    }

    fn next_weight(&self, id: JobId) -> Option<u32> {
        let job = self.jobs.get(id.0)?;
        Some(job.weight_of(job.next_step()?))
    }

    /// Marks the next step of a job as running on an instance; the job leaves its line with its last step.
    fn take_step(&mut self, id: JobId, instance: InstanceId) -> Option<GrantedStep> {
        let model = self.instances[instance.index()].model;
        let job = self.jobs.get_mut(id.0)?;
        let (step, line, of) = (job.next_step()?, job.line?, job.steps);
        let weight = job.weight_of(step);
        if let Some((due, _)) = job.expires.take() {
            self.expiry.remove(due, id);
        }
        job.started = job.started.or(Some(self.now));
        job.model = job.model.or(Some(model));
        let class = job.class;
        let rank = job.rank(id, self.configuration.policy.classes[class.index()].order);
        let queue = self.lines[line.index()].class_mut(class);
        if job.waiting_weight() > u64::from(weight) {
            queue.lighten(rank, u64::from(weight));
        } else {
            queue.remove(rank, u64::from(weight));
            job.line = None;
            self.queued[class.index()].jobs -= 1;
            self.queued[class.index()].bytes -= job.body.get();
        }
        job.take_step();
        Some(GrantedStep { job: id, step, of, weight })
    }

    fn count_grant(&mut self, id: InstanceId, class: Class, right: Right) {
        let instance = &self.instances[id.index()];
        let device = &mut self.devices[instance.device.index()];
        if class == Class::Interactive {
            device.interactive += 1;
            self.models[instance.model.index()].last_interactive = Some(self.now);
        }
        match right {
            Right::Guard => {
                device.guards += 1;
                device.guard_limit = self.configuration.policy.guard_parallel;
            }
            Right::Order | Right::Turn => {}
        }
    }

    /// Notes what cannot be seen from the grant itself: another variant than before.
    fn explain(
        &mut self,
        job: JobId,
        class: Class,
        model: crate::ModelId,
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
            let choice = if better.is_empty() {
                Choice::Best
            } else if better.iter().any(|&variant| self.is_present(variant)) {
                Choice::BetterBusy
            } else {
                Choice::BetterAbsent
            };
            effects.note(Note::Variant { job, model, choice });
        }
        if right == Right::Guard {
            effects.note(Note::Guard { device: self.instances[id.index()].device, job, class, starved });
        }
    }

    pub(crate) fn grant_finished(
        &mut self,
        attempt: Attempt,
        id: InstanceId,
        measured: Measured,
        effects: &mut Effects,
    ) {
        let Some(grant) = self.take_grant(attempt, id) else {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchAttempt });
        };
        self.learn(id, &grant, &measured, effects);
        for step in &grant.steps {
            self.step_done(step.job, measured.first_token, effects);
        }
        self.after_grant(id, grant, effects);
    }

    fn step_done(&mut self, id: JobId, first_token: Option<Time>, effects: &mut Effects) {
        let Some(job) = self.jobs.get_mut(id.0) else { return };
        job.running -= 1;
        job.done += 1;
        job.progress = self.now;
        job.first_token = job.first_token.or(first_token);
        if job.done == job.steps {
            return self.end(id, Outcome::Completed, effects);
        }
        if job.running == 0 && job.line.is_some() {
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
        let (class, ask) = (job.class, job.ask);
        let Ok(target) = self.target_of(ask) else {
            return self.drop_job(step.job, Outcome::Failed(Failure::ModelRemoved), effects);
        };
        self.leave_line(step.job);
        if let Some(job) = self.jobs.get_mut(step.job.0) {
            job.again.push(step.step);
        }
        let line = self.route(step.job, class, target);
        self.enqueue(step.job, line);
        effects.note(Note::Requeued { job: step.job, cause });
    }

    fn take_grant(&mut self, attempt: Attempt, id: InstanceId) -> Option<Running> {
        let running = self.instances.get_mut(id.index())?.slot.running_mut()?;
        let at = running.iter().position(|grant| grant.attempt == attempt)?;
        Some(running.swap_remove(at))
    }

    /// Settles the accounts of an ended grant and gives its place to the next.
    fn after_grant(&mut self, id: InstanceId, mut grant: Running, effects: &mut Effects) {
        let (model, at) = (self.instances[id.index()].model, self.instances[id.index()].device);
        let policy = &self.configuration.policy;
        let device = &mut self.devices[at.index()];
        if grant.class == Class::Interactive {
            device.interactive -= 1;
            device.window = self.now.after(policy.interactive_idle);
            self.models[model.index()].last_interactive = Some(self.now);
        }
        match grant.right {
            Right::Guard => device.charge_guard(grant.start, self.now, policy.background_share),
            Right::Order | Right::Turn => {}
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
