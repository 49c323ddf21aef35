//! One request for inference, from its body to the last byte of its answer.

mod claim;
mod held;
mod leave;
mod record;
mod relay;
mod run;
mod vectors;
mod wish;

pub(super) use claim::Claim;
pub(super) use held::Held;
pub(super) use leave::{death_noticed, slot_free};
pub(super) use record::Record;
pub(super) use relay::Relay;
pub(super) use run::{draining, stopped};
pub(super) use wish::{Wish, no_entry};

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use windtunnel_core::{JobId, JobKind, ModelId, Wanted};

use super::{
    answer::Answer,
    body,
    operations::Phase,
    refuse::{Reason, Refusal},
    routes::Errand,
    shared::{Rules, Shared},
    upstream::{Question, ask, copy_answer},
};
use held::Working;
use run::{Opened, Run};

/// The most bytes of an answer to a question.
const SMALL_ANSWER: usize = 64 * 1024 * 1024;

/// Serves a request for inference.
pub(super) async fn infer(
    shared: &Arc<Shared>,
    rules: &Arc<Rules>,
    errand: Errand,
    parts: Parts,
    body: Incoming,
    request_id: &HeaderValue,
) -> Response<Answer> {
    let mut record = Record::new(shared);
    let wish = match understood(shared, rules, errand, parts, body, request_id, &mut record).await {
        Ok(wish) => wish,
        Err(refusal) => {
            record.refused(&refusal);
            return refusal.answer(errand.dialect, request_id);
        }
    };
    record.class = Some(wish.class);
    let answered = match wish.errand.kind {
        JobKind::Embedding => Box::pin(vectors::go(Arc::clone(shared), Arc::clone(rules), wish, record)).await,
        JobKind::Chat | JobKind::Completion | JobKind::Rerank | JobKind::Audio => {
            generate(shared, rules, wish, record).await
        }
    };
    answered.unwrap_or_else(|refusal| refusal.answer(errand.dialect, request_id))
}

/// Takes a request in. When this is over, nothing of the client's buffers is kept.
async fn understood(
    shared: &Shared,
    rules: &Rules,
    errand: Errand,
    parts: Parts,
    body: Incoming,
    request_id: &HeaderValue,
    record: &mut Record,
) -> Result<Wish, Refusal> {
    let caller = record.comes_from(rules.keys.caller(&parts.headers).map_err(no_entry)?);
    serving(shared)?;
    let bytes = body::take(&parts.headers, body, rules.settings.body_limit).await?;
    Wish::of(rules, errand, &parts, caller, bytes, request_id)
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
    wish: Wish,
    record: Record,
) -> Result<Response<Answer>, Refusal> {
    let arrived = record.arrived();
    let (shown, streams) = (Shown::of(&wish), wish.streams());
    let mut claim = Claim::submit(shared, wish.submission(), None, record);
    let job = claim.taken().await.ok_or_else(stopped)?;
    let run = Run { shared: Arc::clone(shared), rules: Arc::clone(rules), wish, claim };
    let mut work: Working = Box::pin(run.go());
    if streams {
        let patience = rules.settings.hold_after.saturating_sub(arrived.elapsed());
        match tokio::time::timeout(patience, &mut work).await {
            Ok(opened) => opened.map(|opened| answer(rules, &shown, job, opened)),
            Err(_) => Ok(held(rules, &shown, job, work)),
        }
    } else {
        work.await.map(|opened| answer(rules, &shown, job, opened))
    }
}

/// What the headers of an answer say of its request.
struct Shown {
    class: &'static str,
    wanted: Wanted,
    dialect: super::routes::Dialect,
    request_id: HeaderValue,
}

impl Shown {
    fn of(wish: &Wish) -> Shown {
        Shown {
            class: wish.class.name(),
            wanted: wish.named.wanted,
            dialect: wish.errand.dialect,
            request_id: wish.request_id.clone(),
        }
    }

    fn put(&self, rules: &Rules, job: JobId, model: Option<(ModelId, Duration)>, headers: &mut HeaderMap) {
        headers.insert("x-windtunnel-job-id", HeaderValue::from(job.0));
        headers.insert("x-windtunnel-class", HeaderValue::from_static(self.class));
        headers.insert("x-request-id", self.request_id.clone());
        if let Wanted::Family(family) = self.wanted {
            name(headers, "x-windtunnel-family", rules.catalogue.family(family));
        }
        let model = match (model, self.wanted) {
            (Some((model, queued)), _) => {
                let millis = u64::try_from(queued.as_millis()).unwrap_or(u64::MAX);
                headers.insert("x-windtunnel-queue-ms", HeaderValue::from(millis));
                Some(model)
            }
            (None, Wanted::Model(model)) => Some(model),
            (None, Wanted::Family(_)) => None,
        };
        if let Some(model) = model {
            name(headers, "x-windtunnel-model", rules.catalogue.model(model));
        }
    }
}

/// A name may hold what no header may; then it is left out.
fn name(headers: &mut HeaderMap, header: &'static str, name: &str) {
    if let Ok(value) = HeaderValue::from_str(name) {
        headers.insert(header, value);
    }
}

fn answer(rules: &Rules, shown: &Shown, job: JobId, opened: Opened) -> Response<Answer> {
    let Opened { status, mut headers, relay, model, queued } = opened;
    shown.put(rules, job, Some((model, queued)), &mut headers);
    if relay.is_stream() {
        streaming(&mut headers);
    }
    let mut answer = Response::new(Answer::Relay(Box::new(relay)));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

/// Neither caches nor proxies may keep frames back.
fn streaming(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

fn held(rules: &Rules, shown: &Shown, job: JobId, work: Working) -> Response<Answer> {
    let held = Held::new(work, rules.settings.keepalive, shown.dialect, shown.request_id.clone());
    let mut answer = Response::new(Answer::Held(Box::new(held)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    streaming(headers);
    shown.put(rules, job, None, headers);
    answer
}

/// Asks a model that is loaded already; a question loads none, and waits for nobody.
pub(super) async fn question(
    shared: &Arc<Shared>,
    rules: &Arc<Rules>,
    errand: Errand,
    parts: Parts,
    body: Incoming,
    request_id: &HeaderValue,
) -> Result<Response<Answer>, Refusal> {
    let mut record = Record::new(shared);
    let wish = understood(shared, rules, errand, parts, body, request_id, &mut record).await;
    let wish = wish.inspect_err(|refusal| record.refused(refusal))?;
    let found = loaded(shared, rules, wish.named.wanted);
    let (model, endpoint) = found.inspect_err(|refusal| record.refused(refusal))?;
    let body = body::edited(&wish.body.bytes, &wish.body.edits, rules.catalogue.model(model));
    let question = Question { method: Method::POST, path: wish.path.clone(), headers: &wish.headers, body };
    let answer = ask(&endpoint, question, SMALL_ANSWER).await;
    let (parts, bytes) = answer.map_err(|_| {
        let refusal = Refusal::new(Reason::RuntimeDisconnected, "the connection to the model's process broke");
        record.refused(&refusal);
        refusal.after(Duration::from_secs(1))
    })?;
    (record.status, record.reason, record.model) = (parts.status.as_u16(), "ok", Some(model));
    Ok(small(rules, parts.status, parts.headers, bytes, model))
}

fn small(rules: &Rules, status: StatusCode, from: HeaderMap, bytes: bytes::Bytes, model: ModelId) -> Response<Answer> {
    let mut answer = Response::new(Answer::once(bytes));
    *answer.status_mut() = status;
    copy_answer(from, answer.headers_mut());
    name(answer.headers_mut(), "x-windtunnel-model", rules.catalogue.model(model));
    answer
}

/// A model that is loaded and may answer; of a family the best that is.
fn loaded(shared: &Shared, rules: &Rules, wanted: Wanted) -> Result<(ModelId, Arc<crate::Endpoint>), Refusal> {
    let models: &[ModelId] = match &wanted {
        Wanted::Model(model) => std::slice::from_ref(model),
        Wanted::Family(family) => rules.catalogue.variants(*family),
    };
    let ready = shared.desk.ready();
    let found = models.iter().find_map(|model| Some((*model, ready.endpoint_of(*model)?)));
    found.ok_or_else(|| {
        let message = "the model is not loaded, and this request loads none";
        Refusal::new(Reason::NotLoaded, message).after(Duration::from_secs(5))
    })
}
