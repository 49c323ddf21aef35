//! Connections to the endpoint: kept alive, used again, opened whenever none is free.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::Address;

/// A connection that nobody used for so long is closed: some servers close theirs after five seconds, and a request that
/// meets the end of a connection would be late for no fault of the server's.
const FRESH: Duration = Duration::from_secs(2);

/// The connections to one endpoint.
#[derive(Debug)]
pub(super) struct Connections {
    address: Address,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    link: Link,
    since: Instant,
}

/// A connection that carries one request at a time.
pub(super) type Link = SendRequest<Full<Bytes>>;

/// Whether a connection has carried a request before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was opened for this one.
    New,
    /// It was kept from an earlier one, so its other end may have closed it meanwhile.
    Kept,
}

impl Connections {
    pub fn new(address: Address) -> Connections {
        Connections { address, idle: Mutex::default() }
    }

    /// One that is kept, the last used first, or a new one.
    pub async fn get(&self) -> io::Result<(Link, Origin)> {
        while let Some(link) = self.kept() {
            if !link.is_closed() {
                return Ok((link, Origin::Kept));
            }
        }
        Ok((self.open().await?, Origin::New))
    }

    /// A new one.
    pub async fn open(&self) -> io::Result<Link> {
        let stream = TcpStream::connect(self.address.connect()).await?;
        stream.set_nodelay(true)?;
        let (link, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Whoever waits for an answer learns of its end as well.
        tokio::spawn(async move { drop(connection.await) });
        Ok(link)
    }

    /// Keeps one whose answer has ended.
    pub fn keep(&self, link: Link) {
        if !link.is_closed() {
            self.idle().push(Idle { link, since: Instant::now() });
        }
    }

    fn kept(&self) -> Option<Link> {
        let mut idle = self.idle();
        let last = idle.pop()?;
        if last.since.elapsed() < FRESH {
            return Some(last.link);
        }
        // All others are older.
        idle.clear();
        None
    }

    /// A list that a panic left behind is as good as any.
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
