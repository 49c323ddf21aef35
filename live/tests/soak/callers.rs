//! Clients that ask for anything, correctly or not, and leave when they like.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rand::{RngExt, seq::IndexedRandom};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use crate::{
    LONG,
    configuration::{MODELS, MORE},
    http::{self, Request},
};

/// Every status that an answer may have.
const MEANT: [u16; 12] = [200, 400, 403, 404, 405, 408, 413, 422, 429, 500, 502, 503];

/// What came of all requests.
#[derive(Default)]
pub struct Tally {
    pub whole: AtomicU64,
    pub refused: AtomicU64,
    pub left: AtomicU64,
}

/// Asks one thing after another.
pub async fn call(address: SocketAddr, mut random: Random, tally: Arc<Tally>, until: Instant) {
    while Instant::now() < until {
        let request = request(&mut random);
        match random.random_range(0..10) {
            0 => {
                let length = request.head.len() + 2 + request.body.len();
                http::begin_and_leave(address, &request, random.random_range(0..=length)).await;
                tally.left.fetch_add(1, Ordering::Relaxed);
            }
            1 | 2 => {
                http::ask_and_leave(address, &request, Duration::from_micros(random.random_range(0..400_000))).await;
                tally.left.fetch_add(1, Ordering::Relaxed);
            }
            _ => stay(address, &request, &tally).await,
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..60))).await;
    }
}

async fn stay(address: SocketAddr, request: &Request, tally: &Tally) {
    let answer = match http::ask(address, request, LONG).await {
        Ok(answer) => answer,
        Err(wrong) => panic!("{wrong}\n{}\n{}", request.head, request.body),
    };
    let text = String::from_utf8_lossy(&answer.body);
    assert!(MEANT.contains(&answer.status), "{} for\n{}\n{}\n{text}", answer.status, request.head, request.body);
    if answer.status == 200 {
        tally.whole.fetch_add(1, Ordering::Relaxed);
    } else {
        assert!(text.contains("\"error\""), "{} without an envelope for\n{}\n{text}", answer.status, request.head);
        tally.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// A plain request for a model.
pub fn plain(model: &str) -> Request {
    match model {
        "vectors" => Request::post("/v1/embeddings", r#"{"model":"vectors","input":["one","two"]}"#),
        _ => chat(model, 3, "false"),
    }
}

fn chat(model: &str, tokens: u32, stream: &str) -> Request {
    let body = format!(
        r#"{{"model":"{model}","max_tokens":{tokens},"stream":{stream},"messages":[{{"role":"user","content":"how are you"}}]}}"#
    );
    Request::post("/v1/chat/completions", &body)
}

fn request(random: &mut Random) -> Request {
    let generators = MODELS.iter().filter(|model| **model != "vectors").chain(&MORE).copied().chain(["any", "nobody"]);
    let generators: Vec<&str> = generators.collect();
    let model = generators.choose(random).copied().unwrap_or("chat");
    let tokens = random.random_range(1..120);
    let request = match random.random_range(0..14) {
        0..4 => chat(model, tokens, "false"),
        4..8 => chat(model, tokens, "true"),
        8 => {
            let inputs = vec!["\"a text\""; random.random_range(1..100)].join(",");
            Request::post("/v1/embeddings", &format!(r#"{{"model":"vectors","input":[{inputs}]}}"#))
        }
        9 => {
            let messages = r#"[{"role":"user","content":"hello"}]"#;
            let body = format!(r#"{{"model":"{model}","max_tokens":{tokens},"stream":true,"messages":{messages}}}"#);
            Request::post("/v1/messages", &body)
        }
        10 => {
            Request::post("/v1/completions", &format!(r#"{{"model":"{model}","prompt":"once","max_tokens":{tokens}}}"#))
        }
        11 => Request::get(
            ["/v1/models", "/metrics", "/health", "/nowhere", "/admin/events"].choose(random).unwrap_or(&"/"),
        ),
        12 => Request::post(
            "/v1/chat/completions",
            ["", "{", "[]", r#"{"model":7}"#, "\u{0}"].choose(random).unwrap_or(&""),
        ),
        _ => Request::post("/tokenize", &format!(r#"{{"model":"{model}","content":"some words"}}"#)),
    };
    let request = match ["interactive", "background", "batch", ""].choose(random) {
        Some(&class) if !class.is_empty() => request.header("X-Windtunnel-Class", class),
        _ => request,
    };
    match random.random_range(0..10) {
        0 => request.header("X-Windtunnel-Deadline-Ms", &random.random_range(1..3000).to_string()),
        1 => request.header("X-Windtunnel-Max-Wait-Ms", &random.random_range(1..3000).to_string()),
        _ => request,
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = |one: &AtomicU64| one.load(Ordering::Relaxed);
        write!(f, "{} answered, {} refused, {} left", read(&self.whole), read(&self.refused), read(&self.left))
    }
}
