//! An OpenAI endpoint that answers as it is told: a thread per connection, raw bytes with pauses between them.
//!
//! An answer that neither says its length nor ends its last chunk ends with the connection. While an answer pauses, its
//! client may go away, which is counted.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

/// Bytes, each after a pause.
pub type Answer = Vec<(Duration, Vec<u8>)>;

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// In lower case, a line each.
    pub headers: String,
    pub body: Value,
}

type Script = dyn Fn(usize, &Asked) -> Answer + Send + Sync;

/// The endpoint; it listens as long as the test runs.
pub struct Endpoint {
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<Script>,
    /// A connection is closed without a word after so many requests.
    per_connection: usize,
    asked: Mutex<Vec<Asked>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    gone: AtomicUsize,
}

impl Endpoint {
    /// One that gives the answer of `script` to the request of that number, from 0.
    pub fn start(per_connection: usize, script: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let shared = Arc::new(Shared {
            script: Box::new(script),
            per_connection,
            asked: Mutex::default(),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
        });
        let endpoint = Endpoint { url, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(stream));
            }
        });
        endpoint
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("nobody panicked").clone()
    }

    /// The most requests that were under way at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.most_at_once.load(Ordering::SeqCst)
    }

    /// Clients that went away while they were answered.
    pub fn gone(&self) -> usize {
        self.shared.gone.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a socket can be cloned"));
        let mut stream = stream;
        for _ in 0..self.per_connection {
            stream.set_read_timeout(None).expect("no time-out");
            let Some(asked) = request(&mut reader) else { return };
            let number = {
                let mut all = self.asked.lock().expect("nobody panicked");
                all.push(asked.clone());
                all.len() - 1
            };
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            let answer = (self.script)(number, &asked);
            let goes_on = self.give(&mut stream, &answer);
            if !goes_on {
                return;
            }
        }
    }

    /// Whether the connection can carry another request. A request counts as under way until its last byte is written, so
    /// that a client which asks again at once is never counted twice.
    fn give(&self, stream: &mut TcpStream, answer: &Answer) -> bool {
        let mut whole = Vec::new();
        for (number, (pause, bytes)) in answer.iter().enumerate() {
            if number + 1 == answer.len() {
                let stays = stays(stream, *pause);
                self.at_once.fetch_sub(1, Ordering::SeqCst);
                if !stays || stream.write_all(bytes).is_err() {
                    self.gone.fetch_add(1, Ordering::SeqCst);
                    return false;
                }
            } else if !stays(stream, *pause) || stream.write_all(bytes).is_err() {
                self.at_once.fetch_sub(1, Ordering::SeqCst);
                self.gone.fetch_add(1, Ordering::SeqCst);
                return false;
            }
            whole.extend_from_slice(bytes);
        }
        whole.ends_with(b"\r\n0\r\n\r\n") || String::from_utf8_lossy(&whole).contains("content-length:")
    }
}

/// Waits; false if the client has gone meanwhile.
fn stays(stream: &mut TcpStream, pause: Duration) -> bool {
    if pause.is_zero() {
        return true;
    }
    stream.set_read_timeout(Some(pause)).expect("a pause is above zero");
    match stream.peek(&mut [0]) {
        Ok(count) => count > 0,
        Err(wrong) => matches!(wrong.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|count| *count > 0)?;
    let mut headers = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        if line.trim().is_empty() {
            break;
        }
        headers.push_str(&line.to_ascii_lowercase());
    }
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    Some(Asked { path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// An answer in one piece after a pause.
pub fn whole(pause: Duration, status: &str, headers: &str, body: &str) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    vec![(pause, (head + body).into_bytes())]
}

/// A stream of as many tokens as the request asks for, the head with these headers and the first token after a pause.
pub fn tokens(pause: Duration, headers: &str, asked: &Asked) -> Answer {
    let count = asked.body["max_tokens"].as_u64().unwrap_or(1);
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{headers}\r\n");
    let role = r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#;
    let token = r#"{"choices":[{"delta":{"content":" a"}}]}"#;
    let usage = format!(r#"{{"choices":[],"usage":{{"completion_tokens":{count}}}}}"#);
    let none = Duration::ZERO;
    let mut answer = vec![(none, head.into_bytes()), (none, event(role)), (pause, event(token))];
    answer.extend((1..count).map(|_| (none, event(token))));
    answer.extend([(none, event(&usage)), (none, event("[DONE]")), (none, b"0\r\n\r\n".to_vec())]);
    answer
}

/// An event of a stream, as a chunk.
pub fn event(data: &str) -> Vec<u8> {
    let text = format!("data: {data}\n\n");
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
