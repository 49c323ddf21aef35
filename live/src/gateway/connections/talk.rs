//! A conversation with a client: requests and answers over hyper, and between them, while a request waits, the bare socket.
//!
//! Hyper has two buffers of 8 KiB for every connection, more than all the rest that a waiting request needs. So a request that has
//! been taken in whole and is told to wait takes hyper's connection apart: its own work goes on beside the socket, of which only
//! the end of the client is awaited. When there is an answer, a new connection is set up over the same socket. It reads a head
//! that we make, whose request is the one that waited, and what the client has sent after that.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::Service,
};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::{
    crowd::Visit,
    lull::Lull,
    manner::Manner,
    wire::{Socket, Wire},
};
use crate::gateway::answer::{Answer, Cut};

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(30);
/// So much is read of what a client sends while his request waits; the rest stays with the kernel.
const AHEAD: usize = 1024;

/// A conversation; it ends with the client's connection.
pub(super) struct Talk {
    socket: Arc<Socket>,
    serve: Serve,
    stage: Stage,
    further: Further,
}

enum Stage {
    Speaks(Box<Spoken>),
    Waits(Waiting),
    Over,
}

type Spoken = http1::Connection<TokioIo<Wire>, Serve>;

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Its last answer was given, or the client has gone while one was.
    Closed,
    /// The client has gone while his request waited.
    Left,
}

/// A request that waits.
struct Waiting {
    work: Work,
    manner: Manner,
    /// What its client has sent after it.
    ahead: Bytes,
}

/// Makes the work of a request, which tells a lull when it waits.
pub(super) type Answerer = Arc<dyn Fn(Request<Incoming>, Lull) -> Work + Send + Sync>;

/// All that becomes of a request.
pub(super) type Work = Pin<Box<dyn Future<Output = Response<Given>> + Send>>;

/// Whether further requests are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Further {
    Taken,
    Refused,
}

/// Answers requests.
#[derive(Clone)]
struct Serve {
    answerer: Answerer,
    lull: Lull,
    handed: Arc<Mutex<Handed>>,
}

/// What passes between a request within hyper and the conversation around it.
enum Handed {
    Nothing,
    /// A request that waits, on its way out.
    Out(Work, Manner),
    /// Its answer, on its way back.
    Back(Box<Response<Given>>),
}

impl Talk {
    /// A conversation over a socket.
    pub(super) fn new(socket: Arc<Socket>, answerer: Answerer) -> Talk {
        let (lull, handed) = (Lull::default(), Arc::new(Mutex::new(Handed::Nothing)));
        let serve = Serve { answerer, lull, handed };
        let stage = Stage::Speaks(speak(&socket, &serve, Bytes::new()));
        Talk { socket, serve, stage, further: Further::Taken }
    }

    /// Takes no further request: the one under way comes to its end.
    pub(super) fn refuse_further(&mut self) {
        self.further = Further::Refused;
        match &mut self.stage {
            Stage::Speaks(spoken) => Pin::new(&mut **spoken).graceful_shutdown(),
            Stage::Waits(_) | Stage::Over => {}
        }
    }

    /// Takes hyper's connection apart where its request waits and nothing is on its way to the client. Hyper tries to send what
    /// it has before it says that it waits, so what it still has the socket would not take, and then the socket owes something.
    fn wait(&mut self) -> Option<Waiting> {
        if self.socket.owes() {
            return None;
        }
        let (work, manner) = self.serve.take_out()?;
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Speaks(spoken) => {
                // A copy, since nothing of a buffer holds all of it.
                let ahead = Bytes::copy_from_slice(&spoken.into_parts().read_buf);
                Some(Waiting { work, manner, ahead })
            }
            Stage::Waits(_) | Stage::Over => None,
        }
    }

    /// Sets hyper's connection up again for the answer to a request that waited.
    fn resume(&self, manner: Manner, ahead: &[u8], answer: Response<Given>) -> Box<Spoken> {
        self.serve.lull.ends();
        *self.serve.handed() = Handed::Back(Box::new(answer));
        let head = if self.further == Further::Refused { manner.closing() } else { manner }.head();
        let mut bytes = BytesMut::with_capacity(head.len() + ahead.len());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(ahead);
        speak(&self.socket, &self.serve, bytes.freeze())
    }
}

fn speak(socket: &Arc<Socket>, serve: &Serve, ahead: Bytes) -> Box<Spoken> {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let wire = Wire { socket: Arc::clone(socket), ahead };
    Box::new(builder.serve_connection(TokioIo::new(wire), serve.clone()))
}

/// Ends when the client's connection does.
impl Future for Talk {
    type Output = Over;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Over> {
        let talk = &mut *self;
        loop {
            match &mut talk.stage {
                Stage::Speaks(spoken) => {
                    if Pin::new(&mut **spoken).poll(cx).is_ready() {
                        talk.stage = Stage::Over;
                        *talk.serve.handed() = Handed::Nothing;
                        return Poll::Ready(Over::Closed);
                    }
                    let Some(waiting) = talk.wait() else { return Poll::Pending };
                    talk.stage = Stage::Waits(waiting);
                }
                Stage::Waits(waiting) => {
                    if let Poll::Ready(answer) = waiting.work.as_mut().poll(cx) {
                        let (manner, ahead) = (waiting.manner, std::mem::take(&mut waiting.ahead));
                        talk.stage = Stage::Speaks(talk.resume(manner, &ahead, answer));
                        continue;
                    }
                    ready!(waiting.poll_gone(&talk.socket, cx));
                    talk.stage = Stage::Over;
                    return Poll::Ready(Over::Left);
                }
                // Nobody asks again, and there is nobody to say farewell to.
                Stage::Over => return Poll::Ready(Over::Left),
            }
        }
    }
}

impl Waiting {
    /// Waits until the client has gone. Nothing can be told of one who has sent more already: what he sent lies before his end.
    fn poll_gone(&mut self, socket: &Socket, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer = [0; AHEAD];
        while self.ahead.is_empty() {
            if ready!(socket.stream.poll_read_ready(cx)).is_err() {
                return Poll::Ready(());
            }
            match socket.stream.try_read(&mut buffer) {
                Ok(0) => return Poll::Ready(()),
                Ok(read) => self.ahead = Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default()),
                Err(wrong) if wrong.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

impl Serve {
    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_out(&self) -> Option<(Work, Manner)> {
        self.handed().take_out()
    }
}

impl Handed {
    fn take_out(&mut self) -> Option<(Work, Manner)> {
        match std::mem::replace(self, Handed::Nothing) {
            Handed::Out(work, manner) => Some((work, manner)),
            other @ (Handed::Nothing | Handed::Back(_)) => {
                *self = other;
                None
            }
        }
    }

    fn take_back(&mut self) -> Option<Box<Response<Given>>> {
        match std::mem::replace(self, Handed::Nothing) {
            Handed::Back(answer) => Some(answer),
            other @ (Handed::Nothing | Handed::Out(..)) => {
                *self = other;
                None
            }
        }
    }
}

impl Service<Request<Incoming>> for Serve {
    type Response = Response<Given>;
    type Error = Infallible;
    type Future = Serving;

    fn call(&self, request: Request<Incoming>) -> Serving {
        if let Some(answer) = self.handed().take_back() {
            return Serving::Answered(Some(answer));
        }
        self.lull.ends();
        let manner = Manner::of(request.version(), request.headers());
        let work = (self.answerer)(request, self.lull.clone());
        Serving::Works(Some(work), manner, self.clone())
    }
}

/// A request within hyper.
enum Serving {
    /// `None`: it has answered, or goes on elsewhere.
    Works(Option<Work>, Manner, Serve),
    Answered(Option<Box<Response<Given>>>),
}

impl Future for Serving {
    type Output = Result<Response<Given>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Serving::Answered(answer) => answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(*answer))),
            Serving::Works(work, manner, serve) => {
                // Where it could not go elsewhere it comes back.
                let Some(mut own) = work.take().or_else(|| serve.take_out().map(|(work, _)| work)) else {
                    return Poll::Pending;
                };
                if let Poll::Ready(answer) = own.as_mut().poll(cx) {
                    return Poll::Ready(Ok(answer));
                }
                if serve.lull.is_on() {
                    *serve.handed() = Handed::Out(own, *manner);
                } else {
                    *work = Some(own);
                }
                Poll::Pending
            }
        }
    }
}

/// An answer whose request is under way until all of it was handed over.
pub(super) struct Given {
    answer: Answer,
    _visit: Visit,
}

impl Given {
    pub(super) fn new(answer: Answer, visit: Visit) -> Given {
        Given { answer, _visit: visit }
    }
}

impl Body for Given {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        Pin::new(&mut self.answer).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
        sync::Notify,
    };

    use super::*;
    use crate::gateway::connections::crowd::Crowd;

    /// Drives a conversation until it is so far.
    async fn until(talk: &mut Talk, is_so_far: impl Fn(&Stage) -> bool) {
        let driven = poll_fn(|cx| {
            assert!(Pin::new(&mut *talk).poll(cx).is_pending());
            if is_so_far(&talk.stage) { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::time::timeout(Duration::from_secs(20), driven).await.expect("it should come so far")
    }

    #[tokio::test]
    async fn hyper_has_a_connection_only_while_something_is_read_or_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        let (guest, go) = (Arc::new(Crowd::new(1).admit().await), Arc::new(Notify::new()));
        let (own, may_go) = (Arc::clone(&guest), Arc::clone(&go));
        let answerer: Answerer = Arc::new(move |_request, lull| {
            let (visit, may_go) = (own.visit(), Arc::clone(&may_go));
            Box::pin(async move {
                lull.begins();
                may_go.notified().await;
                Response::new(Given::new(Answer::once("done"), visit))
            })
        });
        let mut talk = Talk::new(Arc::new(Socket::new(stream)), answerer);
        for is_last in [false, false, true] {
            client.write_all(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            until(&mut talk, |stage| matches!(stage, Stage::Waits(_))).await;
            assert!(guest.is_busy());
            go.notify_one();
            if is_last {
                talk.refuse_further();
                assert_eq!(talk.await, Over::Closed, "although the client is there");
                break;
            }
            until(&mut talk, |stage| matches!(stage, Stage::Speaks(_))).await;
            let mut bytes = [0; 1024];
            let read = tokio::select! {
                over = &mut talk => panic!("the connection stays, but: {over:?}"),
                read = client.read(&mut bytes) => read.unwrap(),
            };
            assert!(bytes[..read].ends_with(b"\r\n\r\ndone"), "{}", String::from_utf8_lossy(&bytes[..read]));
        }
        let mut last = Vec::new();
        client.read_to_end(&mut last).await.unwrap();
        let last = String::from_utf8(last).unwrap();
        assert!(last.contains("connection: close") && last.ends_with("done"), "{last}");
        assert!(!guest.is_busy());
    }
}
