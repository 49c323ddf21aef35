//! HTTP by hand, so that a client can leave in the middle of anything.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

pub struct Request {
    pub head: String,
    pub body: String,
}

/// A whole answer, its body as it came on the wire, chunks and all.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get(path: &str) -> Request {
        Request {
            head: format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"),
            body: String::new(),
        }
    }

    pub fn post(path: &str, body: &str) -> Request {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n"
        );
        Request { head, body: body.to_owned() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.head += &format!("{name}: {value}\r\n");
        self
    }
}

/// Asks and reads to the end.
pub async fn ask(address: SocketAddr, request: &Request, patience: Duration) -> Result<Answer, String> {
    let whole = async {
        let mut stream = send(address, request).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.map_err(|wrong| format!("while reading: {wrong}"))?;
        answer(&bytes)
    };
    timeout(patience, whole).await.map_err(|_| format!("no end of an answer within {patience:?}"))?
}

/// Asks, reads for so long, and leaves.
pub async fn ask_and_leave(address: SocketAddr, request: &Request, after: Duration) {
    let read = async {
        let mut stream = send(address, request).await?;
        stream.read_to_end(&mut Vec::new()).await.map_err(|wrong| wrong.to_string())
    };
    drop(timeout(after, read).await);
}

/// Sends a part of a request and leaves.
pub async fn begin_and_leave(address: SocketAddr, request: &Request, part: usize) {
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    let bytes = format!("{}\r\n{}", request.head, request.body).into_bytes();
    drop(stream.write_all(&bytes[..part.min(bytes.len())]).await);
}

async fn send(address: SocketAddr, request: &Request) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|wrong| format!("while connecting: {wrong}"))?;
    let bytes = format!("{}\r\n{}", request.head, request.body);
    stream.write_all(bytes.as_bytes()).await.map_err(|wrong| format!("while sending: {wrong}"))?;
    Ok(stream)
}

fn answer(bytes: &[u8]) -> Result<Answer, String> {
    let text = String::from_utf8_lossy(bytes);
    let (head, _) = text.split_once("\r\n\r\n").ok_or_else(|| format!("no head in {text:?}"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| head.to_owned())?;
    let body = bytes.get(head.len() + 4..).unwrap_or_default().to_vec();
    let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    if chunked && !body.ends_with(b"0\r\n\r\n") {
        return Err(format!("an answer without its end: {text:?}"));
    }
    Ok(Answer { status, body })
}
