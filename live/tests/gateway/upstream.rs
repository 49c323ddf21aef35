//! A child by script: it reads a request by hand, remembers it, and lets the test decide what is written when.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};

/// A request as the child got it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Over which connection, in the order in which they were opened.
    pub connection: usize,
    pub head: String,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, wanted: &str) -> Option<&str> {
        super::client::header(&self.head, wanted)
    }

    /// `POST /path`.
    pub fn line(&self) -> &str {
        self.head.split(" HTTP/").next().unwrap()
    }
}

/// Makes an answer of a request.
pub type Make = Arc<dyn Fn(&Asked) -> Vec<u8> + Send + Sync>;

/// What a child does with a request.
#[derive(Clone)]
pub enum Script {
    /// Writes this and closes.
    Write(Vec<u8>),
    /// Writes what the test says, until it says no more; then it closes. The next request may come over the same connection.
    Told,
    /// Makes an answer of the request.
    Make(Make),
}

/// A child whose requests can be looked at.
pub struct Upstream {
    pub address: SocketAddr,
    pub asked: Arc<Mutex<Vec<Asked>>>,
    /// Slots that `/slots` says are working; `usize::MAX`: it does not answer.
    pub working: Arc<AtomicUsize>,
    /// Looks at `/slots`.
    pub looks: Arc<AtomicUsize>,
    /// Connections that are open and have carried a request, `/slots` left out.
    pub open: Arc<AtomicUsize>,
    conversations: tokio::sync::Mutex<UnboundedReceiver<Conversation>>,
}

/// A request whose answer the test writes.
pub struct Conversation {
    pub asked: Asked,
    say: UnboundedSender<Vec<u8>>,
}

impl Conversation {
    pub fn say(&self, bytes: impl AsRef<[u8]>) {
        drop(self.say.send(bytes.as_ref().to_vec()));
    }

    /// A chunk of a chunked body.
    pub fn chunk(&self, bytes: impl AsRef<[u8]>) {
        self.say(chunk(bytes.as_ref()));
    }

    /// The head of a stream of events.
    pub fn open_stream(&self) {
        self.say(STREAM);
    }

    /// Whether the gateway has closed the connection.
    pub async fn closed(&self) {
        tokio::time::timeout(Duration::from_secs(20), self.say.closed()).await.expect("the connection closes");
    }
}

/// The head of a stream of events as a llama-server writes it.
pub const STREAM: &str = "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n";

pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// An answer with a length.
pub fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nServer: llama.cpp\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Upstream {
    pub async fn new(script: Script) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (say, conversations) = mpsc::unbounded_channel();
        let upstream = Upstream {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            working: Arc::default(),
            looks: Arc::default(),
            open: Arc::default(),
            conversations: tokio::sync::Mutex::new(conversations),
        };
        let child = Child {
            asked: Arc::clone(&upstream.asked),
            working: Arc::clone(&upstream.working),
            looks: Arc::clone(&upstream.looks),
            open: Arc::clone(&upstream.open),
            script,
            conversations: say,
        };
        let child = Arc::new(child);
        tokio::spawn(async move {
            let mut connections = 0..;
            while let (Ok((socket, _)), Some(number)) = (listener.accept().await, connections.next()) {
                tokio::spawn(Arc::clone(&child).serve(Caller { socket, number, bytes: Vec::new() }));
            }
        });
        upstream
    }

    /// A child that always answers this.
    pub async fn saying(answer: Vec<u8>) -> Upstream {
        Upstream::new(Script::Write(answer)).await
    }

    /// A child whose answers the test writes.
    pub async fn told() -> Upstream {
        Upstream::new(Script::Told).await
    }

    pub async fn making(make: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Upstream {
        Upstream::new(Script::Make(Arc::new(make))).await
    }

    /// The next request that comes.
    pub async fn next(&self) -> Conversation {
        let next = async { self.conversations.lock().await.recv().await };
        tokio::time::timeout(Duration::from_secs(20), next).await.expect("a request in time").unwrap()
    }

    pub fn last(&self) -> Asked {
        self.asked.lock().unwrap().last().cloned().expect("a request")
    }

    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Waits until no request's connection is open.
    pub async fn until_closed(&self) {
        let started = Instant::now();
        while self.open.load(Ordering::SeqCst) > 0 {
            assert!(started.elapsed() < Duration::from_secs(20), "connections close");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

struct Child {
    asked: Arc<Mutex<Vec<Asked>>>,
    working: Arc<AtomicUsize>,
    looks: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    script: Script,
    conversations: UnboundedSender<Conversation>,
}

impl Child {
    async fn serve(self: Arc<Child>, mut caller: Caller) {
        let Some(asked) = caller.read().await else { return };
        if asked.line() == "GET /slots" {
            return self.slots(caller.socket).await;
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        self.asked.lock().unwrap().push(asked.clone());
        match &self.script {
            Script::Write(bytes) => drop(caller.socket.write_all(bytes).await),
            Script::Make(make) => drop(caller.socket.write_all(&make(&asked)).await),
            Script::Told => self.converse(&mut caller, asked).await,
        }
        drop(caller);
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    async fn slots(&self, mut socket: TcpStream) {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let working = self.working.load(Ordering::SeqCst);
        if working == usize::MAX {
            return std::future::pending().await;
        }
        let slot = |number| format!("{{\"id\":{number},\"is_processing\":{}}}", number < working);
        let slots: Vec<String> = (0..4).map(slot).collect();
        drop(socket.write_all(&answer("200 OK", &format!("[{}]", slots.join(",")))).await);
    }

    async fn converse(&self, caller: &mut Caller, mut asked: Asked) {
        loop {
            let (say, mut said) = mpsc::unbounded_channel::<Vec<u8>>();
            drop(self.conversations.send(Conversation { asked, say }));
            asked = loop {
                tokio::select! {
                    bytes = said.recv() => match bytes {
                        Some(bytes) => drop(caller.socket.write_all(&bytes).await),
                        None => return,
                    },
                    next = caller.read() => match next {
                        Some(next) => break next,
                        None => return,
                    },
                }
            };
            self.asked.lock().unwrap().push(asked.clone());
        }
    }
}

/// A connection of the gateway.
struct Caller {
    socket: TcpStream,
    number: usize,
    /// What has come of the next request.
    bytes: Vec<u8>,
}

impl Caller {
    /// The next request; `None`: the gateway has closed. Nothing is lost if this is dropped.
    async fn read(&mut self) -> Option<Asked> {
        loop {
            if let Some(asked) = self.whole() {
                return Some(asked);
            }
            self.socket.read_buf(&mut self.bytes).await.ok().filter(|read| *read > 0)?;
        }
    }

    /// A request of which everything has come.
    fn whole(&mut self) -> Option<Asked> {
        let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(self.bytes[..end].to_vec()).unwrap();
        let length: usize = super::client::header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        if self.bytes.len() < end + length {
            return None;
        }
        let rest = self.bytes.split_off(end + length);
        let body = self.bytes.split_off(end);
        self.bytes = rest;
        Some(Asked { connection: self.number, head, body })
    }
}
