//! A client's socket, which more than one looks at: hyper, which reads and writes; whoever watches that the client is there,
//! since hyper looks only while it has nothing unread of him; and whoever takes in what a refused client still sends.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

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

/// The socket as hyper wants it.
#[derive(Debug)]
pub(super) struct Wire(pub Arc<TcpStream>);

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buffer) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(wrong) if wrong.kind() == io::ErrorKind::WouldBlock => {}
                Err(wrong) => return Poll::Ready(Err(wrong)),
            }
        }
    }
}

impl Wire {
    fn poll_sent(
        &self,
        cx: &mut Context<'_>,
        send: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match send(&self.0) {
                Err(wrong) if wrong.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
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

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&*self.0, Shutdown::Write).map_err(Into::into))
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
        sleep(LOOK).await;
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
