//! What a client is sent: nothing, a text, or an answer as it comes.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::{
    exchange::{Held, Relay},
    upstream::Broken,
};

/// The body of an answer.
pub(super) enum Answer {
    /// All of it, or what is left.
    Once(Option<Bytes>),
    /// A child's answer as it comes.
    Relay(Box<Relay>),
    /// Comments until there is an answer, then that.
    Held(Box<Held>),
}

impl Answer {
    pub(super) fn once(bytes: impl Into<Bytes>) -> Answer {
        Answer::Once(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }

    pub(super) fn empty() -> Answer {
        Answer::Once(None)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let next = match &mut *self {
            Answer::Once(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Answer::Relay(relay) => relay.poll_data(cx),
            Answer::Held(held) => held.poll_data(cx),
        };
        next.map(|next| next.map(|piece| piece.map(Frame::data).map_err(|Broken| Cut)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Answer::Once(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Once(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Answer::Relay(relay) => relay.length().map_or_else(SizeHint::default, SizeHint::with_exact),
            Answer::Held(_) => SizeHint::default(),
        }
    }
}

/// An answer ended before it was complete, which the client sees by its connection's end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the answer was cut off")]
pub(super) struct Cut;
