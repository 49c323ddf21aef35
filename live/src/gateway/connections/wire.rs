//! A client's socket, which more than one looks at: hyper, which reads and writes; whoever watches that the client is there,
//! since hyper looks only while it has nothing unread of him; and whoever takes in what a refused client still sends.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use rustix::net::{Shutdown, shutdown};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Between two looks at a client of whom something is unread.
const LOOK: Duration = Duration::from_secs(1);
/// So long, and so many bytes, a refused client may go on sending: the kernel answers what nobody reads with a reset, which
/// takes the refusal from the client's hands.
const LINGER: Duration = Duration::from_secs(2);
const MOST: usize = 256 * 1024 * 1024;

/// Whether the system tells that a socket is ready when that begins, rather than for as long as it is.
const TOLD_ANEW: bool = cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"));

/// A socket, and what has gone over it.
#[derive(Debug)]
pub(super) struct Socket {
    pub stream: TcpStream,
    /// Whether a byte was read, so that a request has begun or has been.
    heard: AtomicBool,
    /// Whether bytes wait to be taken.
    owes: AtomicBool,
    /// Bytes that were taken.
    taken: AtomicU64,
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Socket {
        Socket { stream, heard: AtomicBool::new(false), owes: AtomicBool::new(false), taken: AtomicU64::new(0) }
    }

    /// Whether its client has sent anything.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.load(Relaxed)
    }

    /// Whether hyper has bytes for its client that the kernel has no room for.
    pub(super) fn owes(&self) -> bool {
        self.owes.load(Relaxed)
    }

    /// How many bytes the kernel has taken for its client.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

/// The socket as hyper wants it.
#[derive(Debug)]
pub(super) struct Wire {
    pub socket: Arc<Socket>,
    /// What is read before anything of the socket.
    pub ahead: Bytes,
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead.split_to(count));
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.socket.stream.poll_read_ready(cx))?;
            match read_some(&self.socket.stream, buffer) {
                Ok(read) => {
                    self.socket.heard.fetch_or(read > 0, Relaxed);
                    return Poll::Ready(Ok(()));
                }
                Err(wrong) if wrong.kind() == io::ErrorKind::WouldBlock => {}
                Err(wrong) => return Poll::Ready(Err(wrong)),
            }
        }
    }
}

/// Reads what there is. If that was less than there is room for, nothing is left, and nobody needs to ask the kernel for that
/// to be told so. Where readiness is told when it begins (epoll, kqueue) what comes later is told anew; tokio's own reading does
/// the same.
fn read_some(stream: &TcpStream, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
    let (room, mut some) = (buffer.remaining(), None);
    let outcome = stream.try_io(Interest::READABLE, || match stream.try_read_buf(buffer)? {
        read if TOLD_ANEW && 0 < read && read < room => {
            some = Some(read);
            Err(io::ErrorKind::WouldBlock.into())
        }
        read => Ok(read),
    });
    some.map_or(outcome, Ok)
}

impl Wire {
    fn poll_sent(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.socket.owes.store(true, Relaxed);
        loop {
            ready!(self.socket.stream.poll_write_ready(cx))?;
            match send(&self.socket.stream) {
                Err(wrong) if wrong.kind() == io::ErrorKind::WouldBlock => {}
                sent => {
                    let bytes = sent.as_ref().map_or(0, |bytes| *bytes as u64);
                    self.socket.taken.fetch_add(bytes, Relaxed);
                    return Poll::Ready(sent);
                }
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_sent(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_sent(cx, |stream| stream.try_write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Hyper asks for it when it has nothing more to send.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.owes.store(false, Relaxed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&self.socket.stream, Shutdown::Write).map_err(Into::into))
    }
}

/// Waits until the client of a request under way has hung up. One who closes at the moment he has sent all may still be read,
/// so he has gone when he is seen so twice.
pub(super) async fn hung_up(stream: &TcpStream, is_busy: impl Fn() -> bool) {
    let mut before = false;
    loop {
        let closed = stream.ready(Interest::READABLE).await.map_or(true, |ready| ready.is_read_closed());
        let gone = closed && is_busy();
        if gone && before {
            return;
        }
        before = gone;
        // Elsewhere, since few ever come to this.
        Box::pin(sleep(LOOK)).await;
    }
}

/// Takes in what a client still sends who has his answer, so that he gets to read it.
pub(super) async fn linger(stream: &TcpStream) {
    let rest = async {
        let mut left = MOST;
        while left > 0 && stream.readable().await.is_ok() {
            match discard(stream) {
                Ok(0) => return,
                Ok(read) => left = left.saturating_sub(read),
                Err(wrong) if wrong.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    drop(timeout(LINGER, rest).await);
}

fn discard(stream: &TcpStream) -> io::Result<usize> {
    stream.try_read(&mut [0; 64 * 1024])
}
