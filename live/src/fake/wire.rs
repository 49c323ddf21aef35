//! A connection that can be made to misbehave from inside.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// What goes out instead of an answer.
const GARBAGE: &[u8] = b"HTP/9.9 quite all right\r\n\x00\x01\x02\r\n\r\n";

/// Has the next bytes of a connection replaced.
#[derive(Clone, Debug, Default)]
pub struct Garbler(Arc<AtomicBool>);

/// A connection with such a switch.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    garbler: Garbler,
}

impl Garbler {
    /// From now on.
    pub fn garble(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Wire {
    /// A connection and its switch.
    pub fn new(stream: TcpStream) -> (Wire, Garbler) {
        let garbler = Garbler::default();
        (Wire { stream, garbler: garbler.clone() }, garbler)
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.garbler.0.load(Ordering::Relaxed) {
            return Pin::new(&mut self.stream).poll_write(cx, bytes);
        }
        match Pin::new(&mut self.stream).poll_write(cx, GARBAGE) {
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(bytes.len())),
            other => other,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
