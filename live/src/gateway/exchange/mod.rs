//! One request for inference, from its body to the last byte of its answer.

mod able;
mod claim;
mod held;
mod leave;
mod question;
mod record;
mod relay;
mod run;
mod shown;
mod vectors;
mod wish;

pub(super) use held::Held;
pub(super) use leave::{is_given_up, slot_free, why_broken};
pub(super) use question::question;
pub(super) use record::Record;
pub(super) use relay::Relay;
pub(super) use run::stopped;
pub(super) use wish::no_entry;

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use windtunnel_core::JobKind;

use super::{
    answer::Answer,
    body,
    connections::Lull,
    operations::Phase,
    refuse::{Reason, Refusal},
    routes::Errand,
    shared::{Rules, Shared},
};
use able::able;
use claim::Claim;
use held::Working;
use run::{Opened, Run, draining};
use shown::{Shown, streaming};
use wish::Wish;

/// Serves a request for inference, and says when it waits.
pub(super) async fn infer(
    shared: &Arc<Shared>,
    rules: &Arc<Rules>,
    errand: Errand,
    request: Box<Request<Incoming>>,
    request_id: &HeaderValue,
    lull: &Lull,
) -> Response<Answer> {
    let mut record = Record::new(shared);
    // Elsewhere, so that who waits keeps no room for what is over.
    let wish = Box::pin(understood(shared, rules, errand, request, request_id, &mut record)).await;
    let wish = match wish.and_then(|wish| able(rules, &wish).map(|()| wish)) {
        Ok(wish) => wish,
        Err(refusal) => {
            record.refused(&refusal);
            return refusal.answer(errand.dialect, request_id);
        }
    };
    record.class = Some(wish.class);
    let mut shown = Shown::of(&wish);
    let answered = match wish.errand.kind {
        JobKind::Embedding => Box::pin(vectors::go(shared, rules, wish, record, &mut shown, lull)).await,
        JobKind::Chat | JobKind::Completion | JobKind::Rerank | JobKind::Audio => {
            generate(shared, rules, wish, record, &mut shown, lull).await
        }
    };
    answered.unwrap_or_else(|refusal| {
        let mut answer = refusal.answer(errand.dialect, request_id);
        shown.put(rules, None, answer.headers_mut());
        answer
    })
}

/// Takes a request in. When this is over, nothing of the client's buffers is kept.
async fn understood(
    shared: &Shared,
    rules: &Rules,
    errand: Errand,
    request: Box<Request<Incoming>>,
    request_id: &HeaderValue,
    record: &mut Record,
) -> Result<Box<Wish>, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = record.comes_from(rules.keys.caller(&parts.headers).map_err(no_entry)?);
    serving(shared)?;
    let (limit, time) = (rules.settings.body_limit, rules.settings.body_time);
    let bytes = tokio::select! {
        biased;
        bytes = body::take(&parts.headers, body, limit, time) => bytes?,
        () = shared.draining.cancelled() => return Err(draining()),
    };
    Wish::of(rules, errand, &parts, caller, bytes, request_id).map(Box::new)
}

/// Whether work is taken.
fn serving(shared: &Shared) -> Result<(), Refusal> {
    match shared.phase() {
        Phase::Serving => Ok(()),
        Phase::Draining => Err(draining()),
        Phase::Starting => Err(Refusal::new(Reason::Starting, "the daemon is starting").after(Duration::from_secs(1))),
    }
}

/// Everything with one step: waits and runs, and holds a stream open that waits long.
async fn generate(
    shared: &Arc<Shared>,
    rules: &Arc<Rules>,
    wish: Box<Wish>,
    record: Box<Record>,
    shown: &mut Shown,
    lull: &Lull,
) -> Result<Response<Answer>, Refusal> {
    let (arrived, streams) = (record.arrived(), wish.streams());
    let claim = Claim::submit(shared, wish.submission(), None, record);
    let mut run = Box::new(Run::new(Arc::clone(shared), Arc::clone(rules), wish, claim, lull.clone()));
    shown.job = Some(run.claim.taken().await.ok_or_else(stopped)?);
    let mut work: Working = Box::pin(run.go());
    if streams {
        let patience = rules.settings.hold_after.saturating_sub(arrived.elapsed());
        // The timer lies elsewhere, so that only those have one who need it.
        match Box::pin(tokio::time::timeout(patience, &mut work)).await {
            Ok(opened) => opened.map(|opened| answer(rules, shown, opened)),
            Err(_) => Ok(held(rules, shown, work)),
        }
    } else {
        work.await.map(|opened| answer(rules, shown, opened))
    }
}

fn answer(rules: &Rules, shown: &Shown, opened: Opened) -> Response<Answer> {
    let Opened { status, mut headers, relay, model, queued } = opened;
    shown.put(rules, Some((model, queued)), &mut headers);
    if relay.is_stream() {
        streaming(&mut headers);
    }
    let mut answer = Response::new(Answer::Relay(Box::new(relay)));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

fn held(rules: &Rules, shown: &Shown, work: Working) -> Response<Answer> {
    let held = Held::new(work, rules.settings.keepalive, shown.dialect, shown.request_id.clone());
    let mut answer = Response::new(Answer::Held(Box::new(held)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    streaming(headers);
    shown.put(rules, None, headers);
    answer
}
