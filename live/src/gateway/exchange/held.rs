//! An answer that was opened before there was anything to say: comments keep it open until there is.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderValue;
use tokio::time::{Instant, Sleep};

use super::{
    relay::{Relay, Verdict},
    run::Opened,
};
use crate::gateway::{
    refuse::{Refusal, in_stream, passed_on},
    routes::Dialect,
    upstream::Broken,
};

/// A line that clients of event streams pass over.
const COMMENT: Bytes = Bytes::from_static(b": keepalive\n\n");
/// What is gathered of an answer that is no stream.
const MOST: usize = 16 * 1024 * 1024;

/// A request's own work.
pub(super) type Working = Pin<Box<dyn Future<Output = Result<Opened, Refusal>> + Send>>;

/// An answer held open.
pub(in crate::gateway) struct Held {
    stage: Stage,
    comments: Comments,
    dialect: Dialect,
    request_id: HeaderValue,
}

enum Stage {
    Waiting(Working),
    /// Events come, but none has yet.
    Quiet(Box<Relay>),
    Passing(Box<Relay>),
    /// The child's answer is no stream, and is put into one.
    Gathering(Box<Relay>, Vec<u8>),
    Over,
}

/// When the next comment is due.
struct Comments {
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl Comments {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        ready!(self.next.as_mut().poll(cx));
        self.next.as_mut().reset(Instant::now() + self.every);
        Poll::Ready(Some(Ok(COMMENT)))
    }
}

impl Held {
    /// The first comment is due at once.
    pub(super) fn new(work: Working, every: Duration, dialect: Dialect, request_id: HeaderValue) -> Held {
        let next = Box::pin(tokio::time::sleep(Duration::ZERO));
        Held { stage: Stage::Waiting(work), comments: Comments { every, next }, dialect, request_id }
    }

    /// The next bytes for the client.
    pub(in crate::gateway) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            match &mut self.stage {
                Stage::Waiting(work) => match work.as_mut().poll(cx) {
                    Poll::Pending => return self.comments.poll(cx),
                    Poll::Ready(Ok(opened)) => self.stage = begin(opened),
                    Poll::Ready(Err(refusal)) => {
                        return self.last(in_stream(&refusal, self.dialect, &self.request_id));
                    }
                },
                Stage::Quiet(relay) => match relay.poll_data(cx) {
                    Poll::Pending => return self.comments.poll(cx),
                    Poll::Ready(piece) => {
                        let stage = std::mem::replace(&mut self.stage, Stage::Over);
                        if let Stage::Quiet(relay) = stage {
                            self.stage = Stage::Passing(relay);
                        }
                        return Poll::Ready(piece);
                    }
                },
                Stage::Passing(relay) => return relay.poll_data(cx),
                Stage::Gathering(relay, bytes) => match relay.poll_data(cx) {
                    Poll::Pending => return self.comments.poll(cx),
                    Poll::Ready(Some(Ok(piece))) if bytes.len() + piece.len() <= MOST => {
                        bytes.extend_from_slice(&piece);
                    }
                    Poll::Ready(Some(_)) => return Poll::Ready(Some(Err(Broken))),
                    Poll::Ready(None) => {
                        let event = gathered(relay.verdict(), bytes, self.dialect, &self.request_id);
                        return self.last(event);
                    }
                },
                Stage::Over => return Poll::Ready(None),
            }
        }
    }

    fn last(&mut self, event: Bytes) -> Poll<Option<Result<Bytes, Broken>>> {
        self.stage = Stage::Over;
        Poll::Ready(Some(Ok(event)))
    }
}

fn begin(opened: Opened) -> Stage {
    let relay = Box::new(opened.relay);
    if relay.is_stream() { Stage::Quiet(relay) } else { Stage::Gathering(relay, Vec::new()) }
}

/// What was no stream, as an event: errors in the child's words, and whole answers of runtimes that do not stream.
fn gathered(verdict: Verdict, bytes: &[u8], dialect: Dialect, request_id: &HeaderValue) -> Bytes {
    match verdict {
        Verdict::Rejected => passed_on(bytes, dialect, request_id),
        Verdict::Fine => {
            let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty());
            let event: Vec<u8> =
                lines.flat_map(|line| [b"data: ".as_slice(), line, b"\n"]).flatten().copied().collect();
            [event.as_slice(), b"\n"].concat().into()
        }
    }
}
