//! The arithmetic, and what becomes of a model when its daemon does not do as it should.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
};

use super::*;
use crate::command::status::operator;

#[test]
fn sizes_double_up_to_the_number_of_slots() {
    assert_eq!(doubling(1), [1]);
    assert_eq!(doubling(6), [1, 2, 4, 6]);
    assert_eq!(doubling(8), [1, 2, 4, 8]);
}

#[test]
fn the_first_token_is_not_counted() {
    let answered = Answered { prompt: None, predicted: Some((5.0, 40.0)) };
    assert_eq!(answered.token().ok(), Some(10.0));
    assert!(Answered { prompt: None, predicted: Some((1.0, 0.0)) }.token().is_err());
}

#[test]
fn a_model_that_cannot_be_measured_is_unloaded() {
    let daemon = Daemon::start(Unloads::Obey);
    let wrong = daemon.bench(|bench| bench.model("m", 0)).expect_err("it answers nothing");
    assert!(wrong.to_string().contains("out of order"), "{wrong}");
    assert_eq!(daemon.orders(), ["load", "unload"]);
}

#[test]
fn a_process_that_does_not_end_is_not_waited_for_for_ever() {
    let daemon = Daemon::start(Unloads::Ignore);
    let client = daemon.client().expect("there is a client");
    client.order("m", ModelOrder::Load).expect("it takes orders");
    let (say, said) = mpsc::channel();
    thread::spawn(move || say.send(daemon.bench(|bench| bench.unload(&client, "m"))));
    let ended = said.recv_timeout(Duration::from_secs(60)).expect("it comes to an end");
    let wrong = ended.expect_err("it stays");
    assert!(wrong.to_string().contains("m is still in memory"), "{wrong}");
}

/// What a daemon does when it is to unload its model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unloads {
    Obey,
    Ignore,
}

/// A daemon with one model, which takes orders and answers no question. Its thread ends with the tests.
struct Daemon {
    url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    loaded: bool,
    orders: Vec<String>,
}

impl Daemon {
    fn start(unloads: Unloads) -> Daemon {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, unloads, &shared)));
        Daemon { url, state }
    }

    fn client(&self) -> Result<Operator, Failure> {
        operator(&self.url, None, Duration::from_secs(60))
    }

    fn bench<T>(&self, act: impl FnOnce(&Bench<'_>) -> T) -> T {
        let (control, millionths) = (Control::new(), AtomicU64::new(0));
        act(&Bench {
            client: &|| self.client(),
            plan: Plan { prompt_tokens: 16, output_tokens: 4, rounds: 1 },
            control: &control,
            pulse: Pulse { millionths: &millionths, models: 1 },
            start_limit: Duration::from_secs(60),
            stop_limit: Duration::from_millis(50),
        })
    }

    fn orders(&self) -> Vec<String> {
        self.state.lock().expect("nobody broke down").orders.clone()
    }
}

/// Answers one request, after which the connection ends.
fn answer(stream: TcpStream, unloads: Unloads, state: &Mutex<State>) {
    let mut request = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    request.read_line(&mut first).expect("a request");
    for line in request.by_ref().lines() {
        let line = line.expect("a header").to_ascii_lowercase();
        if let Some(count) = line.strip_prefix("content-length:") {
            length = count.trim().parse().expect("a number");
        }
        if line.is_empty() {
            break;
        }
    }
    request.read_exact(&mut vec![0; length]).expect("a body");
    let mut state = state.lock().expect("nobody broke down");
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path.rsplit('/').next() {
        Some("status") => ("200 OK", picture(state.loaded)),
        Some(order @ ("load" | "unload")) => {
            state.orders.push(order.to_owned());
            state.loaded = order == "load" || unloads == Unloads::Ignore;
            ("202 Accepted", json!({}))
        }
        _ => ("500 Internal Server Error", json!({ "error": { "message": "out of order" } })),
    };
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    request.get_mut().write_all(format!("{head}{body}").as_bytes()).expect("it is read");
}

fn picture(loaded: bool) -> Value {
    let resident = json!({
        "instance": 0, "model": "m", "stage": "ready", "tier": "cold", "booked": 1, "eviction_cost": 0, "running": 0, "free": 1,
    });
    let memory = json!({
        "budget": null, "booked": 1, "coming": 0, "foreign": 0, "owed": 0, "read_ms_ago": null, "monitor": "alive",
        "pressure": "normal",
    });
    let residents = if loaded { vec![resident] } else { Vec::new() };
    let device =
        json!({ "device": "gpu", "mode": "idle", "batch_turn": null, "memory": memory, "residents": residents });
    json!({ "phase": "serving", "now_ms": 1, "devices": [device], "queues": [] })
}
