//! One request to a child, and its answer as it comes.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header, response::Parts, uri::PathAndQuery};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::headers::Forwarded;
use crate::{Endpoint, Flight, descriptors};

/// Between two tries to have a descriptor.
const REST: Duration = Duration::from_millis(50);

/// The connection to a child broke, or never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) struct Broken;

/// What a child is asked.
#[derive(Debug)]
pub(in crate::gateway) struct Question<'a> {
    pub method: Method,
    pub path: PathAndQuery,
    /// Headers of the client that a child may see.
    pub headers: &'a Forwarded,
    pub body: Vec<Bytes>,
    pub purpose: Purpose,
}

/// What the silence of a child that is asked something means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Purpose {
    /// It does not get on, should it be idle.
    Work,
    /// Nothing, and neither does its answer.
    Look,
}

type Connection = http1::Connection<TokioIo<TcpStream>, Pieces>;

/// The bytes of an answer as they come. Dropping it drops the connection.
#[derive(Debug)]
pub(in crate::gateway) struct Flow {
    /// `None`: it has ended, and so does the body.
    connection: Option<Box<Connection>>,
    body: Incoming,
    /// What was read already.
    ahead: VecDeque<Bytes>,
    flight: Option<Flight>,
}

/// Asks a child and waits for the head of its answer, for as long as it takes: prompts can take minutes.
pub(in crate::gateway) async fn call(endpoint: &Endpoint, question: Question<'_>) -> Result<(Parts, Flow), Broken> {
    let mut flight = (question.purpose == Purpose::Work).then(|| endpoint.progress.begin());
    let request = request(endpoint, question)?;
    let stream = connect(endpoint, &mut flight).await?;
    stream.set_nodelay(true).map_err(|_| Broken)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| Broken)?;
    let mut connection = Some(Box::new(connection));
    let mut answer = std::pin::pin!(sender.send_request(request));
    let answer: Response<Incoming> = poll_fn(|cx| {
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            return Poll::Ready(answer);
        }
        drive(&mut connection, cx);
        answer.as_mut().poll(cx)
    })
    .await
    .map_err(|_| Broken)?;
    if let Some(flight) = &mut flight {
        flight.touch();
    }
    let (parts, body) = answer.into_parts();
    Ok((parts, Flow { connection, body, ahead: VecDeque::new(), flight }))
}

/// Asks a child something small and takes the whole answer, of at most `limit` bytes.
pub(in crate::gateway) async fn ask(
    endpoint: &Endpoint,
    question: Question<'_>,
    limit: usize,
) -> Result<(Parts, Bytes), Broken> {
    let (parts, mut flow) = call(endpoint, question).await?;
    let (bytes, whole) = gather(&mut flow, limit).await?;
    if whole { Ok((parts, bytes)) } else { Err(Broken) }
}

/// What comes until the end, or until there are more than `limit` bytes; and whether the end came.
pub(in crate::gateway) async fn gather(flow: &mut Flow, limit: usize) -> Result<(Bytes, bool), Broken> {
    let mut all: Vec<u8> = Vec::new();
    while let Some(piece) = poll_fn(|cx| flow.poll_data(cx)).await {
        all.extend_from_slice(&piece?);
        if all.len() > limit {
            return Ok((all.into(), false));
        }
    }
    Ok((all.into(), true))
}

/// Connects, and waits for a descriptor where none is left: that the child does not fail.
async fn connect(endpoint: &Endpoint, flight: &mut Option<Flight>) -> Result<TcpStream, Broken> {
    loop {
        match TcpStream::connect(endpoint.address).await {
            Ok(stream) => return Ok(stream),
            Err(wrong) if descriptors::are_used_up(&wrong) => {
                flight.iter_mut().for_each(Flight::touch);
                tokio::time::sleep(REST).await;
                flight.iter_mut().for_each(Flight::wait);
            }
            Err(_) => return Err(Broken),
        }
    }
}

fn request(endpoint: &Endpoint, question: Question<'_>) -> Result<Request<Pieces>, Broken> {
    let mut request = Request::new(Pieces::of(question.body));
    *request.method_mut() = question.method;
    *request.uri_mut() = question.path.into();
    let headers = request.headers_mut();
    headers.reserve(question.headers.len() + 4);
    for (name, value) in question.headers {
        headers.append(name.clone(), value.clone());
    }
    let host = HeaderValue::try_from(endpoint.address.to_string()).map_err(|_| Broken)?;
    headers.insert(header::HOST, host);
    let mut key = HeaderValue::try_from(format!("Bearer {}", endpoint.key)).map_err(|_| Broken)?;
    key.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, key);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

fn drive(connection: &mut Option<Box<Connection>>, cx: &mut Context<'_>) {
    if let Some(live) = connection
        && live.poll_without_shutdown(cx).is_ready()
    {
        // Closing is enough of a farewell, and one system call less.
        *connection = None;
    }
}

impl Flow {
    /// The next bytes, `None` at the end.
    pub(in crate::gateway) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if let Some(piece) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(piece)));
        }
        let next = self.poll_body(cx);
        if let Some(flight) = &mut self.flight {
            match next {
                Poll::Pending => flight.wait(),
                Poll::Ready(_) => flight.touch(),
            }
        }
        next
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            let mut next = Pin::new(&mut self.body).poll_frame(cx);
            if next.is_pending() {
                drive(&mut self.connection, cx);
                next = Pin::new(&mut self.body).poll_frame(cx);
            }
            match ready!(next) {
                None => return Poll::Ready(None),
                Some(Err(_)) => return Poll::Ready(Some(Err(Broken))),
                Some(Ok(frame)) => {
                    // Trailers are for whoever asked for them, and we did not.
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
            }
        }
    }

    /// Puts bytes back in front.
    pub(in crate::gateway) fn put_back(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.ahead.push_front(bytes);
        }
    }

    /// Whether all has come.
    pub(in crate::gateway) fn is_over(&self) -> bool {
        self.ahead.is_empty() && self.body.is_end_stream()
    }

    /// How many bytes are to come, where the child said so.
    pub(in crate::gateway) fn length(&self) -> Option<u64> {
        let ahead: u64 = self.ahead.iter().map(|piece| piece.len() as u64).sum();
        self.body.size_hint().exact().map(|rest| rest + ahead)
    }
}

/// A body in pieces that are sent one after the other.
#[derive(Debug)]
struct Pieces {
    pieces: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Pieces {
    fn of(pieces: Vec<Bytes>) -> Pieces {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Pieces { pieces: pieces.into_iter(), left }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
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
