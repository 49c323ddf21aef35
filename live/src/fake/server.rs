//! The server: its listener, its connections, and the handle by which whoever started it rules it.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::{Answer, Body, Fate},
    card::{Card, Seat},
    routes,
    settings::{AnswerFault, Death, Pace, Settings},
    wire::{Garbler, Wire},
};

/// The process that a server lives in, or what stands for it.
pub trait Process: Send + Sync {
    /// Ends it.
    fn die(&self, death: Death);

    /// Says something where the log goes.
    fn log(&self, line: &str);
}

/// A running server. It goes on when this is dropped; [`FakeServer::stop`] ends it.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    inner: Arc<Inner>,
}

/// What the requests of a server share.
pub(super) struct Inner {
    pub settings: Settings,
    /// `None`: answers take no time.
    pub seat: Option<Seat>,
    pub slots: Slots,
    ready: AtomicBool,
    asked: AtomicU64,
    stopped: CancellationToken,
    pub process: Arc<dyn Process>,
}

/// The slots, each of which does one request at a time.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    busy: Mutex<Vec<bool>>,
}

/// A slot that is held.
pub(super) struct Held {
    pub number: usize,
    inner: Arc<Inner>,
    _permit: OwnedSemaphorePermit,
}

impl FakeServer {
    /// Starts to answer on `listener` that the model is being loaded; `card` is where it runs, beside others perhaps.
    ///
    /// # Errors
    /// If the listener has no address.
    pub fn start(
        listener: TcpListener,
        settings: Settings,
        card: Option<&Card>,
        process: Arc<dyn Process>,
    ) -> io::Result<FakeServer> {
        let address = listener.local_addr()?;
        let seat = match settings.pace {
            Pace::Instant => None,
            Pace::Service(service) => {
                let own = card.is_none().then(|| Card::start(1.0, 1.0, &Handle::current()));
                card.or(own.as_ref()).map(|card| card.seat(service))
            }
        };
        let inner = Arc::new(Inner {
            slots: Slots::new(settings.slots),
            settings,
            seat,
            ready: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            stopped: CancellationToken::new(),
            process,
        });
        tokio::spawn(accept(listener, Arc::clone(&inner)));
        Ok(FakeServer { address, inner })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The model is loaded.
    pub fn ready(&self) {
        self.inner.ready.store(true, Ordering::Release);
    }

    /// Requests so far that have work done.
    pub fn asked(&self) -> u64 {
        self.inner.asked.load(Ordering::Relaxed)
    }

    /// Slots that work.
    pub fn busy(&self) -> usize {
        self.inner.slots.picture().into_iter().filter(|busy| *busy).count()
    }

    /// Closes the listener and every connection at once.
    pub fn stop(&self) {
        self.inner.stopped.cancel();
    }
}

impl Inner {
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// What becomes of the next request that has work done.
    pub fn next_fault(&self) -> Option<AnswerFault> {
        let faults = &self.settings.faults;
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let fault = faults.answers?;
        let since = number.checked_sub(faults.spared)?;
        faults.times.is_none_or(|times| since < times).then_some(fault)
    }

    /// Waits for a slot.
    pub async fn slot(self: &Arc<Inner>) -> Option<Held> {
        let permit = Arc::clone(&self.slots.free).acquire_owned().await.ok()?;
        let number = self.slots.take();
        Some(Held { number, inner: Arc::clone(self), _permit: permit })
    }
}

impl Slots {
    fn new(count: u32) -> Slots {
        let count = usize::try_from(count.max(1)).unwrap_or(1);
        Slots { free: Arc::new(Semaphore::new(count)), busy: Mutex::new(vec![false; count]) }
    }

    /// Which of them work.
    pub fn picture(&self) -> Vec<bool> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self) -> usize {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let free = busy.iter().position(|busy| !busy).unwrap_or(0);
        set(&mut busy, free, true);
        free
    }

    fn free(&self, number: usize) {
        set(&mut self.busy.lock().unwrap_or_else(PoisonError::into_inner), number, false);
    }
}

fn set(busy: &mut [bool], number: usize, now: bool) {
    if let Some(one) = busy.get_mut(number) {
        *one = now;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.inner.slots.free(self.number);
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("settings", &self.settings).field("slots", &self.slots).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = inner.stopped.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&inner)))),
            // Out of file descriptors, say: those who wait get their turn when there are some again.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, inner: Arc<Inner>) {
    drop(stream.set_nodelay(true));
    let stopped = inner.stopped.clone();
    let (wire, garbler) = Wire::new(stream);
    let connection =
        Arc::new(Connection { left: AtomicU64::new(inner.settings.requests_a_connection.into()), garbler });
    let idle = inner.settings.idle;
    let service = service_fn(move |request| respond(request, Arc::clone(&inner), Arc::clone(&connection)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(idle).auto_date_header(false);
    tokio::select! {
        biased;
        () = stopped.cancelled() => {}
        // However it ended, the client sees it.
        ended = http.serve_connection(TokioIo::new(wire), service) => drop(ended),
    }
}

struct Connection {
    left: AtomicU64,
    garbler: Garbler,
}

/// Why a connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed")]
struct Closed;

impl From<Infallible> for Closed {
    fn from(never: Infallible) -> Closed {
        match never {}
    }
}

async fn respond(
    request: Request<Incoming>,
    inner: Arc<Inner>,
    connection: Arc<Connection>,
) -> Result<Response<Body>, Closed> {
    let left = connection.left.fetch_sub(1, Ordering::Relaxed);
    let origin = request.headers().get(hyper::header::ORIGIN).cloned();
    let answer: Answer = match routes::answer(request, &inner).await {
        Fate::Answer(answer) => answer,
        Fate::Never => std::future::pending().await,
        Fate::Closed => return Err(Closed),
        Fate::Garbage(answer) => {
            connection.garbler.garble();
            answer
        }
    };
    Ok(answer.into_response(&inner.settings, left <= 1, origin))
}
