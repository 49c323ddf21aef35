//! The short way of an arrival.
//!
//! Where every model is in its place and each has one line, an interactive job that is admitted whatever its deadline has two
//! things to meet: a free instance, on which it starts at once without standing in the line, or none, and then it waits.
//! Nobody else is concerned: no device but that of its instance can change its mode, and nothing of a lower class waits.
//! This is what [`Scheduler::take_in`] would do on the long way, which is taken wherever anything else could matter.

use crate::{
    Admission, Class, Effects, GrantedStep, JobId, ModelId, Note, Right, Scheduler, Submission, Wanted,
    job::{Hopeless, Job},
    queue::{LineId, Rank},
};

/// What an arrival meets on the short way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// An instance has a free slot.
    Starts,
    /// None has.
    Waits,
}

impl Scheduler {
    /// The model that an arrival is for and what it meets there, where the short way is open.
    #[inline]
    pub(crate) fn short_arrival(&self, submission: &Submission, class: Class) -> Option<(ModelId, Arrival)> {
        let Wanted::Model(model) = submission.wanted else { return None };
        let state = self.models.get(model.index())?;
        let short = class == Class::Interactive
            && self.is_plain()
            && submission.needs.is_empty()
            && submission.quality.is_none()
            && !state.removed
            && submission.max_wait.is_none()
            && self.is_one_step(submission, model)
            && (submission.deadline.is_none() || self.is_always_admitted(submission));
        let line = &self.lines[self.targets[model.index()].shared.index()];
        let waits = line.class(class).len() > 0;
        match state.open {
            0 if short && self.unengaged == 0 && self.has_place(submission) => Some((model, Arrival::Waits)),
            1.. if short && !waits => Some((model, Arrival::Starts)),
            _ => None,
        }
    }

    /// Whether a job is one step that fits the batches of its model.
    #[inline]
    fn is_one_step(&self, submission: &Submission, model: ModelId) -> bool {
        let inputs = submission.inputs;
        let fits = self.smallest_batch_of(model.0).is_none_or(|limit| inputs <= limit);
        inputs > 0 && fits && inputs <= self.chunk(submission, model.0)
    }

    /// Whether an interactive job is admitted and kept whatever its deadline.
    #[inline]
    fn is_always_admitted(&self, submission: &Submission) -> bool {
        let policy = &self.policy().classes[Class::Interactive.index()];
        policy.admission == Admission::None && !submission.drop_hopeless.unwrap_or(policy.drop_hopeless)
    }

    /// Whether one more interactive job may wait.
    #[inline]
    fn has_place(&self, submission: &Submission) -> bool {
        let place = Class::Interactive.index();
        let (policy, queued) = (&self.policy().classes[place], &self.queued[place]);
        policy.max_queued.is_none_or(|limit| queued.jobs < u64::from(limit))
            && queued.bytes.saturating_add(submission.body.get()) <= policy.max_queued_bytes.get()
    }

    /// Takes a job in on the short way.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        id: JobId,
        submission: &Submission,
        model: ModelId,
        way: Arrival,
        effects: &mut Effects,
    ) {
        let (now, class) = (self.now, Class::Interactive);
        let drops = Hopeless::of(self.policy().classes[class.index()].drop_hopeless);
        let chunk = self.chunk(submission, model.0);
        let line = self.targets[model.index()].shared;
        self.jobs.insert_over(id.0, Job::default, |job| {
            job.renew_plain(submission, class, model.0, chunk, drops, now);
            match way {
                Arrival::Starts => job.take_only_step(now, model),
                Arrival::Waits => job.set_line(Some(line)),
            }
        });
        match way {
            Arrival::Starts => self.start_at_once(id, submission.inputs, model, effects),
            Arrival::Waits => self.wait_in_line(id, submission, line, effects),
        }
    }

    /// Grants the only step of a job on the free instance of its model that should end it first; ties go by device.
    fn start_at_once(&mut self, id: JobId, weight: u32, model: ModelId, effects: &mut Effects) {
        let Some(job) = self.jobs.get(id.0) else { return };
        let servers = self.targets[model.index()].servers.iter().copied();
        let open = servers.map(|one| (one, &self.instances[one])).filter(|(_, data)| data.free() > 0);
        let best = open.min_by_key(|(_, data)| self.step_time(data, job, weight));
        let Some((instance, _)) = best else { return };
        let mut steps = self.spare_steps.pop().unwrap_or_default();
        let step = GrantedStep { job: id, step: 0, of: 1, weight };
        steps.push(step);
        effects.add_step(step);
        self.begin_grant(instance, Class::Interactive, Right::Order, steps, weight, effects);
    }

    /// Puts a job into the line of its model and says why it waits.
    #[inline]
    fn wait_in_line(&mut self, id: JobId, submission: &Submission, line: LineId, effects: &mut Effects) {
        let class = Class::Interactive;
        let order = self.policy().classes[class.index()].order;
        let rank = Rank::of(order, id, submission.deadline.map(|span| self.now.after(span)));
        self.lines[line.index()].class_mut(class).insert(rank, u64::from(submission.inputs));
        let queued = &mut self.queued[class.index()];
        queued.jobs += 1;
        queued.bytes += submission.body.get();
        if effects.hold_reasons_of(class) {
            let reason = self.reason(id, class, line);
            effects.note(Note::Waits { job: id, reason });
        }
    }
}
