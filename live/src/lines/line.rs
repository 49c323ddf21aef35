//! One connection to an instance.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::unconstrained};

type Connection = http1::Connection<TokioIo<TcpStream>, Pieces>;

/// A connection, which is open until it is dropped and does nothing unless somebody drives it.
#[derive(Debug)]
pub(crate) struct Line {
    sender: SendRequest<Pieces>,
    /// `None`: it has ended.
    connection: Option<Connection>,
    /// How many requests were sent on it.
    requests: u32,
}

/// No answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    /// Nor did any byte of one on a connection that had carried others: the server closed it, most likely before it saw
    /// this request.
    Unheard,
    /// Whatever else.
    Broken,
}

impl Line {
    /// Takes up a connection; `None`: it is not to be had.
    pub(crate) async fn new(stream: TcpStream) -> Option<Box<Line>> {
        stream.set_nodelay(true).ok()?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        Some(Box::new(Line { sender, connection: Some(connection), requests: 0 }))
    }

    /// How many requests were sent on it so far.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Sends a request and waits for the head of its answer, for as long as it takes.
    pub(crate) async fn send(&mut self, request: Request<Pieces>) -> Result<Response<Incoming>, LineError> {
        let is_used = self.requests > 0;
        self.requests = self.requests.saturating_add(1);
        let Line { sender, connection, .. } = self;
        let mut answer = pin!(unconstrained(sender.send_request(request)));
        let mut is_heard = false;
        let answer = poll_fn(|cx| {
            if connection.as_mut().is_some_and(|live| live.poll_without_shutdown(cx).is_ready()) {
                is_heard = has_bytes(connection.take());
            }
            // It comes by driving and in no other way, so nobody has to be woken for it.
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        match answer.await {
            Ok(answer) => Ok(answer),
            Err(_) if is_used && !is_heard && !has_bytes(connection.take()) => Err(LineError::Unheard),
            Err(_) => Err(LineError::Broken),
        }
    }

    /// Lets it get on as far as it can without waiting.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(live) = &mut self.connection
            && live.poll_without_shutdown(cx).is_ready()
        {
            // Closing is enough of a farewell, and one system call less.
            self.connection = None;
        }
    }

    /// Whether the next request can be sent. Nobody is woken when that changes.
    pub(crate) fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Whether the beginning of a head came over a connection that has ended.
fn has_bytes(ended: Option<Connection>) -> bool {
    ended.is_some_and(|ended| !ended.into_parts().read_buf.is_empty())
}

/// A body in pieces that are sent one after the other.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Pieces {
    pub(crate) fn of(pieces: Vec<Bytes>) -> Pieces {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Pieces { pieces: pieces.into_iter(), left }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.pieces.next();
        if let Some(piece) = &next {
            self.left -= piece.len() as u64;
        }
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
