//! A job from its arrival to its end.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, Class, Finish, JobId, LabelId, ModelId, Needs, Order, Outcome, Overdue, Quality, Span, Submission, Time,
    Wanted,
    queue::{LineId, Rank},
};

/// A body counts as no more than this, so that the sum over a queue does not overflow.
pub(crate) const MOST_BODY: Bytes = Bytes::from_mib(1 << 16);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub label: LabelId,
    pub class: Class,
    pub ask: Ask,
    pub target: u32,
    /// The line it waits in; `None` once its last step is granted.
    pub line: Option<LineId>,
    pub arrived: Time,
    pub deadline: Option<Time>,
    pub max_wait: Option<Span>,
    pub hopeless: Hopeless,
    pub body: Bytes,
    pub prompt_tokens: u32,
    pub max_tokens: Option<u32>,
    /// All its inputs, how many make a step, and how many steps that gives.
    pub inputs: u32,
    pub chunk: u32,
    pub steps: u32,
    /// Steps granted so far in order, steps under way, steps done, and steps to be done again.
    pub granted: u32,
    pub running: u32,
    pub done: u32,
    pub again: Vec<u32>,
    pub requeued: Requeued,
    /// Its arrival, or the end of its last step.
    pub progress: Time,
    /// Its entry in the index of expiries, while it waits without a running step.
    pub expires: Option<(Time, Overdue)>,
    pub started: Option<Time>,
    pub first_token: Option<Time>,
    pub model: Option<ModelId>,
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
}

impl Job {
    /// A job that arrives now, in steps of `chunk` inputs; its class drops hopeless jobs or does not.
    #[inline]
    pub fn new(submission: &Submission, class: Class, target: u32, chunk: u32, drops: Hopeless, now: Time) -> Job {
        let inputs = submission.inputs.max(1);
        Job {
            label: submission.label,
            class,
            ask: Ask::of(submission),
            target,
            line: None,
            arrived: now,
            deadline: submission.deadline.map(|span| now.after(span)),
            max_wait: submission.max_wait,
            hopeless: submission.drop_hopeless.map_or(drops, Hopeless::of),
            body: submission.body.min(MOST_BODY),
            prompt_tokens: submission.prompt_tokens,
            max_tokens: submission.max_tokens,
            inputs,
            chunk,
            steps: if chunk >= inputs { 1 } else { inputs.div_ceil(chunk) },
            granted: 0,
            running: 0,
            done: 0,
            again: Vec::new(),
            requeued: Requeued::Never,
            progress: now,
            expires: None,
            started: None,
            first_token: None,
            model: None,
        }
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
        u64::from(fresh) + self.again.iter().map(|&step| u64::from(self.weight_of(step))).sum::<u64>()
    }

    /// The step that would be granted next.
    #[inline]
    pub fn next_step(&self) -> Option<u32> {
        if self.steps == 1 && self.granted == 0 {
            return Some(0);
        }
        self.again.last().copied().or((self.granted < self.steps).then_some(self.granted))
    }

    /// Counts the next step as granted.
    #[inline]
    pub fn take_step(&mut self) {
        if self.again.pop().is_none() {
            self.granted += 1;
        }
        self.running += 1;
    }

    /// Whether it can no longer meet its deadline as of now, before its timer says so.
    #[inline]
    pub fn is_hopeless_by(&self, now: Time) -> bool {
        matches!(self.expires, Some((due, Overdue::Hopeless)) if due <= now)
    }

    #[inline]
    pub fn rank(&self, id: JobId, order: Order) -> Rank {
        Rank::of(order, id, self.deadline)
    }

    #[inline]
    pub fn finish(&self, job: JobId, outcome: Outcome) -> Finish {
        Finish {
            job,
            outcome,
            label: self.label,
            class: self.class,
            model: self.model,
            arrived: self.arrived,
            started: self.started,
            first_token: self.first_token,
            deadline: self.deadline,
        }
    }
}
