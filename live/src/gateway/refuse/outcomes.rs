//! What is answered when the scheduler ends a job.

use std::time::Duration;

use windtunnel_core::{Failure, Finish, GrantFailure, Outcome, Overdue, Span};

use super::{Reason, Refusal, words};

/// Where no prediction says when it is worth asking again.
const SOON: Duration = Duration::from_secs(1);

/// What is answered to a job that ended without an answer; `waits` says what it last waited for.
pub(in crate::gateway) fn of_finish(finish: &Finish, waits: Option<&str>) -> Refusal {
    match finish.outcome {
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
        Core::Broken { retry_after } => {
            plain("the model failed several times and is not tried for a while".to_owned()).after(duration(retry_after))
        }
        Core::CannotFit { needs, room } => {
            plain(format!("the model needs {needs} of memory and there can be {room} at most"))
        }
    }
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
        Failure::Broken => "the model failed several times and is not tried for a while",
        Failure::CannotFit { needs, room } => {
            let message = format!("the model needs {needs} of memory and there can be {room} at most");
            return Refusal::new(words::failed(failure), message);
        }
    };
    let refusal = Refusal::new(words::failed(failure), message);
    match failure {
        Failure::Step(_) | Failure::Broken => refusal.after(SOON),
        Failure::ModelRemoved | Failure::CannotFit { .. } => refusal,
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
