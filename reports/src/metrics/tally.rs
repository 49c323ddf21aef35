//! What is counted of jobs: how they ended and how long they took.

use windtunnel_core::{Failure, GrantFailure, Outcome, Overdue, Refusal};

use super::{Histogram, stretch::Absorb};

/// How a job can end, reasons included.
pub const ENDINGS: usize = 23;

/// Counts and times of a group of jobs. Counts of outcomes and all times are of the jobs that arrived in the stretch,
/// `done`, `good` and `gone` of those that ended in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Jobs that arrived.
    pub offered: u64,
    /// Jobs that were completed in the stretch, whenever they arrived.
    pub done: u64,
    /// Those of them that were in time; a job without a deadline always is.
    pub good: u64,
    /// Jobs that ended in another way in the stretch, whenever they arrived.
    pub gone: u64,
    /// How the jobs ended that were not completed, by their places in [`REASONS`].
    pub endings: [u64; ENDINGS],
    /// The sum of the times from arrival to the end of the jobs that were not completed, in nanoseconds.
    pub other_stays: u128,
    /// From arrival to the start of the first step, completed jobs.
    pub wait: Histogram,
    /// From arrival to the first token, completed jobs of which it is known.
    pub ttft: Histogram,
    /// From the start of the first step to the end of the last, completed jobs.
    pub service: Histogram,
    /// From arrival to the end, completed jobs.
    pub latency: Histogram,
}

/// The kinds of ends that reports count apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every step ran.
    Completed,
    /// Not admitted.
    Rejected,
    /// Waited too long.
    TimedOut,
    /// A step failed or the model went away.
    Failed,
    /// The client went away.
    Cancelled,
}

/// One way to end: its kind and its name among the reasons of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind.
    pub ending: Ending,
    /// The name, in words that join with underscores.
    pub name: &'static str,
}

/// All ways to end.
pub const REASONS: [Reason; ENDINGS] = [
    Reason { ending: Ending::Completed, name: "completed" },
    Reason { ending: Ending::Rejected, name: "queue_full" },
    Reason { ending: Ending::Rejected, name: "queue_bytes_full" },
    Reason { ending: Ending::Rejected, name: "deadline_unreachable" },
    Reason { ending: Ending::Rejected, name: "unknown_model" },
    Reason { ending: Ending::Rejected, name: "no_such_variant" },
    Reason { ending: Ending::Rejected, name: "too_large" },
    Reason { ending: Ending::Rejected, name: "malformed" },
    Reason { ending: Ending::TimedOut, name: "max_wait" },
    Reason { ending: Ending::TimedOut, name: "hopeless" },
    Reason { ending: Ending::Failed, name: "aborted" },
    Reason { ending: Ending::Failed, name: "crashed" },
    Reason { ending: Ending::Failed, name: "wedged" },
    Reason { ending: Ending::Failed, name: "out_of_memory" },
    Reason { ending: Ending::Failed, name: "disconnected" },
    Reason { ending: Ending::Failed, name: "rejected_by_runtime" },
    Reason { ending: Ending::Failed, name: "model_removed" },
    Reason { ending: Ending::Cancelled, name: "cancelled" },
    Reason { ending: Ending::Rejected, name: "model_broken" },
    Reason { ending: Ending::Rejected, name: "cannot_fit" },
    Reason { ending: Ending::Failed, name: "model_broke" },
    Reason { ending: Ending::Failed, name: "does_not_fit" },
    Reason { ending: Ending::Rejected, name: "draining" },
];

/// The place of `outcome` in [`REASONS`].
pub fn reason_index(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Completed => 0,
        Outcome::Refused(refusal) => match refusal {
            Refusal::QueueFull { .. } => 1,
            Refusal::QueueBytesFull { .. } => 2,
            Refusal::DeadlineUnreachable { .. } => 3,
            Refusal::UnknownModel => 4,
            Refusal::NoSuchVariant => 5,
            Refusal::TooLarge { .. } => 6,
            Refusal::Malformed => 7,
            Refusal::Broken { .. } => 18,
            Refusal::CannotFit { .. } => 19,
        },
        Outcome::TimedOut(overdue) => match overdue {
            Overdue::MaxWait => 8,
            Overdue::Hopeless => 9,
        },
        Outcome::Failed(failure) => match failure {
            Failure::Step(GrantFailure::Aborted) => 10,
            Failure::Step(GrantFailure::Crashed) => 11,
            Failure::Step(GrantFailure::Wedged) => 12,
            Failure::Step(GrantFailure::OutOfMemory) => 13,
            Failure::Step(GrantFailure::Disconnected) => 14,
            Failure::Step(GrantFailure::Rejected) => 15,
            Failure::ModelRemoved => 16,
            Failure::Broken => 20,
            Failure::CannotFit { .. } => 21,
            Failure::Draining => 22,
        },
        Outcome::Cancelled => 17,
    }
}

impl Tally {
    /// How many ended in this way.
    pub fn ended(&self, ending: Ending) -> u64 {
        if ending == Ending::Completed {
            return self.completed();
        }
        REASONS.iter().zip(self.endings).filter(|(reason, _)| reason.ending == ending).map(|(_, count)| count).sum()
    }

    /// How many were completed.
    pub fn completed(&self) -> u64 {
        self.latency.count()
    }

    /// How many had not ended when the run did.
    pub fn unfinished(&self) -> u64 {
        let lost: u64 = self.endings.iter().sum();
        self.offered.saturating_sub(self.completed() + lost)
    }
}

impl Absorb for Tally {
    fn absorb(&mut self, other: Tally) {
        self.offered += other.offered;
        self.done += other.done;
        self.good += other.good;
        self.gone += other.gone;
        self.endings.iter_mut().zip(other.endings).for_each(|(mine, theirs)| *mine += theirs);
        self.other_stays += other.other_stays;
        self.wait.absorb(other.wait);
        self.ttft.absorb(other.ttft);
        self.service.absorb(other.service);
        self.latency.absorb(other.latency);
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_core::{Bytes, Span, Time};

    use super::*;

    #[test]
    fn every_outcome_has_its_reason() {
        let refused = Refusal::DeadlineUnreachable { predicted: Time::ZERO, retry_after: Span::ZERO };
        for (outcome, name) in [
            (Outcome::Completed, "completed"),
            (Outcome::Refused(Refusal::QueueFull { limit: 1 }), "queue_full"),
            (Outcome::Refused(Refusal::QueueBytesFull { limit: Bytes::ZERO }), "queue_bytes_full"),
            (Outcome::Refused(refused), "deadline_unreachable"),
            (Outcome::Refused(Refusal::TooLarge { limit: 1 }), "too_large"),
            (Outcome::Refused(Refusal::Malformed), "malformed"),
            (Outcome::TimedOut(Overdue::Hopeless), "hopeless"),
            (Outcome::Failed(Failure::Step(GrantFailure::Rejected)), "rejected_by_runtime"),
            (Outcome::Failed(Failure::ModelRemoved), "model_removed"),
            (Outcome::Cancelled, "cancelled"),
            (Outcome::Refused(Refusal::Broken { retry_after: Span::ZERO }), "model_broken"),
            (Outcome::Refused(Refusal::CannotFit { needs: Bytes::ZERO, room: Bytes::ZERO }), "cannot_fit"),
            (Outcome::Failed(Failure::Broken), "model_broke"),
            (Outcome::Failed(Failure::CannotFit { needs: Bytes::ZERO, room: Bytes::ZERO }), "does_not_fit"),
            (Outcome::Failed(Failure::Draining), "draining"),
        ] {
            assert_eq!(REASONS[reason_index(outcome)].name, name);
        }
    }

    #[test]
    fn what_arrived_ended_or_is_unfinished() {
        let mut tally = Tally { offered: 5, ..Tally::default() };
        tally.latency.record(1);
        tally.latency.record(2);
        tally.endings[3] = 1;
        tally.endings[5] = 1;
        assert_eq!((tally.ended(Ending::Completed), tally.ended(Ending::Rejected), tally.unfinished()), (2, 2, 1));
    }
}
