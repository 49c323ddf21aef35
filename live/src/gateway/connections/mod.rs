//! Connections: accepted as long as there is room (`crowd`), served over their sockets (`wire`) by hyper or, while a request waits
//! (`lull`), by nobody (`talk`), and at the end drained.

mod crowd;
mod lull;
mod manner;
mod talk;
mod wire;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, Sender},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{access::may_listen, service, shared::Shared};
use crowd::{Crowd, Guest};
pub(super) use crowd::{Crowded, Visit};
pub(super) use lull::Lull;
use talk::{Answerer, Given, Over, Talk};
use wire::{Socket, hung_up, linger};

/// How long a listener rests that has no file descriptor left for a connection.
const REST: Duration = Duration::from_millis(50);
/// How long clients are given to take the last bytes of what was broken off, or to send the rest of a head.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// Serves until `shutdown`, and until what runs has ended.
pub(super) async fn serve(shared: &Arc<Shared>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    may_listen(&shared.rules().settings, listener.local_addr()?).map_err(io::Error::other)?;
    let (open, mut ended) = mpsc::channel(1);
    let crowd = Crowd::new(shared.rules().settings.connections);
    let accepting = accept(shared, &listener, &open, &crowd);
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
    crowd.close();
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
    crowd: &Arc<Crowd>,
) -> Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let guest = crowd.admit().await;
                tokio::spawn(connection(shared, stream, peer, guest, open.clone()));
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

/// A client's connection until its end.
fn connection(
    shared: &Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    guest: Guest,
    open: Sender<Infallible>,
) -> impl Future<Output = ()> + use<> {
    // A frame waits for nobody; without the option it only comes later.
    drop(stream.set_nodelay(true));
    let (socket, guest) = (Arc::new(Socket::new(stream)), Arc::new(guest));
    let taken_nothing = shared.rules().settings.taken_nothing;
    let talk = Talk::new(Arc::clone(&socket), answerer(Arc::clone(shared), peer, Arc::clone(&guest)));
    async move {
        let _open = open;
        converse(talk, &socket, &guest, taken_nothing).await;
    }
}

async fn converse(mut talk: Talk, socket: &Socket, guest: &Guest, taken_nothing: Duration) {
    tokio::select! {
        // First, since it notices at once what the next looks for with timers.
        biased;
        over = &mut talk => return match over {
            Over::Left => {}
            // Elsewhere, so that who waits keeps no room for it.
            Over::Closed => Box::pin(farewell(&socket.stream, &guest.leave)).await,
        },
        () = hung_up(&socket.stream, || guest.is_busy()) => return,
        () = guest.leave.cancelled() => {}
    }
    talk.refuse_further();
    Box::pin(end(&mut talk, socket, guest, taken_nothing)).await;
}

fn answerer(shared: Arc<Shared>, peer: SocketAddr, guest: Arc<Guest>) -> Answerer {
    Arc::new(move |request, lull| {
        // Elsewhere, so that who waits keeps no room for it.
        let request = Box::new(request);
        let (shared, mut visit) = (Arc::clone(&shared), guest.visit());
        Box::pin(async move {
            let answer = service::answer(shared, peer, &mut visit, &lull, request).await;
            answer.map(|answer| Given::new(answer, visit))
        })
    })
}

/// Waits until a connection that takes no further request has ended. A request under way comes to its end, and its client gets
/// all of the answer as long as he takes some; who has sent nothing goes at once, who sends no more of a head soon.
async fn end(talk: &mut Talk, socket: &Socket, guest: &Guest, taken_nothing: Duration) {
    let mut patience = Duration::ZERO;
    loop {
        let taken = socket.taken();
        if timeout(patience, &mut *talk).await.is_ok() {
            return;
        }
        let moves = guest.is_busy() || socket.taken() != taken;
        let is_over = !patience.is_zero() || !socket.has_heard();
        if is_over && !moves {
            return;
        }
        guest.tarries();
        patience = if socket.owes() { taken_nothing } else { LAST_BYTES };
    }
}

/// Takes in what is still sent on a connection whose last answer was given, as long as nobody needs its place.
async fn farewell(stream: &TcpStream, leave: &CancellationToken) {
    tokio::select! {
        () = linger(stream) => {}
        () = leave.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    #[tokio::test]
    async fn who_lingers_goes_when_he_is_asked_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.unwrap();
        let leave = CancellationToken::new();
        let mut lingers = pin!(farewell(&stream, &leave));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(lingers.as_mut().poll(&mut cx).is_pending());
        leave.cancel();
        assert!(lingers.as_mut().poll(&mut cx).is_ready());
    }
}
