//! How requests are refused: which status, in whose envelope, and when it is worth asking again.
//!
//! 429 says "not now, perhaps later", 503 "this cannot be served". The word of the reason header is the label of the metric.

mod envelope;
mod outcomes;
mod reason;
mod words;

pub(super) use envelope::{in_stream, passed_on};
pub(super) use outcomes::{Beside, of_broken_grant, of_finish};
pub(super) use reason::Reason;
pub use words::{reason_of_failure, reason_of_overdue, reason_of_refusal, reason_of_wait, sentence_of_wait};

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, header};

use super::{answer::Answer, body, routes::Dialect};

/// Above a minute the common SDKs ask again *sooner*, so nobody is told more.
const LONGEST: Duration = Duration::from_secs(60);

/// A request that is not served, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The word for it.
    pub reason: Reason,
    /// A sentence for people.
    pub message: String,
    /// When to ask again.
    pub retry: Retry,
    /// The key of the request that is wrong.
    pub param: Option<String>,
    /// The methods a path knows.
    pub allow: Option<&'static str>,
}

/// Whether it is worth asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// After so long.
    After(Duration),
    /// The same request would be refused again.
    Never,
    /// The status says it.
    Unsaid,
}

impl Refusal {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Refusal {
        Refusal { reason, message: message.into(), retry: Retry::Unsaid, param: None, allow: None }
    }

    pub(super) fn after(self, span: Duration) -> Refusal {
        Refusal { retry: Retry::After(span), ..self }
    }

    pub(super) fn never(self) -> Refusal {
        Refusal { retry: Retry::Never, ..self }
    }

    pub(super) fn about(self, param: impl Into<String>) -> Refusal {
        Refusal { param: Some(param.into()), ..self }
    }

    /// The whole answer.
    pub(super) fn answer(&self, dialect: Dialect, request_id: &HeaderValue) -> Response<Answer> {
        let text = envelope::error(self, dialect, request_id);
        let mut answer = Response::new(Answer::once(text));
        *answer.status_mut() = self.reason.status();
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("x-windtunnel-reason", HeaderValue::from_static(self.reason.word()));
        headers.insert("x-request-id", request_id.clone());
        self.say_when(headers);
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        if self.reason.status() == http::StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }

    fn say_when(&self, headers: &mut HeaderMap) {
        match self.retry {
            Retry::After(span) => {
                let seconds = span.min(LONGEST).as_nanos().div_ceil(1_000_000_000).max(1);
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds as u64));
                if span < Duration::from_secs(1) {
                    headers.insert("retry-after-ms", HeaderValue::from(span.as_millis().max(1) as u64));
                }
            }
            Retry::Never => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
            Retry::Unsaid => {}
        }
    }
}

impl From<body::Refused> for Refusal {
    fn from(refused: body::Refused) -> Refusal {
        match refused {
            body::Refused::TooLarge { limit } => {
                Refusal::new(Reason::BodyTooLarge, format!("the body is larger than {limit} bytes"))
            }
            body::Refused::UnknownPacking { found } => Refusal::new(
                Reason::UnknownEncoding,
                format!("the body comes as content-encoding {found:?}; gzip, zstd and identity can be read"),
            ),
            body::Refused::Damaged => Refusal::new(Reason::BadBody, "the packed body cannot be unpacked"),
            body::Refused::Stalled => Refusal::new(Reason::BodyTooSlow, "nothing came of the body for a minute"),
            body::Refused::Slow { limit } => {
                let message = format!("the body did not arrive within {} s", limit.as_secs_f64());
                Refusal::new(Reason::BodyTooSlow, message)
            }
            body::Refused::Broken => Refusal::new(Reason::BadBody, "the body ended before it was complete"),
        }
    }
}

/// A body that is no request, with the place in it.
pub(super) fn of_unusable(unusable: &body::Unusable, bytes: &[u8]) -> Refusal {
    match unusable {
        body::Unusable::Json(wrong) => {
            let (line, column) = wrong.place(bytes);
            let found = match bytes.get(wrong.at) {
                None => "the body ends".to_owned(),
                Some(byte) => format!("found {:?}", char::from(*byte)),
            };
            let message =
                format!("the body is not JSON at line {line} column {column}: {found}, wanted {}", wrong.wanted);
            Refusal::new(Reason::BadJson, message)
        }
        body::Unusable::Utf8 { at } => {
            Refusal::new(Reason::BadJson, format!("the body is not UTF-8 from byte {at} on"))
        }
        body::Unusable::Value { key, wanted } => {
            Refusal::new(Reason::BadValue, format!("`{key}` has to be {wanted}")).about(*key)
        }
        body::Unusable::Ask(bad) => of_bad_ask(bad),
    }
}

/// A wish that makes no sense.
pub(super) fn of_bad_ask(bad: &super::ask::BadAsk) -> Refusal {
    Refusal::new(Reason::BadValue, format!("`{}` has to be {}", bad.name, bad.wanted)).about(bad.name.as_str())
}

/// A form that is no request.
pub(super) fn of_unformed(unformed: body::Unformed) -> Refusal {
    match unformed {
        body::Unformed::NoBoundary => {
            Refusal::new(Reason::BadBody, "the content type has to be multipart/form-data with a boundary")
        }
        body::Unformed::Endless => Refusal::new(Reason::BadBody, "a part of the form has no end"),
        body::Unformed::NoModel => Refusal::new(Reason::BadValue, "the form has no part `model`").about("model"),
    }
}
