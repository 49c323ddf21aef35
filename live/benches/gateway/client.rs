//! A client that costs next to nothing: requests are bytes made before, answers are looked through for where they end.

use std::{net::SocketAddr, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A connection, and what has come over it.
pub struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
    filled: usize,
}

/// A chat as the SDKs send it.
pub fn chat(model: &str, rest: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"{model}","messages":[{{"role":"system","content":"You are a helpful assistant."}},{{"role":"user","content":"Say hello to me, please, in a few friendly words."}}],"temperature":0.7{rest}}}"#
    );
    let head = concat!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n",
        "Content-Type: application/json\r\nUser-Agent: OpenAI/Python 1.0\r\nX-Stainless-Lang: python\r\n",
        "X-Stainless-Package-Version: 1.0\r\nAuthorization: Bearer abc\r\n"
    );
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The bytes of the body of such a request.
pub fn body_of(request: &[u8]) -> usize {
    request.len() - end_of_head(request).expect("it has a head")
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("a socket has this option");
        Client { stream, bytes: vec![0; 4096], filled: 0 }
    }

    /// Only sends.
    pub async fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.expect("it is taken");
    }

    /// One request over a connection of its own; how long it took, in microseconds.
    pub async fn ask_once(address: SocketAddr, request: &[u8]) -> f64 {
        let start = Instant::now();
        let mut client = Client::connect(address).await;
        client.send(request).await;
        client.answer().await;
        start.elapsed().as_secs_f64() * 1e6
    }

    /// One request; how long it took, in microseconds.
    pub async fn ask(&mut self, request: &[u8]) -> f64 {
        let start = Instant::now();
        self.send(request).await;
        self.answer().await;
        start.elapsed().as_secs_f64() * 1e6
    }

    /// The body of an answer that says how long it is.
    pub async fn answer(&mut self) -> Vec<u8> {
        self.filled = 0;
        loop {
            assert!(self.read().await > 0, "the connection ended within an answer");
            let so_far = &self.bytes[..self.filled];
            let Some(body) = end_of_head(so_far) else { continue };
            let head = std::str::from_utf8(&so_far[..body]).expect("a head is text").to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{}", String::from_utf8_lossy(so_far));
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("it has a length");
            if self.filled >= body + length.parse::<usize>().expect("a length is a number") {
                return so_far[body..].to_vec();
            }
        }
    }

    /// What comes next, as it comes: one read of the system. `None` after the last chunk.
    pub async fn piece(&mut self) -> Option<&[u8]> {
        self.filled = 0;
        let count = self.read().await;
        let piece = &self.bytes[..count];
        (!piece.ends_with(b"0\r\n\r\n")).then_some(piece)
    }

    async fn read(&mut self) -> usize {
        if self.filled == self.bytes.len() {
            self.bytes.resize(2 * self.filled, 0);
        }
        let count = self.stream.read(&mut self.bytes[self.filled..]).await.expect("it answers");
        self.filled += count;
        count
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
}
