//! What is answered when the scheduler ends a job.

use std::time::Duration;

use windtunnel_core::{ExitCause, Failure, Finish, GrantFailure, LoadFailure, Outcome, Overdue, Span, Time};

use super::{Reason, Refusal, words};
use crate::dispatcher::{Trouble, TroubleCause};

/// Where no prediction says when it is worth asking again.
const SOON: Duration = Duration::from_secs(1);

/// What is known beside the outcome of a job that ended without an answer.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct Beside {
    /// What it last waited for.
    pub waits: Option<String>,
    /// What is wrong with its model, where it fails again and again.
    pub trouble: Option<Trouble>,
    pub now: Time,
}

/// What is answered to a job that ended without an answer.
pub(in crate::gateway) fn of_finish(finish: &Finish, beside: &Beside) -> Refusal {
    let waits = beside.waits.as_deref();
    match finish.outcome {
        Outcome::Refused(windtunnel_core::Refusal::Broken { retry_after }) => {
            broken(beside.trouble.and_then(|trouble| trouble.cause), duration(retry_after))
        }
        Outcome::Failed(Failure::Broken) => {
            let next = beside.trouble.and_then(|trouble| trouble.next_try);
            let next = next.map_or(SOON, |at| duration(at.since(beside.now)));
            broken(beside.trouble.and_then(|trouble| trouble.cause), next)
        }
        Outcome::Refused(refusal) => of_refusal(refusal),
        Outcome::TimedOut(Overdue::MaxWait) => {
            let waits = waits.map_or(String::new(), |reason| format!(": {reason}"));
            Refusal::new(Reason::QueueExpired, format!("the request waited as long as it may{waits}")).after(SOON)
        }
        Outcome::TimedOut(Overdue::Hopeless) => {
            Refusal::new(Reason::DeadlineHopeless, "the deadline can no longer be met").never()
        }
        Outcome::Failed(failure) => of_failure(failure),
        Outcome::Completed | Outcome::Cancelled => Refusal::new(Reason::Aborted, "the request was broken off"),
    }
}

/// What is answered to a job that was not admitted.
fn of_refusal(refusal: windtunnel_core::Refusal) -> Refusal {
    use windtunnel_core::Refusal as Core;
    let plain = |message: String| Refusal::new(words::refused(refusal), message);
    match refusal {
        Core::QueueFull { limit } => plain(format!("{limit} requests of the class wait already")).after(SOON),
        Core::QueueBytesFull { limit } => {
            plain(format!("requests of the class with bodies of {limit} wait already")).after(SOON)
        }
        Core::DeadlineUnreachable { retry_after, .. } => {
            plain("the deadline cannot be met with what waits already".to_owned()).after(duration(retry_after))
        }
        Core::UnknownModel => plain("the model is not configured".to_owned()),
        Core::NoSuchVariant => plain("no variant has the quality and capabilities asked for".to_owned()),
        Core::TooLarge { limit } => plain(format!("the model takes {limit} inputs at once")),
        Core::Malformed => plain("the request has no inputs".to_owned()),
        Core::Broken { retry_after } => broken(None, duration(retry_after)),
        Core::CannotFit { needs, room } => {
            plain(format!("the model needs {needs} of memory and there can be {room} at most"))
        }
    }
}

/// What is answered for a model that fails again and again, and is tried again after `next`.
fn broken(cause: Option<TroubleCause>, next: Duration) -> Refusal {
    let cause = cause.map_or(String::new(), |cause| format!(", the last time because {}", sentence(cause)));
    let seconds = next.as_nanos().div_ceil(1_000_000_000);
    let message = format!("the model failed several times{cause}; it is tried again in {seconds} s");
    Refusal::new(Reason::ModelBroken, message).after(next)
}

fn sentence(cause: TroubleCause) -> String {
    let text = match cause {
        TroubleCause::Load(LoadFailure::Crashed) => "its process ended while it loaded",
        TroubleCause::Load(LoadFailure::OutOfMemory) => "memory ran out while it loaded",
        TroubleCause::Load(LoadFailure::Stalled) => "its load made no progress",
        TroubleCause::Load(LoadFailure::NotStarted) => "its process could not be started",
        TroubleCause::Load(LoadFailure::Stopped) => "its load was broken off",
        TroubleCause::Exit(ExitCause::Code(code)) => return format!("its process exited with code {code}"),
        TroubleCause::Exit(ExitCause::Signal(signal)) => return format!("its process was ended by signal {signal}"),
        TroubleCause::Exit(ExitCause::Wedged) => "its process made no progress",
        TroubleCause::Exit(ExitCause::OutOfMemory) => "its process ran out of memory",
    };
    text.to_owned()
}

/// What is answered where a grant came to nothing under the client's eyes.
pub(in crate::gateway) fn of_broken_grant(cause: GrantFailure) -> Refusal {
    of_failure(Failure::Step(cause))
}

/// What is answered to a job that failed.
fn of_failure(failure: Failure) -> Refusal {
    let message = match failure {
        Failure::Step(cause) => match cause {
            GrantFailure::Aborted => "the request was broken off to free memory",
            GrantFailure::Crashed => "the model's process died",
            GrantFailure::Wedged => "the model's process made no progress",
            GrantFailure::OutOfMemory => "the device ran out of memory",
            GrantFailure::Disconnected => "the connection to the model's process broke",
            GrantFailure::Rejected => "the model's process answered with an error",
        },
        Failure::ModelRemoved => "the model is no longer configured",
        Failure::Broken => return broken(None, SOON),
        Failure::Draining => "the daemon is ending",
        Failure::CannotFit { needs, room } => {
            let message = format!("the model needs {needs} of memory and there can be {room} at most");
            return Refusal::new(words::failed(failure), message);
        }
    };
    let refusal = Refusal::new(words::failed(failure), message);
    match failure {
        Failure::Step(_) | Failure::Broken | Failure::Draining => refusal.after(SOON),
        Failure::ModelRemoved | Failure::CannotFit { .. } => refusal,
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_model_has_a_cause_and_a_time() {
        let refusal = broken(Some(TroubleCause::Exit(ExitCause::Code(3))), Duration::from_millis(28_500));
        assert_eq!(
            refusal.message,
            "the model failed several times, the last time because its process exited with code 3; it is tried again in 29 s"
        );
        assert_eq!(refusal.retry, super::super::Retry::After(Duration::from_millis(28_500)));
    }
}
