//! An answer on its way out, with the headers of the real one.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    body::{Frame, SizeHint},
    header::{
        ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, CONNECTION, CONTENT_TYPE, HeaderValue, SERVER,
    },
};
use serde_json::{Value, json};

use super::{
    settings::Settings,
    stream::{Broken, Stream},
};

/// What becomes of a request.
pub enum Fate {
    /// An answer.
    Answer(Answer),
    /// Nothing is ever heard of it.
    Never,
    /// The connection is closed.
    Closed,
    /// Something goes out in place of this.
    Garbage(Answer),
}

/// An answer.
pub struct Answer {
    status: StatusCode,
    body: Body,
    kind: Kind,
}

enum Kind {
    Json,
    Preflight,
    Events,
}

/// The bytes of an answer.
pub enum Body {
    /// All there.
    Whole(Option<Bytes>),
    /// As they come.
    Stream(Box<Stream>),
}

impl Answer {
    /// JSON.
    pub fn json(body: impl Into<Bytes>) -> Answer {
        Answer { status: StatusCode::OK, body: Body::Whole(Some(body.into())), kind: Kind::Json }
    }

    /// Events as they come.
    pub fn events(stream: Stream) -> Answer {
        Answer { status: StatusCode::OK, body: Body::Stream(Box::new(stream)), kind: Kind::Events }
    }

    /// What a browser is told before it asks.
    pub fn preflight() -> Answer {
        Answer { status: StatusCode::OK, body: Body::Whole(None), kind: Kind::Preflight }
    }

    /// An error in the envelope of the real one.
    pub fn error(status: StatusCode, kind: &str, message: &str) -> Answer {
        let code = status.as_u16();
        Answer::refusal(status, json!({ "error": { "code": code, "message": message, "type": kind } }))
    }

    /// An error with a body of its own.
    pub fn refusal(status: StatusCode, body: Value) -> Answer {
        Answer { status, body: Body::Whole(Some(body.to_string().into())), kind: Kind::Json }
    }

    /// With the headers of the real one. An error ends its connection, as does the last request of it.
    pub fn into_response(self, settings: &Settings, last: bool, origin: Option<HeaderValue>) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if last || !self.status.is_success() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        } else if let Ok(value) = HeaderValue::try_from(kept(settings)) {
            headers.insert("keep-alive", value);
        }
        headers.insert(SERVER, HeaderValue::from_static("llama.cpp"));
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.unwrap_or(HeaderValue::from_static("")));
        match self.kind {
            Kind::Json => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
            }
            Kind::Events => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            }
            Kind::Preflight => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
                headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
                let methods = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            }
        }
        response
    }
}

/// How long a connection lasts: the number is that of the first request, however many were carried.
fn kept(settings: &Settings) -> String {
    format!("timeout={}, max={}", settings.idle.as_secs(), settings.requests_a_connection)
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Stream(stream) => stream.poll_next(cx).map(|next| next.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Stream(_) => SizeHint::default(),
        }
    }
}
