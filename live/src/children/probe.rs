//! Whether a child answers, and whether it is ours that does.
//!
//! A port that answers is not our child: an orphan can sit on it while every replacement dies on bind. Ours is known by the
//! key of its launch: with it a protected path answers, without it the same path does not.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::launch::Identity;

/// An answer that takes longer is none; a server that loads answers that it does.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks at a server that loads, at first and at last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// So much of an answer is read.
const MOST: u64 = 64 * 1024;

/// What was found on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Our child, loaded; requests that one connection may carry, where it says.
    Ours { requests_a_connection: Option<u32> },
    /// Somebody who answers without the key.
    Stranger,
}

/// Looks until there is something to tell.
pub async fn look(identity: &Identity) -> Found {
    let mut pause = PAUSES.0;
    loop {
        if let Ok(Some(found)) = once(identity).await {
            return found;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(PAUSES.1);
    }
}

/// One look; `None`: it is still loading.
async fn once(identity: &Identity) -> io::Result<Option<Found>> {
    let key = Some(identity.key.as_str());
    if status(&get(identity.address, "/props", key).await?) != Some(200) {
        return Ok(None);
    }
    if status(&get(identity.address, "/props", None).await?) == Some(200) {
        return Ok(Some(Found::Stranger));
    }
    let health = get(identity.address, "/health", key).await?;
    let ours = Found::Ours { requests_a_connection: requests_a_connection(&health) };
    Ok((status(&health) == Some(200)).then_some(ours))
}

/// The head of an answer.
async fn get(address: SocketAddr, path: &str, key: Option<&str>) -> io::Result<String> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        let key = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{key}\r\n");
        stream.write_all(request.as_bytes()).await?;
        head(stream).await
    };
    timeout(PATIENCE, asked).await?
}

async fn head(stream: TcpStream) -> io::Result<String> {
    let mut stream = stream.take(MOST);
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await? == 0 {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn status(head: &str) -> Option<u16> {
    head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// `Keep-Alive: timeout=5, max=100`.
fn requests_a_connection(head: &str) -> Option<u32> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("keep-alive:"))?;
    line.split([',', ' ']).find_map(|part| part.strip_prefix("max=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\n\r\n";
        assert_eq!((status(head), requests_a_connection(head)), (Some(200), Some(100)));
        assert_eq!(status("HTP/9.9 quite"), None);
        assert_eq!(requests_a_connection("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), None);
    }
}
