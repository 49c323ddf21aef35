//! Texts to be embedded: the job waits for its steps, which [`crate::gateway::batches`] runs, and answers when all have ended.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::Response;
use windtunnel_core::{Failure, Finish, GrantFailure, ModelId, Outcome, Wanted};

use super::{
    claim::Claim,
    leave::Parting,
    record::Record,
    run::{draining, stopped},
    shown::Shown,
    wish::Wish,
};
use crate::{
    Told,
    gateway::{
        answer::Answer,
        batches::{Reply, Work},
        connections::Lull,
        refuse::{Beside, Reason, Refusal, of_finish, sentence_of_wait},
        shared::{Rules, Shared},
    },
};

/// Serves a request for vectors, and says when it waits.
pub(super) async fn go(
    shared: &Arc<Shared>,
    rules: &Rules,
    wish: Box<Wish>,
    record: Box<Record>,
    shown: &mut Shown,
    lull: &Lull,
) -> Result<Response<Answer>, Refusal> {
    let (submission, wanted, arrived) = (wish.submission(), wish.named.wanted, record.arrived());
    let work = Arc::new(work(*wish));
    let mut claim = Claim::submit(shared, submission, Some(Arc::clone(&work)), record);
    shown.job = Some(claim.taken().await.ok_or_else(stopped)?);
    let _answering = shared.under_way.answering();
    match wait(shared, rules, &mut claim, &work, wanted, lull).await {
        Ok((reply, finish)) => {
            let by_record = finish.and_then(|finish| {
                let queued = finish.started?.since(finish.arrived).as_nanos();
                Some((finish.model?, Duration::from_nanos(queued)))
            });
            let model = by_record.or_else(|| taken_up(&work, arrived));
            claim.record.served(reply.status, model);
            let mut answer = Response::new(Answer::once(reply.bytes));
            *answer.status_mut() = reply.status;
            *answer.headers_mut() = reply.headers;
            shown.put(rules, model, answer.headers_mut());
            Ok(answer)
        }
        Err(refusal) => {
            shown.by = taken_up(&work, arrived);
            claim.record.refused(&refusal);
            if refusal.reason == Reason::Draining {
                claim.part(Parting::TurnedAway);
            }
            Err(refusal)
        }
    }
}

fn work(wish: Wish) -> Work {
    Work::new(wish.path, wish.headers, wish.body)
}

/// Which model took it up, and how long that took.
fn taken_up(work: &Work, arrived: Instant) -> Option<(ModelId, Duration)> {
    work.started().map(|(model, at)| (model, at.saturating_duration_since(arrived)))
}

/// Waits until the daemon ends, for as long as nothing of the work runs: what has begun may come to its end.
async fn not_to_begin(shared: &Shared, work: &Work) {
    shared.draining.cancelled().await;
    if work.is_started() {
        std::future::pending().await
    }
}

async fn wait(
    shared: &Shared,
    rules: &Rules,
    claim: &mut Claim,
    work: &Work,
    wanted: Wanted,
    lull: &Lull,
) -> Result<(Reply, Option<Finish>), Refusal> {
    let mut waits = None;
    loop {
        let told = tokio::select! {
            biased;
            told = claim.next() => told,
            () = work.refused() => return work.reply().map(|reply| (reply, None)).ok_or_else(stopped),
            () = not_to_begin(shared, work) => return Err(draining()),
            () = shared.cut.cancelled() => return Err(draining()),
        };
        match told {
            None => return Err(stopped()),
            Some(Told::Waits(reason)) => {
                waits = Some(reason);
                lull.begins();
            }
            // Grants of texts go to whoever runs batches.
            Some(Told::Taken(_) | Told::Granted(_)) => {}
            Some(Told::Finished(finish)) => {
                let rejected = Outcome::Failed(Failure::Step(GrantFailure::Rejected));
                if let Some(reply) = work.reply()
                    && (finish.outcome.is_completed() || finish.outcome == rejected)
                {
                    return Ok((reply, Some(*finish)));
                }
                if finish.outcome.is_completed() {
                    return Err(Refusal::new(Reason::RuntimeRejected, "the runtime gave no vectors"));
                }
                let now = shared.desk.clock().now();
                let waits = waits.map(|reason| sentence_of_wait(reason, &rules.catalogue, now));
                let trouble = shared.trouble(rules, wanted);
                return Err(of_finish(&finish, &Beside { waits, trouble, now }));
            }
        }
    }
}
