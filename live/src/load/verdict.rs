//! What an end as a client sees it is called in records: as the scheduler's own end of the same kind, where the answer names
//! it. Limits that a client is not told are 0.

use windtunnel_core::{Bytes, Failure, GrantFailure, Outcome, Overdue, Refusal, Sent, Span, Time};

use super::exchange::{Ending, Seen};

/// How the request ended.
pub(super) fn outcome(seen: &Seen) -> Outcome {
    match &seen.ending {
        Ending::Answered => Outcome::Completed,
        Ending::GaveUp => Outcome::Cancelled,
        Ending::TimedOut => step(GrantFailure::Wedged),
        Ending::Broken(_) => step(GrantFailure::Disconnected),
        Ending::Spoilt { reason } => named(reason, seen.ended, Span::ZERO)
            .filter(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::TimedOut(_)))
            .unwrap_or(step(GrantFailure::Rejected)),
        Ending::Refused { status, reason, retry_after } => {
            let named = reason.as_deref().and_then(|word| named(word, seen.ended, *retry_after));
            let fits = |outcome: &Outcome| is_refusal(*status) || !matches!(outcome, Outcome::Refused(_));
            named.filter(fits).unwrap_or_else(|| of_status(*status, *retry_after))
        }
    }
}

/// Whether the status says that the endpoint would not take a request that it may take at another time. Every other one says
/// that the request, or the endpoint, is wrong, whatever word goes with it.
const fn is_refusal(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// The failure of a grant that came to nothing; `None` for one that did not.
pub(super) fn failure(outcome: Outcome) -> Option<GrantFailure> {
    match outcome {
        Outcome::Completed => None,
        Outcome::Failed(Failure::Step(cause)) => Some(cause),
        Outcome::Cancelled | Outcome::TimedOut(_) => Some(GrantFailure::Aborted),
        Outcome::Failed(Failure::ModelRemoved | Failure::Broken | Failure::Draining | Failure::CannotFit { .. })
        | Outcome::Refused(_) => Some(GrantFailure::Rejected),
    }
}

/// Whether the client had bytes of an answer.
pub(super) fn sent(seen: &Seen) -> Sent {
    if seen.first_token.is_some() { Sent::Something } else { Sent::Nothing }
}

const fn step(cause: GrantFailure) -> Outcome {
    Outcome::Failed(Failure::Step(cause))
}

/// The end that a daemon's word for a reason names.
fn named(word: &str, at: Time, retry_after: Span) -> Option<Outcome> {
    Some(match word {
        "queue_full" | "key_limit" => Outcome::Refused(Refusal::QueueFull { limit: 0 }),
        "queue_bytes_full" => Outcome::Refused(Refusal::QueueBytesFull { limit: Bytes::ZERO }),
        "deadline_unreachable" => {
            Outcome::Refused(Refusal::DeadlineUnreachable { predicted: at.after(retry_after), retry_after })
        }
        "model_not_found" => Outcome::Refused(Refusal::UnknownModel),
        "no_such_variant" => Outcome::Refused(Refusal::NoSuchVariant),
        "too_many_inputs" => Outcome::Refused(Refusal::TooLarge { limit: 0 }),
        "no_inputs" => Outcome::Refused(Refusal::Malformed),
        "model_broken" => Outcome::Refused(Refusal::Broken { retry_after }),
        "cannot_fit" => Outcome::Refused(Refusal::CannotFit { needs: Bytes::ZERO, room: Bytes::ZERO }),
        "queue_expired" => Outcome::TimedOut(Overdue::MaxWait),
        "deadline_hopeless" => Outcome::TimedOut(Overdue::Hopeless),
        "model_removed" => Outcome::Failed(Failure::ModelRemoved),
        "aborted" => step(GrantFailure::Aborted),
        "runtime_crashed" => step(GrantFailure::Crashed),
        "runtime_wedged" => step(GrantFailure::Wedged),
        "out_of_memory" => step(GrantFailure::OutOfMemory),
        "runtime_disconnected" => step(GrantFailure::Disconnected),
        "runtime_error" => step(GrantFailure::Rejected),
        _ => return None,
    })
}

/// Without a word that is known: too many requests are a full queue, a service that is not there is a broken model, and
/// everything else is an error of the runtime.
fn of_status(status: u16, retry_after: Span) -> Outcome {
    match status {
        429 => Outcome::Refused(Refusal::QueueFull { limit: 0 }),
        503 => Outcome::Refused(Refusal::Broken { retry_after }),
        _ => step(GrantFailure::Rejected),
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_reports::metrics::{Ending as Counted, REASONS};

    use super::*;
    use crate::load::exchange::Break;

    fn counted(ending: Ending) -> (Counted, &'static str) {
        let seen = Seen { number: 0, sent: Time::ZERO, first_token: None, tokens: None, ended: Time::ZERO, ending };
        let reason = REASONS[windtunnel_reports::metrics::reason_index(outcome(&seen))];
        (reason.ending, reason.name)
    }

    fn refused(status: u16, reason: Option<&str>) -> (Counted, &'static str) {
        counted(Ending::Refused { status, reason: reason.map(str::to_owned), retry_after: Span::ZERO })
    }

    #[test]
    fn the_word_of_the_endpoint_is_the_word_of_the_report() {
        for word in
            ["queue_full", "queue_bytes_full", "deadline_unreachable", "no_such_variant", "model_broken", "cannot_fit"]
        {
            assert_eq!(refused(503, Some(word)), (Counted::Rejected, word));
        }
        assert_eq!(refused(503, Some("queue_expired")), (Counted::TimedOut, "max_wait"));
        assert_eq!(refused(503, Some("runtime_crashed")), (Counted::Failed, "crashed"));
    }

    #[test]
    fn what_can_never_be_answered_has_failed() {
        for (status, word) in
            [(404, "model_not_found"), (400, "no_such_variant"), (400, "too_many_inputs"), (500, "model_broken")]
        {
            assert_eq!(refused(status, Some(word)), (Counted::Failed, "rejected_by_runtime"), "{status} {word}");
        }
        assert_eq!(refused(429, Some("queue_expired")), (Counted::TimedOut, "max_wait"));
        assert_eq!(refused(404, Some("model_removed")), (Counted::Failed, "model_removed"));
    }

    #[test]
    fn without_a_word_the_status_says_it() {
        assert_eq!(refused(429, None), (Counted::Rejected, "queue_full"));
        assert_eq!(refused(503, Some("Loading model")), (Counted::Rejected, "model_broken"));
        assert_eq!(refused(500, None), (Counted::Failed, "rejected_by_runtime"));
        assert_eq!(refused(401, None), (Counted::Failed, "rejected_by_runtime"));
    }

    #[test]
    fn an_answer_that_had_begun_is_never_a_refusal() {
        let spoilt = |reason: &str| counted(Ending::Spoilt { reason: reason.to_owned() });
        assert_eq!(spoilt("queue_full"), (Counted::Failed, "rejected_by_runtime"));
        assert_eq!(spoilt("out_of_memory"), (Counted::Failed, "out_of_memory"));
        assert_eq!(counted(Ending::Broken(Break::Torn)), (Counted::Failed, "disconnected"));
        assert_eq!(counted(Ending::TimedOut), (Counted::Failed, "wedged"));
        assert_eq!(counted(Ending::GaveUp), (Counted::Cancelled, "cancelled"));
    }
}
