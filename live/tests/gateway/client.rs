//! A client that speaks HTTP by hand, so that every byte can be looked at and it can leave at any moment.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub address: SocketAddr,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// An answer that is still coming.
pub struct Stream {
    pub socket: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub async fn post(self, path: &str, body: &str) -> Reply {
        self.request("POST", path, &[("content-type", "application/json")], body.as_bytes()).await
    }

    pub async fn get(self, path: &str) -> Reply {
        self.request("GET", path, &[], b"").await
    }

    pub async fn request(self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.begin(method, path, headers, body).await;
        let head = stream.head().await;
        stream.rest(method, head).await
    }

    /// Sends a request and reads nothing.
    pub async fn begin(self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Stream {
        let mut stream = Stream { socket: TcpStream::connect(self.address).await.unwrap(), buffer: Vec::new() };
        stream.send(method, path, headers, body).await;
        stream
    }

    /// Sends a head with these headers only, and `host`.
    pub async fn begin_bare(self, method: &str, path: &str, headers: &[(&str, &str)]) -> Stream {
        let mut stream = Stream { socket: TcpStream::connect(self.address).await.unwrap(), buffer: Vec::new() };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write((head + "\r\n").as_bytes()).await;
        stream
    }

    pub async fn begin_post(self, path: &str, body: &str) -> Stream {
        self.begin("POST", path, &[("content-type", "application/json")], body.as_bytes()).await
    }
}

impl Stream {
    /// A connection of which everything was read.
    pub fn of(socket: TcpStream) -> Stream {
        Stream { socket, buffer: Vec::new() }
    }

    pub async fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += "host: localhost\r\n";
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || method == "POST" {
            head += &format!("content-length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.socket.write_all(head.as_bytes()).await.unwrap();
        // A refusal may come before the body has gone.
        drop(self.socket.write_all(body).await);
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        // Who refuses may have closed already.
        drop(self.socket.write_all(bytes).await);
    }

    /// Sends no more and reads to the end.
    pub async fn finish(&mut self) {
        drop(self.socket.shutdown().await);
        while self.more().await > 0 {}
    }

    async fn more(&mut self) -> usize {
        let mut piece = [0; 65536];
        let read = tokio::time::timeout(PATIENCE, self.socket.read(&mut piece)).await.expect("bytes in time");
        let read = read.unwrap_or(0);
        self.buffer.extend_from_slice(&piece[..read]);
        read
    }

    /// The head of the answer.
    pub async fn head(&mut self) -> String {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8(self.buffer.drain(..end + 4).collect()).unwrap();
                return head;
            }
            assert!(self.more().await > 0, "a head before the end: {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    /// The next answer, which says how long it is.
    pub async fn reply(&mut self) -> Reply {
        let head = self.head().await;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut reply = Reply { status, head, body: Vec::new() };
        let length: usize = reply.header("content-length").expect("a length").parse().unwrap();
        while self.buffer.len() < length {
            assert!(self.more().await > 0, "a whole body");
        }
        reply.body = self.buffer.drain(..length).collect();
        reply
    }

    /// Whatever comes next of a chunked body: one chunk; empty: the last one. `None`: the connection ended.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = find(&self.buffer, b"\r\n") {
                let text = std::str::from_utf8(&self.buffer[..line]).unwrap();
                let size = usize::from_str_radix(text, 16).expect("a chunk's size");
                if self.buffer.len() >= line + 2 + size + 2 {
                    let chunk = self.buffer[line + 2..line + 2 + size].to_vec();
                    self.buffer.drain(..line + 2 + size + 2);
                    return Some(chunk);
                }
            }
            if self.more().await == 0 {
                return None;
            }
        }
    }

    /// Everything that comes in chunks until the end, and whether it was a good end.
    pub async fn chunks(&mut self) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await {
            if chunk.is_empty() {
                return (all, true);
            }
            all.extend(chunk);
        }
        (all, false)
    }

    pub async fn rest(mut self, method: &str, head: String) -> Reply {
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut reply = Reply { status, head, body: Vec::new() };
        if method == "HEAD" || status == 204 {
            // Nothing may follow: whatever there is shows at the next answer.
            assert_eq!(self.buffer, b"", "no body");
            return reply;
        }
        if reply.header("transfer-encoding") == Some("chunked") {
            let (body, whole) = self.chunks().await;
            assert!(whole, "a whole body: {:?}", String::from_utf8_lossy(&body));
            reply.body = body;
            return reply;
        }
        let length: usize = reply.header("content-length").expect("a length").parse().unwrap();
        while self.buffer.len() < length {
            assert!(self.more().await > 0, "a whole body");
        }
        reply.body = self.buffer;
        reply
    }
}

impl Reply {
    pub fn header(&self, wanted: &str) -> Option<&str> {
        header(&self.head, wanted)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|wrong| panic!("{wrong}: {}", self.text()))
    }

    /// The reason header.
    pub fn reason(&self) -> &str {
        self.header("x-windtunnel-reason").unwrap_or_default()
    }
}

/// The value of a header.
pub fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case(wanted).then_some(value.trim())
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
