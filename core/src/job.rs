//! A job from its arrival to its end.
//!
//! A job that waited behind many others lies in no cache when its turn comes, and a long queue takes as long as it takes to
//! fetch its jobs. So a job and its number fill two cache lines: what few jobs have is kept apart, and whether something is
//! known stands beside it in a byte instead of the word that an `Option` takes. It is serialised as [`form::Form`].

mod form;

use alloc::{boxed::Box, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Class, Finish, JobId, LabelId, ModelId, Needs, Order, Outcome, Overdue, Quality, Span, Submission, Time,
    Wanted,
    queue::{LineId, Rank},
};
use form::Form;

/// A body counts as no more than this, so that the sum over a queue does not overflow.
pub(crate) const MOST_BODY: Bytes = Bytes::from_mib(1 << 16);

/// The number of no line and of no model.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
pub(crate) struct Job {
    pub label: LabelId,
    pub target: u32,
    line: u32,
    model: u32,
    pub arrived: Time,
    deadline: Time,
    pub body: Bytes,
    /// All its inputs, how many make a step, and how many steps that gives.
    pub inputs: u32,
    pub chunk: u32,
    pub steps: u32,
    /// Steps granted so far in order, steps under way, steps done.
    pub granted: u32,
    pub running: u32,
    pub done: u32,
    /// Its arrival, or the end of its last step.
    pub progress: Time,
    started: Time,
    first_token: Time,
    expires: Time,
    pub prompt_tokens: u32,
    max_tokens: u32,
    pub class: Class,
    pub hopeless: Hopeless,
    pub requeued: Requeued,
    /// Of what it runs out, where it has an entry in the index of expiries.
    overdue: Option<Overdue>,
    has_deadline: bool,
    has_started: bool,
    has_first_token: bool,
    has_max_tokens: bool,
    rare: Option<Box<Rare>>,
}

/// What few jobs have.
#[derive(Clone, Debug, Default)]
struct Rare {
    /// What it asked for, unless it is just the model that its target is named after.
    ask: Option<Ask>,
    max_wait: Option<Span>,
    /// Steps to be done again.
    again: Vec<u32>,
}

/// What a client asked for, from which its target follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub wanted: Wanted,
    pub quality: Option<Quality>,
    pub needs: Needs,
}

/// Whether a job that can no longer meet its deadline is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hopeless {
    Kept,
    Dropped,
}

/// Whether a failed step has sent the job back to its place before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Requeued {
    Never,
    Once,
}

impl Hopeless {
    /// Whether it is dropped.
    pub fn of(dropped: bool) -> Hopeless {
        if dropped { Hopeless::Dropped } else { Hopeless::Kept }
    }
}

impl Ask {
    #[inline]
    pub fn of(submission: &Submission) -> Ask {
        Ask { wanted: submission.wanted, quality: submission.quality, needs: submission.needs }
    }

    /// The model that a target is named after, and nothing else.
    #[inline]
    fn usual(target: u32) -> Ask {
        Ask { wanted: Wanted::Model(ModelId(target)), quality: None, needs: Needs::NONE }
    }
}

impl Job {
    /// A job that arrives now, in steps of `chunk` inputs, is written over this one; its class drops hopeless jobs or does
    /// not.
    #[inline]
    pub fn renew(
        &mut self,
        submission: &Submission,
        class: Class,
        target: u32,
        chunk: u32,
        drops: Hopeless,
        now: Time,
    ) {
        self.renew_plain(submission, class, target, chunk, drops, now);
        let (ask, max_wait) = (Ask::of(submission), submission.max_wait);
        if ask != Ask::usual(target) || max_wait.is_some() {
            self.rare = Some(Box::new(Rare { ask: Some(ask), max_wait, again: Vec::new() }));
        }
    }

    /// The same for a job that asks for the model its target is named after, of any quality, and waits as long as it takes.
    #[inline(always)]
    pub fn renew_plain(
        &mut self,
        submission: &Submission,
        class: Class,
        target: u32,
        chunk: u32,
        drops: Hopeless,
        now: Time,
    ) {
        // First, since it is a call: then what is written below goes straight from one place to the other.
        if self.rare.is_some() {
            self.forget_rare();
        }
        let inputs = submission.inputs.max(1);
        self.label = submission.label;
        self.target = target;
        self.line = NONE;
        self.model = NONE;
        self.arrived = now;
        self.progress = now;
        self.has_deadline = submission.deadline.is_some();
        self.deadline = now.after(submission.deadline.unwrap_or(Span::ZERO));
        self.body = submission.body.min(MOST_BODY);
        self.inputs = inputs;
        self.chunk = chunk;
        self.steps = if chunk >= inputs { 1 } else { inputs.div_ceil(chunk) };
        (self.granted, self.running, self.done) = (0, 0, 0);
        self.prompt_tokens = submission.prompt_tokens;
        self.has_max_tokens = submission.max_tokens.is_some();
        self.max_tokens = submission.max_tokens.unwrap_or(0);
        self.class = class;
        self.hopeless = submission.drop_hopeless.map_or(drops, Hopeless::of);
        self.requeued = Requeued::Never;
        self.overdue = None;
        self.has_started = false;
        self.has_first_token = false;
    }

    #[cold]
    fn forget_rare(&mut self) {
        self.rare = None;
    }

    /// The line it waits in; `None` once its last step is granted.
    #[inline]
    pub fn line(&self) -> Option<LineId> {
        (self.line != NONE).then_some(LineId(self.line))
    }

    #[inline]
    pub fn set_line(&mut self, line: Option<LineId>) {
        self.line = line.map_or(NONE, |line| line.0);
    }

    /// The model that runs its first step, once it is granted.
    #[inline]
    pub fn model(&self) -> Option<ModelId> {
        (self.model != NONE).then_some(ModelId(self.model))
    }

    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        self.has_deadline.then_some(self.deadline)
    }

    #[inline]
    pub fn started(&self) -> Option<Time> {
        self.has_started.then_some(self.started)
    }

    /// Its first step starts, unless one has: the moment and the model are kept.
    #[inline]
    pub fn start(&mut self, now: Time, model: ModelId) {
        if !self.has_started {
            (self.has_started, self.started) = (true, now);
        }
        if self.model == NONE {
            self.model = model.0;
        }
    }

    /// Its first token was out then, unless one was before.
    #[inline]
    pub fn token(&mut self, at: Option<Time>) {
        if let (Some(at), false) = (at, self.has_first_token) {
            (self.has_first_token, self.first_token) = (true, at);
        }
    }

    /// The most tokens its client wants back, where it says.
    pub fn max_tokens(&self) -> Option<u32> {
        self.has_max_tokens.then_some(self.max_tokens)
    }

    pub fn max_wait(&self) -> Option<Span> {
        self.rare.as_ref()?.max_wait
    }

    /// Its entry in the index of expiries, while it waits without a running step.
    #[inline]
    pub fn expires(&self) -> Option<(Time, Overdue)> {
        self.overdue.map(|overdue| (self.expires, overdue))
    }

    #[inline]
    pub fn set_expires(&mut self, expires: Option<(Time, Overdue)>) {
        self.overdue = expires.map(|(_, overdue)| overdue);
        self.expires = expires.map_or(Time::ZERO, |(due, _)| due);
    }

    /// Takes its entry in the index of expiries out.
    #[inline]
    pub fn take_expires(&mut self) -> Option<(Time, Overdue)> {
        self.overdue.take().map(|overdue| (self.expires, overdue))
    }

    /// What its client asked for.
    pub fn ask(&self) -> Ask {
        self.rare.as_ref().and_then(|rare| rare.ask).unwrap_or(Ask::usual(self.target))
    }

    /// Gives it another target for what its client asked for.
    pub fn set_target(&mut self, target: u32) {
        let ask = self.ask();
        self.target = target;
        if ask != Ask::usual(target) {
            self.rare.get_or_insert_default().ask = Some(ask);
        }
    }

    /// Steps that have to be done again.
    #[inline]
    pub fn again(&self) -> &[u32] {
        self.rare.as_ref().map_or(&[], |rare| &rare.again)
    }

    /// A step has to be done again.
    pub fn do_again(&mut self, step: u32) {
        self.rare.get_or_insert_default().again.push(step);
    }

    /// The inputs of one step: the last may be smaller.
    #[inline]
    pub fn weight_of(&self, step: u32) -> u32 {
        if self.steps == 1 {
            return self.inputs;
        }
        self.chunk.min(self.inputs - step.saturating_mul(self.chunk).min(self.inputs))
    }

    /// The inputs of the steps that still have to be granted.
    #[inline]
    pub fn waiting_weight(&self) -> u64 {
        if self.steps == 1 {
            return if self.running + self.done == 0 { u64::from(self.inputs) } else { 0 };
        }
        let fresh = self.inputs - self.granted.saturating_mul(self.chunk).min(self.inputs);
        u64::from(fresh) + self.again().iter().map(|&step| u64::from(self.weight_of(step))).sum::<u64>()
    }

    /// The step that would be granted next.
    #[inline]
    pub fn next_step(&self) -> Option<u32> {
        if self.steps == 1 && self.granted == 0 {
            return Some(0);
        }
        self.again().last().copied().or((self.granted < self.steps).then_some(self.granted))
    }

    /// Whether it is one step that has never been granted, and will not run out of time.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.steps == 1 && self.granted == 0 && self.overdue.is_none()
    }

    /// Takes the only step of a job of which nothing has been granted and says that it runs now; it waits no longer.
    #[inline]
    pub fn take_only_step(&mut self, now: Time, model: ModelId) {
        (self.granted, self.running) = (1, 1);
        (self.has_started, self.started) = (true, now);
        self.model = model.0;
        self.line = NONE;
    }

    /// Counts the next step as granted.
    #[inline]
    pub fn take_step(&mut self) {
        if self.rare.as_mut().and_then(|rare| rare.again.pop()).is_none() {
            self.granted += 1;
        }
        self.running += 1;
    }

    #[inline]
    pub fn rank(&self, id: JobId, order: Order) -> Rank {
        Rank::of(order, id, self.deadline())
    }

    #[inline]
    pub fn finish(&self, job: JobId, outcome: Outcome) -> Finish {
        Finish {
            job,
            outcome,
            label: self.label,
            class: self.class,
            model: self.model(),
            arrived: self.arrived,
            started: self.started(),
            first_token: self.has_first_token.then_some(self.first_token),
            deadline: self.deadline(),
        }
    }
}

/// Nothing yet; what a new job is written over.
impl Default for Job {
    fn default() -> Job {
        Job {
            label: LabelId(0),
            target: 0,
            line: NONE,
            model: NONE,
            arrived: Time::ZERO,
            deadline: Time::ZERO,
            body: Bytes::ZERO,
            inputs: 1,
            chunk: 1,
            steps: 1,
            granted: 0,
            running: 0,
            done: 0,
            progress: Time::ZERO,
            started: Time::ZERO,
            first_token: Time::ZERO,
            expires: Time::ZERO,
            prompt_tokens: 0,
            max_tokens: 0,
            class: Class::Interactive,
            hopeless: Hopeless::Kept,
            requeued: Requeued::Never,
            overdue: None,
            has_deadline: false,
            has_started: false,
            has_first_token: false,
            has_max_tokens: false,
            rare: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_and_its_number_fill_two_cache_lines() {
        assert!(size_of::<Job>() + size_of::<JobId>() <= 128, "{}", size_of::<Job>());
    }
}
