//! What a server does wrong.

use std::{io::Read, time::Duration};

use serde_json::json;
use windtunnel_live::fake::{AnswerFault, Death, Faults, Frames, Settings, Watching};

use crate::client::{Answer, LONG, Served, chunks, request, served};

const CHAT: &str = r#"{"messages":[{"role":"user","content":"hello"}],"max_tokens":10,"stream":true}"#;

fn faulty(answers: AnswerFault) -> Served {
    served(Settings { faults: Faults { answers: Some(answers), ..Faults::default() }, ..Settings::default() })
}

#[test]
fn a_mute_server_is_healthy_and_never_answers() {
    let served = faulty(AnswerFault::Mute);
    let mut stream = served.send(&request("POST", "/v1/chat/completions", "", CHAT));
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(stream.read(&mut [0; 1]).is_err(), "nothing comes");
    assert_eq!(served.get("/health").status(), 200);
    assert_eq!(served.get("/slots").json()[0]["is_processing"], true);
    drop(stream);
    let started = std::time::Instant::now();
    while served.server.busy() > 0 {
        assert!(started.elapsed() < LONG, "a client that goes frees its slot");
        std::thread::yield_now();
    }
}

#[test]
fn connections_close_early_or_carry_garbage() {
    let closed = faulty(AnswerFault::Closed).post("/v1/chat/completions", CHAT);
    assert_eq!((closed.head.as_str(), closed.body.as_str()), ("", ""));
    let garbage = faulty(AnswerFault::Garbage).post("/v1/chat/completions", CHAT);
    assert!(garbage.head.starts_with("HTP/9.9"), "{garbage:?}");
}

#[test]
fn a_stream_breaks_or_its_server_dies_after_so_many_tokens() {
    let broken = faulty(AnswerFault::Broken { after: 4 });
    let answer = broken.post("/v1/chat/completions", CHAT);
    assert_eq!((answer.status(), answer.data().len()), (200, 5));
    let dying = faulty(AnswerFault::Dies { after: 2, death: Death::Signal(11) });
    let answer = dying.post("/v1/chat/completions", CHAT);
    assert_eq!((answer.status(), answer.data().len()), (200, 3));
    assert_eq!(dying.deaths.lock().unwrap().recv_timeout(LONG), Ok(Death::Signal(11)));
}

#[test]
fn so_many_requests_are_spared_and_so_many_fail() {
    let faults = Faults { answers: Some(AnswerFault::OutOfMemory), spared: 1, times: Some(2), ..Faults::default() };
    let served = served(Settings { faults, ..Settings::default() });
    let statuses: Vec<u16> = (0..4).map(|_| served.post("/v1/chat/completions", CHAT).status()).collect();
    assert_eq!(statuses, [200, 500, 500, 200]);
    assert_eq!(served.server.asked(), 4);
}

#[test]
fn watchers_can_be_left_without_an_answer() {
    let faults = Faults { watching: Watching::Blocked, ..Faults::default() };
    let served = served(Settings { faults, ..Settings::default() });
    let mut stream = served.send(&request("GET", "/slots", "", ""));
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(stream.read(&mut [0; 1]).is_err(), "nothing comes");
    assert_eq!(served.get("/props").status(), 200);
}

#[test]
fn frames_can_be_cut_inside_of_characters() {
    let faults = Faults { frames: Frames::Split, ..Faults::default() };
    let served = served(Settings { faults, ..Settings::default() });
    let request = request("POST", "/v1/chat/completions", "Connection: close\r\n", CHAT);
    let mut bytes = Vec::new();
    served.send(&request).read_to_end(&mut bytes).unwrap();
    let start = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let cut = chunks(&bytes[start..]).iter().filter(|chunk| std::str::from_utf8(chunk).is_err()).count();
    assert!(cut >= 4, "{cut} chunks are no UTF-8 by themselves");
    let whole = Answer::parse(&bytes);
    let words = whole.data().into_iter().filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok());
    let text: String =
        words.filter_map(|word| Some(word["choices"][0]["delta"]["content"].as_str()?.to_owned())).collect();
    assert_eq!(json!(text), json!("The wind in the tunnel blows für 5 € –"));
}
