//! Questions to models that are loaded: how many tokens a text has, what a template makes of it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use windtunnel_core::{ModelId, Wanted};

use super::{leave::why_broken, record::Record, shown::name, understood, wish::Wish};
use crate::{
    Endpoint,
    gateway::{
        answer::Answer,
        body,
        refuse::{Reason, Refusal, of_broken_grant},
        routes::Errand,
        shared::{Rules, Shared},
        upstream::{Broken, Purpose, Question, ask, copy_answer},
    },
};

/// The most bytes of an answer to a question.
const SMALL_ANSWER: usize = 64 * 1024 * 1024;

/// Asks a model that is loaded already; a question loads none, and waits for nobody.
pub(in crate::gateway) async fn question(
    shared: &Arc<Shared>,
    rules: &Arc<Rules>,
    errand: Errand,
    request: Box<Request<Incoming>>,
    request_id: &HeaderValue,
) -> Response<Answer> {
    let mut record = Record::new(shared);
    let wish = understood(shared, rules, errand, request, request_id, &mut record).await;
    let answered = match wish {
        Ok(wish) => asked(shared, rules, wish, &mut record).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| {
        record.refused(&refusal);
        refusal.answer(errand.dialect, request_id)
    })
}

async fn asked(
    shared: &Shared,
    rules: &Rules,
    wish: Box<Wish>,
    record: &mut Record,
) -> Result<Response<Answer>, Refusal> {
    let (model, endpoint) = loaded(shared, rules, wish.named.wanted)?;
    let body = body::edited(&wish.body.bytes, &wish.body.edits, rules.catalogue.model(model));
    let question = Question {
        method: Method::POST,
        path: wish.path.clone(),
        headers: &wish.headers,
        body,
        purpose: Purpose::Work,
    };
    let (parts, bytes) = match ask(&endpoint, question, SMALL_ANSWER).await {
        Ok(answer) => answer,
        Err(Broken) => return Err(of_broken_grant(why_broken(rules.settings.death_notice, endpoint).await)),
    };
    (record.status, record.reason, record.model) = (parts.status.as_u16(), "ok", Some(model));
    Ok(small(rules, parts.status, parts.headers, bytes, model))
}

fn small(rules: &Rules, status: StatusCode, from: HeaderMap, bytes: Bytes, model: ModelId) -> Response<Answer> {
    let mut answer = Response::new(Answer::once(bytes));
    *answer.status_mut() = status;
    copy_answer(from, answer.headers_mut());
    name(answer.headers_mut(), "x-windtunnel-model", rules.catalogue.model(model));
    answer
}

/// A model that is loaded and may answer; of a family the best that is.
fn loaded(shared: &Shared, rules: &Rules, wanted: Wanted) -> Result<(ModelId, Arc<Endpoint>), Refusal> {
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
