//! How long answers take: the equations of a simulated card, in real time. What is asserted is what the server says of its
//! own clock, which does not depend on how fast this machine is.

use std::{io::Read, sync::Arc, thread};

use windtunnel_core::{ServiceTimes, Span};
use windtunnel_live::fake::{Kind, Pace, Settings};

use crate::client::{Answer, LONG, Served, request, served};

const SLOTS: ServiceTimes = ServiceTimes::Slots {
    prefill_fixed: Span::from_millis(10),
    prefill_per_token: Span::from_millis(2),
    decode_alpha: Span::from_millis(4),
    decode_beta: Span::from_millis(1),
    prefill_slice: Span::from_millis(5),
};

fn paced(service: ServiceTimes, kind: Kind, slots: u32) -> Served {
    served(Settings { pace: Pace::Service(service), kind, slots, ..Settings::default() })
}

fn prompt(words: usize, output: u32) -> String {
    format!(r#"{{"prompt":"{}","max_tokens":{output}}}"#, "w ".repeat(words))
}

fn times(answer: &Answer) -> (f64, f64) {
    let timings = &answer.json()["timings"];
    (timings["prompt_ms"].as_f64().unwrap(), timings["predicted_ms"].as_f64().unwrap())
}

#[test]
fn a_generation_alone_takes_what_the_equations_say() {
    let served = paced(SLOTS, Kind::Chat, 2);
    let (prompt_ms, predicted_ms) = times(&served.post("/v1/completions", &prompt(20, 11)));
    // 10 + 20 * 2, and ten further tokens at 4 + 1 each; the clock starts a moment before the work.
    assert!((50.0..5_000.0).contains(&prompt_ms), "{prompt_ms}");
    assert!((predicted_ms - 50.0).abs() < 0.01, "{predicted_ms}");
}

#[test]
fn more_requests_than_slots_wait_inside() {
    let served = Arc::new(paced(SLOTS, Kind::Chat, 1));
    let mut long = served.send(&request("POST", "/v1/completions", "Connection: close\r\n", &prompt(1, 100)));
    let started = std::time::Instant::now();
    while served.server.busy() == 0 {
        assert!(started.elapsed() < LONG, "the first gets the slot");
        thread::yield_now();
    }
    let second = thread::spawn({
        let served = Arc::clone(&served);
        move || times(&served.post("/v1/completions", &prompt(1, 2))).1
    });
    let mut bytes = Vec::new();
    long.read_to_end(&mut bytes).unwrap();
    // Neither was ever beside the other, so both decoded at 5 ms a token.
    assert!((times(&Answer::parse(&bytes)).1 - 99.0 * 5.0).abs() < 0.01);
    assert!((second.join().unwrap() - 5.0).abs() < 0.01);
}

#[test]
fn a_batch_takes_alpha_and_beta_for_each_input() {
    let service = ServiceTimes::Batch { alpha: Span::from_millis(30), beta: Span::from_millis(10) };
    let served = paced(service, Kind::Embedding, 1);
    let started = std::time::Instant::now();
    assert_eq!(served.post("/v1/embeddings", r#"{"input":["a","b","c"]}"#).status(), 200);
    assert!(started.elapsed().as_millis() >= 60, "{:?}", started.elapsed());
}
