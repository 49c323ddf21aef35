//! One request to a child, until the head of its answer.

use std::{future::poll_fn, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header, response::Parts, uri::PathAndQuery};
use hyper::body::Incoming;
use tokio::net::TcpStream;

use super::{flow::Flow, headers::Forwarded};
use crate::{
    Endpoint, Flight, descriptors,
    lines::{Line, LineError, Pieces, Terms},
};

/// Room for the headers of most requests.
const MOST_USUAL: usize = 12;
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

/// Asks a child and waits for the head of its answer, for as long as it takes: prompts can take minutes.
pub(in crate::gateway) async fn call(endpoint: &Endpoint, question: Question<'_>) -> Result<(Parts, Flow), Broken> {
    let mut flight = (question.purpose == Purpose::Work).then(|| endpoint.progress.begin());
    let (answer, line) = exchange(endpoint, question, &mut flight).await?;
    if let Some(flight) = &mut flight {
        flight.touch();
    }
    let (parts, body) = answer.into_parts();
    let terms = Terms::of(&parts.headers, endpoint.requests_a_connection);
    let flow = Flow::new(line, body, Arc::clone(&endpoint.lines), terms, flight);
    Ok((parts, flow))
}

/// Asks on a connection that waits, or else on a new one. Also where the one that waited turns out to be closed, but only if
/// no byte came over it: what the child has begun to answer it is not asked again.
async fn exchange(
    endpoint: &Endpoint,
    mut question: Question<'_>,
    flight: &mut Option<Flight>,
) -> Result<(Response<Incoming>, Box<Line>), Broken> {
    if let Some(mut line) = endpoint.lines.take() {
        match line.send(request(endpoint, &question, question.body.clone())?).await {
            Ok(answer) => return Ok((answer, line)),
            Err(LineError::Unheard) => {}
            Err(LineError::Broken) => return Err(Broken),
        }
    }
    let body = std::mem::take(&mut question.body);
    let mut line = Line::new(connect(endpoint, flight).await?).await.ok_or(Broken)?;
    let answer = line.send(request(endpoint, &question, body)?).await;
    answer.map(|answer| (answer, line)).map_err(|(LineError::Unheard | LineError::Broken)| Broken)
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

fn request(endpoint: &Endpoint, question: &Question<'_>, body: Vec<Bytes>) -> Result<Request<Pieces>, Broken> {
    let mut request = Request::new(Pieces::of(body));
    *request.method_mut() = question.method.clone();
    *request.uri_mut() = question.path.clone().into();
    let headers = request.headers_mut();
    headers.reserve(MOST_USUAL);
    for (name, value) in question.headers.iter() {
        headers.append(name, value);
    }
    let host = HeaderValue::try_from(endpoint.address.to_string()).map_err(|_| Broken)?;
    headers.insert(header::HOST, host);
    let mut key = HeaderValue::try_from(format!("Bearer {}", endpoint.key)).map_err(|_| Broken)?;
    key.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, key);
    Ok(request)
}
