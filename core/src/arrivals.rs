//! Jobs come, and clients go.

use crate::{
    Class, Effects, Failure, JobId, JobKind, Nonsense, Note, Outcome, Overdue, Refusal, Scheduler, Submission, Time,
    effect::{AbortCause, Effect},
    instance::Aborted,
    job::{Ask, Hopeless, Job},
    queue::LineId,
    residency::Residency,
};

impl Scheduler {
    #[inline]
    pub(crate) fn submit(&mut self, id: JobId, submission: &Submission, effects: &mut Effects) {
        if id != self.next_job {
            return effects.note(Note::Ignored { cause: Nonsense::JobOutOfOrder });
        }
        self.next_job = JobId(id.0 + 1);
        let class = submission.class.unwrap_or(self.policy().default_class);
        match self.short_arrival(submission, class) {
            Some((model, way)) => self.arrive(id, submission, model, way, effects),
            None => self.take_in(id, submission, class, effects),
        }
    }

    /// The long way of an arrival: it may be refused, and it may change what other jobs can do.
    #[inline(never)]
    pub(crate) fn take_in(&mut self, id: JobId, submission: &Submission, class: Class, effects: &mut Effects) {
        let target = match self.target_of(Ask::of(submission)) {
            Ok(target) if submission.inputs > 0 => Ok(target),
            Ok(_) => Err(Refusal::Malformed),
            Err(refusal) => Err(refusal),
        };
        let (now, drops) = (self.now, Hopeless::of(self.policy().classes[class.index()].drop_hopeless));
        let place = *target.as_ref().unwrap_or(&0);
        let chunk = self.chunk(submission, place);
        self.jobs.insert_over(id.0, Job::default, |job| job.renew(submission, class, place, chunk, drops, now));
        match target.map_err(Outcome::Refused).and_then(|target| self.admitted(id, class, target)) {
            Ok(line) => {
                self.enqueue(id, line);
                self.offer_new(id, class, line, effects);
            }
            Err(outcome) => self.end(id, outcome, effects),
        }
    }

    /// The line that a new job joins, or how it ends at once.
    #[inline]
    fn admitted(&mut self, id: JobId, class: Class, target: u32) -> Result<LineId, Outcome> {
        let line = self.route(id, class, target);
        let Some(job) = self.jobs.get(id.0) else { return Ok(line) };
        let fits = self.fits(job).and_then(|()| self.can_be_had(target)).and_then(|()| self.admit(job, id, line));
        fits.map_err(Outcome::Refused)?;
        if self.is_hopeless(job, line) { Err(Outcome::TimedOut(Overdue::Hopeless)) } else { Ok(line) }
    }

    /// Inputs per step: embeddings are cut, and no step is heavier than a batch of any variant.
    #[inline]
    pub(crate) fn chunk(&self, submission: &Submission, target: u32) -> u32 {
        match submission.kind {
            JobKind::Embedding => {
                let chunk = self.policy().embedding_chunk;
                self.smallest_batch_of(target).map_or(chunk, |most| most.min(chunk)).max(1)
            }
            JobKind::Chat | JobKind::Completion | JobKind::Rerank | JobKind::Audio => submission.inputs.max(1),
        }
    }

    #[inline]
    pub(crate) fn smallest_batch_of(&self, target: u32) -> Option<u32> {
        self.targets.get(target as usize).and_then(|target| target.smallest_batch)
    }

    /// A model that is too large for every device, or failed too often, is not waited for.
    #[inline]
    fn can_be_had(&self, target: u32) -> Result<(), Refusal> {
        if self.residency == Residency::Fixed {
            return Ok(());
        }
        let variants = &self.targets[target as usize].variants;
        if let Some((needs, room)) = self.never_fits(variants) {
            return Err(Refusal::CannotFit { needs, room });
        }
        if self.are_broken(variants) {
            let open = variants.iter().filter_map(|model| self.models[model.index()].breaker.next_try(self.now));
            return Err(Refusal::Broken { retry_after: open.min().unwrap_or(self.now).since(self.now) });
        }
        Ok(())
    }

    /// A step that is heavier than a batch would never be granted.
    #[inline]
    pub(crate) fn fits(&self, job: &Job) -> Result<(), Refusal> {
        match self.smallest_batch_of(job.target) {
            Some(limit) if job.weight_of(0) > limit => Err(Refusal::TooLarge { limit }),
            Some(_) | None => Ok(()),
        }
    }

    /// Puts a job that is in no line, and has steps to be granted, at its place in this one.
    #[inline]
    pub(crate) fn enqueue(&mut self, id: JobId, line: LineId) {
        let Some(job) = self.jobs.get_mut(id.0) else { return };
        job.set_line(Some(line));
        let class = job.class;
        let rank = job.rank(id, self.configuration.policy.classes[class.index()].order);
        self.lines[line.index()].class_mut(class).insert(rank, job.waiting_weight());
        self.queued[class.index()].jobs += 1;
        self.queued[class.index()].bytes += job.body.get();
        let idle = job.running == 0;
        if self.residency == Residency::Managed {
            self.touch_head(id, class, line);
        }
        let Some(job) = self.jobs.get(id.0) else { return };
        if idle && (job.max_wait().is_some() || job.hopeless == Hopeless::Dropped) {
            self.arm_expiry(id);
        }
    }

    /// Grants what may start now that a job has joined a line, and says why the job waits if it does.
    #[inline]
    fn offer_new(&mut self, id: JobId, class: Class, line: LineId, effects: &mut Effects) {
        let target = self.lines[line.index()].target;
        if self.targets[target as usize].variants.len() > 1 {
            // Who is refused unless he starts at once has nothing loaded.
            if self.residency == Residency::Fixed || self.overfull(class).is_none() {
                self.look_after_models(effects);
            } else {
                self.assign_free(target, class);
            }
        }
        if self.may_start(line) {
            self.offer_line(line, class, effects);
            self.settle_servers(line, effects);
            if self.jobs.get(id.0).is_none_or(|job| job.started().is_some()) {
                return;
            }
        }
        if let Some(refusal) = self.overfull(class) {
            self.leave_line(id);
            return self.end(id, Outcome::Refused(refusal), effects);
        }
        self.look_after_models(effects);
        if effects.hold_reasons_of(class)
            && self.jobs.get(id.0).is_some_and(|job| job.started().is_none())
            && !self.is_explained(id, effects)
        {
            let reason = self.reason(id, class, line);
            effects.note(Note::Waits { job: id, reason });
        }
    }

    /// Whether a new job in a line may start anything, or change a mode: nothing does where every instance is full and every
    /// device engaged.
    #[inline]
    fn may_start(&self, line: LineId) -> bool {
        self.unengaged > 0 || self.lower_queued() > 0 || self.any_open(&self.lines[line.index()])
    }

    /// The bound of its class's queue that the youngest waiting job breaks.
    #[inline]
    pub(crate) fn overfull(&self, class: Class) -> Option<Refusal> {
        let (policy, queued) = (&self.policy().classes[class.index()], self.queued[class.index()]);
        match policy.max_queued {
            Some(limit) if queued.jobs > u64::from(limit) => Some(Refusal::QueueFull { limit }),
            Some(_) | None if queued.bytes > policy.max_queued_bytes.get() => {
                Some(Refusal::QueueBytesFull { limit: policy.max_queued_bytes })
            }
            Some(_) | None => None,
        }
    }

    /// Tells the planner of a queue whose head comes or goes.
    fn touch_head(&mut self, id: JobId, class: Class, line: LineId) {
        let place = &self.lines[line.index()];
        if place.class(class).first() == Some(id) {
            self.touched.heads.push((place.target, class));
        }
    }

    /// Takes a waiting job out of its line, for whatever reason it leaves.
    pub(crate) fn leave_line(&mut self, id: JobId) {
        self.disarm_expiry(id);
        let Some(job) = self.jobs.get_mut(id.0) else { return };
        let Some(line) = job.line() else { return };
        job.set_line(None);
        let (class, weight) = (job.class, job.waiting_weight());
        let rank = job.rank(id, self.configuration.policy.classes[class.index()].order);
        self.queued[class.index()].jobs -= 1;
        self.queued[class.index()].bytes -= job.body.get();
        if self.residency == Residency::Managed {
            self.touch_head(id, class, line);
        }
        self.lines[line.index()].class_mut(class).remove(rank, weight);
    }

    pub(crate) fn cancel(&mut self, id: JobId, effects: &mut Effects) {
        if self.jobs.get(id.0).is_none() {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchJob });
        }
        self.drop_job(id, Outcome::Cancelled, effects);
    }

    pub(crate) fn turn_away(&mut self, id: JobId, effects: &mut Effects) {
        if self.jobs.get(id.0).is_none() {
            return effects.note(Note::Ignored { cause: Nonsense::NoSuchJob });
        }
        self.drop_job(id, Outcome::Failed(Failure::Draining), effects);
    }

    /// Ends a job wherever it is: it leaves its line, and grants that only it was waiting for are broken off.
    pub(crate) fn drop_job(&mut self, id: JobId, outcome: Outcome, effects: &mut Effects) {
        let Some(job) = self.jobs.get(id.0) else { return };
        let (line, running, model) = (job.line(), job.running, job.model());
        self.leave_line(id);
        self.end(id, outcome, effects);
        if running > 0 && model.is_some() {
            self.abort_orphans(id, effects);
        }
        if let Some(line) = line {
            self.settle_servers(line, effects);
        }
    }

    /// Breaks off grants in which every step's job has ended, `id`'s among them.
    fn abort_orphans(&mut self, id: JobId, effects: &mut Effects) {
        let jobs = &self.jobs;
        for (instance, data) in self.instances.iter_mut() {
            let Some(running) = data.slot.running_mut() else { continue };
            for grant in running.iter_mut().filter(|grant| grant.steps.iter().any(|step| step.job == id)) {
                let orphaned = grant.steps.iter().all(|step| jobs.get(step.job.0).is_none());
                if orphaned && grant.aborted == Aborted::No {
                    grant.aborted = Aborted::Yes;
                    effects.push(Effect::Abort { attempt: grant.attempt, instance, cause: AbortCause::Cancelled });
                }
            }
        }
    }

    /// Gives a waiting job its entry in the index of expiries.
    pub(crate) fn arm_expiry(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id.0) else { return };
        let Some(line) = job.line() else { return };
        let shortest = self.shortest(job, line);
        let expires = job.runs_out(shortest).map(|(due, kind)| (due.max(self.now), kind));
        if let Some((due, _)) = expires {
            self.expiry.insert(due, id);
        }
        if let Some(job) = self.jobs.get_mut(id.0) {
            job.set_expires(expires);
        }
    }

    pub(crate) fn disarm_expiry(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id.0) else { return };
        if let Some((due, _)) = job.take_expires() {
            self.expiry.remove(due, id);
        }
    }

    /// Ends the waiting jobs that were due by `until`.
    pub(crate) fn expire(&mut self, until: Time, effects: &mut Effects) {
        while let Some(id) = self.expiry.pop_due(until) {
            let Some((_, kind)) = self.jobs.get_mut(id.0).and_then(|job| job.take_expires()) else { continue };
            let still = match kind {
                Overdue::MaxWait => true,
                Overdue::Hopeless => self.jobs.get(id.0).is_some_and(|job| {
                    job.line()
                        .is_some_and(|line| job.runs_out(self.shortest(job, line)).is_some_and(|due| due.0 <= until))
                }),
            };
            if still {
                self.drop_job(id, Outcome::TimedOut(kind), effects);
            } else {
                self.arm_expiry(id);
            }
        }
    }
}
