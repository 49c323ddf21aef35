//! One request and its answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use windtunnel_core::{Span, Time};

use super::{
    Call,
    connections::{Connections, Link, Origin},
    question::Question,
    stream::{Events, error_word},
};
use crate::Clock;

/// No more of an answer than this is looked at.
const LOOKED_AT: usize = 64 << 20;

/// What all exchanges of a run share.
#[derive(Debug)]
pub(super) struct Line {
    pub clock: Clock,
    pub connections: Connections,
    pub questions: Vec<Question>,
    pub timeout: Duration,
}

/// What an exchange tells while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The answer began.
    Began {
        /// The number of the request.
        number: u64,
        /// When.
        at: Time,
        /// How long the request waited at the endpoint before it was started, where the answer says so.
        queued: Option<Span>,
        /// The model that answers, where the answer says so.
        model: Option<String>,
    },
    /// It is over.
    Ended(Seen),
}

/// What was seen of an exchange that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The number of the request.
    pub number: u64,
    /// When the request was sent.
    pub sent: Time,
    /// When the first frame with content came.
    pub first_token: Option<Time>,
    /// Output tokens, where the answer says so.
    pub tokens: Option<u32>,
    /// When it was over.
    pub ended: Time,
    /// How.
    pub ending: Ending,
}

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a whole answer.
    Answered,
    /// With a status that is an error.
    Refused {
        /// The status.
        status: u16,
        /// The word of the reason header, or of the error in the body.
        reason: Option<String>,
        /// After how long it is worth asking again, where that was said.
        retry_after: Span,
    },
    /// With an error in an answer that had begun well.
    Spoilt {
        /// The word for it.
        reason: String,
    },
    /// The connection could not be opened or broke.
    Broken(Break),
    /// The client gave up.
    GaveUp,
    /// It took longer than anything may.
    TimedOut,
}

/// How a connection failed its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// It could not be opened, for this reason.
    Unopened(String),
    /// It broke before an answer began.
    Unanswered,
    /// It, or the stream on it, broke off in an answer.
    Torn,
}

/// Asks, and tells `tell` how it goes.
pub(super) async fn ask(line: Arc<Line>, call: Call, number: u64, tell: impl Fn(Word) + Send) {
    let Some(question) = line.questions.get(call.workload) else { return };
    let body = question.body(&call, number);
    let sent = line.clock.now();
    let mut seen = Seen { number, sent, first_token: None, tokens: None, ended: sent, ending: Ending::TimedOut };
    let (limit, beyond) = limit(&line, &call, sent);
    let exchange = Exchange { line: &line, question, inputs: call.inputs, tell: &tell };
    seen.ending = match timeout_at(limit, exchange.hold(body, &mut seen)).await {
        Ok(ending) => ending,
        Err(_) => beyond,
    };
    seen.ended = line.clock.now().max(seen.first_token.unwrap_or(sent));
    tell(Word::Ended(seen));
}

/// When the exchange is broken off, and what that is called.
fn limit(line: &Line, call: &Call, sent: Time) -> (Instant, Ending) {
    let timeout = sent.after(Span::from_nanos(u64::try_from(line.timeout.as_nanos()).unwrap_or(u64::MAX)));
    let (at, ending) = match call.patience.map(|patience| call.at.after(patience)) {
        Some(patience) if patience <= timeout => (patience, Ending::GaveUp),
        Some(_) | None => (timeout, Ending::TimedOut),
    };
    let left = Duration::from_nanos(at.since(line.clock.now()).as_nanos());
    let far = || Instant::now() + Duration::from_secs(1 << 30);
    (Instant::now().checked_add(left).unwrap_or_else(far), ending)
}

struct Exchange<'a, T> {
    line: &'a Line,
    question: &'a Question,
    inputs: u32,
    tell: &'a T,
}

impl<T: Fn(Word) + Send> Exchange<'_, T> {
    async fn hold(&self, body: Bytes, seen: &mut Seen) -> Ending {
        match self.send(body).await {
            Ok((response, link)) => self.read(response, link, seen).await,
            Err(how) => Ending::Broken(how),
        }
    }

    /// Sends the request; once more on a new connection if a kept one broke before it brought any byte.
    async fn send(&self, body: Bytes) -> Result<(Response<Incoming>, Link), Break> {
        let unopened = |wrong: std::io::Error| Break::Unopened(wrong.to_string());
        let (mut link, origin) = self.line.connections.get().await.map_err(unopened)?;
        if link.ready().await.is_ok()
            && let Ok(response) = link.send_request(self.question.request(body.clone())).await
        {
            return Ok((response, link));
        }
        if origin == Origin::New {
            return Err(Break::Unanswered);
        }
        let mut link = self.line.connections.open().await.map_err(unopened)?;
        let response = link.send_request(self.question.request(body)).await.map_err(|_| Break::Unanswered)?;
        Ok((response, link))
    }

    async fn read(&self, response: Response<Incoming>, link: Link, seen: &mut Seen) -> Ending {
        let at = self.line.clock.now();
        let (head, status) = (response.headers().clone(), response.status());
        let ending = if status.is_success() {
            let queued = text(&head, "x-windtunnel-queue-ms").and_then(millis);
            let model = text(&head, "x-windtunnel-model").map(str::to_owned);
            (self.tell)(Word::Began { number: seen.number, at, queued, model });
            let events =
                text(&head, header::CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("text/event-stream"));
            if events && self.question.streams() {
                self.read_events(response.into_body(), seen).await
            } else {
                self.read_whole(response.into_body(), seen).await
            }
        } else {
            let whole = collect(response.into_body()).await;
            let reason = text(&head, "x-windtunnel-reason").map(str::to_owned);
            let reason = reason.or_else(|| error_of(whole.as_deref()?));
            Ending::Refused { status: status.as_u16(), reason, retry_after: retry_after(&head) }
        };
        if !matches!(ending, Ending::Broken(_)) {
            self.line.connections.keep(link);
        }
        ending
    }

    async fn read_events(&self, mut body: Incoming, seen: &mut Seen) -> Ending {
        let mut events = Events::default();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return spoilt_or(events, Ending::Broken(Break::Torn)) };
            let Some(data) = frame.data_ref() else { continue };
            let had = events.content;
            events.take(data);
            if events.content && !had {
                seen.first_token = Some(self.line.clock.now());
            }
        }
        seen.tokens = events.tokens;
        let ending = if events.done { Ending::Answered } else { Ending::Broken(Break::Torn) };
        spoilt_or(events, ending)
    }

    async fn read_whole(&self, body: Incoming, seen: &mut Seen) -> Ending {
        let Some(whole) = collect(body).await else { return Ending::Broken(Break::Torn) };
        if let Some(reason) = error_of(&whole) {
            return Ending::Spoilt { reason };
        }
        if self.question.streams() {
            let answer: Value = serde_json::from_slice(&whole).unwrap_or_default();
            seen.tokens = answer["usage"]["completion_tokens"].as_u64().and_then(|tokens| u32::try_from(tokens).ok());
        }
        if self
            .question
            .list()
            .is_some_and(|list| elements(&whole, list).is_some_and(|count| count != self.inputs as usize))
        {
            return Ending::Spoilt { reason: "another number of results than of inputs".to_owned() };
        }
        Ending::Answered
    }
}

fn spoilt_or(events: Events, ending: Ending) -> Ending {
    events.error.map_or(ending, |reason| Ending::Spoilt { reason })
}

/// The whole body, as far as it is looked at; `None` if it breaks off.
async fn collect(mut body: Incoming) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.ok()?.data_ref().filter(|data| whole.len() + data.len() <= LOOKED_AT) {
            whole.extend_from_slice(data);
        }
    }
    Some(whole)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Milliseconds, which may have a fraction.
fn millis(text: &str) -> Option<Span> {
    let millis: f64 = text.trim().parse().ok()?;
    (0.0..1e15).contains(&millis).then(|| Span::from_nanos((millis * 1e6) as u64))
}

fn retry_after(headers: &HeaderMap) -> Span {
    let in_millis = text(headers, "retry-after-ms").and_then(millis);
    let in_seconds = || text(headers, "retry-after")?.trim().parse().ok().map(Span::from_secs);
    in_millis.or_else(in_seconds).unwrap_or(Span::ZERO)
}

/// The word for the error in a body that is one.
fn error_of(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: Option<Value>,
    }
    serde_json::from_slice::<Answer>(body).ok()?.error.map(|error| error_word(&error))
}

/// How many elements the list of that name has, in an answer that has it.
fn elements(body: &[u8], name: &str) -> Option<usize> {
    #[derive(serde::Deserialize)]
    struct Answer {
        data: Option<Vec<serde::de::IgnoredAny>>,
        results: Option<Vec<serde::de::IgnoredAny>>,
    }
    let answer: Answer = serde_json::from_slice(body).ok()?;
    if name == "data" { answer.data } else { answer.results }.map(|list| list.len())
}
