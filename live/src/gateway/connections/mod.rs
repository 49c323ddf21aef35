//! Connections: accepted as long as there is room (`crowd`), served over their sockets (`wire`), and at the end drained.

mod crowd;
mod wire;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    body::{Body, Frame, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Sender},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    access::may_listen,
    answer::{Answer, Cut},
    service,
    shared::Shared,
};
use crowd::{Crowd, Guest};
pub(super) use crowd::{Crowded, Visit};
use wire::{Socket, Wire, hung_up, linger};

/// How long a listener rests that has no file descriptor left for a connection.
const REST: Duration = Duration::from_millis(50);
/// How long clients are given to take the last bytes of what was broken off, or to send the rest of a head.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// Who takes nothing of his answer for so long is gone, where its connection is to end. The kernel has room for megabytes and
/// asks for more when a third of that is free, so that slow clients seem to take nothing for seconds.
const TAKEN_NOTHING: Duration = Duration::from_secs(10);
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(30);

/// Serves until `shutdown`, and until what runs has ended.
pub(super) async fn serve(shared: &Arc<Shared>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    may_listen(&shared.rules().settings, listener.local_addr()?).map_err(io::Error::other)?;
    let (open, mut ended) = mpsc::channel(1);
    let closing = CancellationToken::new();
    let accepting = accept(shared, &listener, &open, &closing);
    let ending = async {
        shutdown.cancelled().await;
        let (asked, limit) = (Instant::now(), shared.rules().settings.drain);
        drain(shared, limit).await;
        limit.saturating_sub(asked.elapsed())
    };
    let left = tokio::select! {
        never = accepting => match never {},
        left = ending => left,
    };
    drop(listener);
    closing.cancel();
    // Every connection has a sender, so there is nothing to receive when all have ended.
    drop(open);
    tokio::select! {
        _none = ended.recv() => {}
        () = last_bytes(shared, left) => {}
    }
    shared.desk.ready().close_lines();
    Ok(())
}

/// Waits for as long as clients may take what they were sent, unless somebody is in a hurry.
async fn last_bytes(shared: &Shared, left: Duration) {
    drop(timeout(left, shared.cut.cancelled()).await);
    tokio::time::sleep(LAST_BYTES).await;
}

/// New and waiting requests are refused from here on; answers may end, unless somebody is in a hurry.
async fn drain(shared: &Shared, limit: Duration) {
    shared.draining.cancel();
    let emptied = tokio::select! {
        emptied = shared.under_way.emptied(limit) => emptied,
        () = shared.cut.cancelled() => false,
    };
    if !emptied {
        cut(shared);
    }
}

/// Breaks off what runs; who reads a stream is told so in it.
pub(super) fn cut(shared: &Shared) {
    shared.cut.cancel();
    shared.under_way.cut();
}

async fn accept(
    shared: &Arc<Shared>,
    listener: &TcpListener,
    open: &Sender<Infallible>,
    closing: &CancellationToken,
) -> Infallible {
    let crowd = Crowd::new(shared.rules().settings.connections);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let guest = crowd.admit().await;
                tokio::spawn(connection(Arc::clone(shared), stream, peer, guest, closing.clone(), open.clone()));
            }
            Err(wrong) if of_one_connection(&wrong) => {}
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

fn of_one_connection(wrong: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(wrong.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    guest: Guest,
    closing: CancellationToken,
    _open: Sender<Infallible>,
) {
    // A frame waits for nobody; without the option it only comes later.
    drop(stream.set_nodelay(true));
    let (socket, guest) = (Arc::new(Socket::new(stream)), Arc::new(guest));
    let service = service_fn(|request| {
        let (shared, mut visit) = (Arc::clone(&shared), guest.visit());
        async move {
            let answer = service::answer(shared, peer, &mut visit, request).await;
            Ok::<_, Infallible>(answer.map(|answer| Given { answer, _visit: visit }))
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Wire(Arc::clone(&socket))), service));
    let asked = async {
        tokio::select! {
            () = closing.cancelled() => {}
            () = guest.leave.cancelled() => {}
        }
    };
    tokio::select! {
        _ended = connection.as_mut() => return farewell(&socket.stream, &guest.leave, &closing).await,
        () = hung_up(&socket.stream, || guest.is_busy()) => return,
        () = asked => {}
    }
    connection.as_mut().graceful_shutdown();
    end(connection, &socket, &guest).await;
}

/// Waits until a connection that takes no further request has ended. A request under way comes to its end, and its client gets
/// all of the answer as long as he takes some; who has sent nothing goes at once, who sends no more of a head soon.
async fn end(mut connection: Pin<&mut impl Future>, socket: &Socket, guest: &Guest) {
    let mut patience = Duration::ZERO;
    loop {
        let taken = socket.taken();
        if timeout(patience, connection.as_mut()).await.is_ok() {
            return;
        }
        let moves = guest.is_busy() || socket.taken() != taken;
        let is_over = !patience.is_zero() || !socket.has_heard();
        if is_over && !moves {
            return;
        }
        guest.tarries();
        patience = if socket.owes() { TAKEN_NOTHING } else { LAST_BYTES };
    }
}

/// Takes in what is still sent on a connection whose last answer was given, as long as nobody needs its place.
async fn farewell(stream: &TcpStream, leave: &CancellationToken, closing: &CancellationToken) {
    tokio::select! {
        () = linger(stream) => {}
        () = leave.cancelled() => {}
        () = closing.cancelled() => {}
    }
}

/// An answer whose request is under way until all of it was handed over.
struct Given {
    answer: Answer,
    _visit: Visit,
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
    use std::task::Waker;

    use super::*;

    #[tokio::test]
    async fn who_lingers_makes_room_and_keeps_no_daemon_from_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.unwrap();
        for asked in [0, 1] {
            let tokens = [CancellationToken::new(), CancellationToken::new()];
            let mut lingers = pin!(farewell(&stream, &tokens[0], &tokens[1]));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(lingers.as_mut().poll(&mut cx).is_pending());
            tokens[asked].cancel();
            assert!(lingers.as_mut().poll(&mut cx).is_ready());
        }
    }
}
