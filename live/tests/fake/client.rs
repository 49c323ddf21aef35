//! A client that sees every byte.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime};
use windtunnel_live::fake::{Death, FakeServer, Process, Settings};

/// Nothing here takes so long.
pub const LONG: Duration = Duration::from_secs(30);

/// A server and the runtime it stands on.
pub struct Served {
    pub server: FakeServer,
    pub deaths: Mutex<mpsc::Receiver<Death>>,
    pub _runtime: Runtime,
}

/// Remembers how it should have died.
struct Deaths(mpsc::Sender<Death>);

impl Process for Deaths {
    fn die(&self, death: Death) {
        self.0.send(death).unwrap_or_default();
    }

    fn log(&self, _line: &str) {}
}

/// An answer, whatever it is.
#[derive(Debug)]
pub struct Answer {
    pub head: String,
    pub body: String,
}

/// A server that is ready.
pub fn served(settings: Settings) -> Served {
    let loading = loading(settings);
    loading.server.ready();
    loading
}

/// One that is still loading.
pub fn loading(settings: Settings) -> Served {
    let runtime = Runtime::new().unwrap();
    let (die, deaths) = mpsc::channel();
    let server = runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        FakeServer::start(listener, settings, None, Arc::new(Deaths(die))).unwrap()
    });
    Served { server, deaths: Mutex::new(deaths), _runtime: runtime }
}

impl Served {
    pub fn post(&self, path: &str, body: &str) -> Answer {
        ask(self.server.address(), &request("POST", path, "", body))
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(self.server.address(), &request("GET", path, "", ""))
    }

    /// A connection of its own, on which `request` was sent.
    pub fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }
}

/// A request with further header lines, each with its end.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

/// Asks on a connection of its own.
pub fn ask(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // A connection that is reset has no more to say either.
    drop(stream.read_to_end(&mut bytes));
    Answer::parse(&bytes)
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Answer {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Answer { head: String::from_utf8_lossy(bytes).into_owned(), body: String::new() };
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { chunks(&bytes[end + 4..]).concat() } else { bytes[end + 4..].to_vec() };
        Answer { head, body: String::from_utf8(body).expect("the whole is UTF-8") }
    }

    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|wrong| panic!("{wrong}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &&str| line.to_lowercase().starts_with(&format!("{name}:"));
        Some(self.head.lines().find(line)?.split_once(':')?.1.trim())
    }

    /// The data of every event.
    pub fn data(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }
}

/// What stands in each chunk; one that is cut short is left out.
pub fn chunks(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        let Some(chunk) = bytes.get(end + 2..end + 2 + size) else { break };
        if size == 0 {
            break;
        }
        all.push(chunk.to_vec());
        bytes = bytes.get(end + 4 + size..).unwrap_or_default();
    }
    all
}
