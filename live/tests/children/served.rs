//! Children behind a gateway: what clients hear when a process dies or does not get on.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use windtunnel_config::ScenarioFile;
use windtunnel_core::{Bytes, DeviceId, Estimate, InstanceId, ModelId, Snapshot, Span, Started, View};
use windtunnel_live::{
    Clock, Desk, Dispatcher, Watcher,
    children::{Children, ChildrenHandle},
    dispatcher::Setting,
    gateway::{Catalogue, Gateway, Operations, Phase, Settings, Work},
    journal::Journal,
};

use crate::nursery::{self, FOOTPRINT, Heard, LONG, kill, lives, model, until};

/// What a process may be silent and idle for. One that works is not idle, however busy the machine is.
const SILENCE: Duration = Duration::from_secs(1);

const CONFIGURATION: &str = r#"
devices = [{ name = "card", memory = "8GiB" }]
models.small = { footprint = "1GiB", slots = 2, service = { kind = "slots", decode_alpha = "10ms" } }
workload = [{ name = "tests", model = "small", arrivals = { process = "at", times = ["1s"] } }]
"#;

/// Reads a card on which nothing is.
struct Card(Desk<Work>);

impl Watcher for Card {
    fn read(&self, device: DeviceId) {
        self.0.snapshot(Snapshot { device, total: None, used: Some(Bytes::ZERO), processes: Vec::new() });
    }

    fn started(&self, _instance: InstanceId, _device: DeviceId, _pid: u32) {}

    fn ended(&self, _instance: InstanceId) {}

    fn footprint(&self, _instance: InstanceId) -> Option<Bytes> {
        Some(FOOTPRINT)
    }
}

struct Around;

impl Operations for Around {
    fn metrics(&self, _view: &View) -> String {
        String::new()
    }

    fn events(&self, after: u64) -> (u64, Vec<String>) {
        (after, Vec::new())
    }

    fn reload(&self) -> Result<String, String> {
        Ok(String::new())
    }

    fn phase(&self) -> Phase {
        Phase::Serving
    }
}

/// A daemon with one model.
struct Served {
    runtime: tokio::runtime::Runtime,
    dispatcher: Dispatcher,
    desk: Desk<Work>,
    children: ChildrenHandle<Work>,
    address: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Served {
    /// Its processes have these faults.
    fn new(name: &str, faults: &[&str]) -> Served {
        let settings = nursery::settings(name, model(faults), |limits| limits.silence = SILENCE);
        drop(std::fs::remove_dir_all(&settings.state_folder));
        std::fs::create_dir_all(&settings.state_folder).unwrap();
        let started = started();
        let catalogue = Catalogue::of(&started.configuration, &[]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (send, batches) = mpsc::unbounded_channel();
        let setting = Setting {
            header: crate::header::header("children"),
            started,
            recorder: Journal::open(&settings.state_folder.join("run.jsonl"), u64::MAX).unwrap(),
            learned: Box::new(|_| {}),
            batches: send,
            measured: Box::new(|_| {}),
            broken: Box::new(|violation| panic!("{violation}")),
        };
        let mut children = None;
        let (dispatcher, desk) = Dispatcher::start(Clock::start(), setting, |desk| {
            let (card, heard) = (Arc::new(Card(desk.clone())), Arc::new(Heard::default()));
            let all = Children::start(desk, settings, card, heard, runtime.handle().clone()).unwrap();
            children = Some(all.handle());
            all
        })
        .unwrap();
        let shutdown = CancellationToken::new();
        let (own, token) = (desk.clone(), shutdown.clone());
        let (address, serving) = runtime.block_on(async {
            let gateway = Gateway::new(own, Settings::default(), catalogue, Arc::new(Around), batches);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            (address, tokio::spawn(async move { gateway.serve(listener, token).await }))
        });
        Served { runtime, dispatcher, desk, children: children.unwrap(), address, shutdown, serving }
    }

    /// Asks for so many tokens as a stream.
    fn ask(&self, tokens: u32) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        let body = format!(r#"{{"model":"small","stream":true,"max_tokens":{tokens},"messages":[]}}"#);
        let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        write!(client, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        client
    }

    /// Asks for a token, and says what comes.
    fn answer(&self) -> String {
        rest(self.ask(1))
    }

    /// The process that serves.
    fn pid(&self) -> u32 {
        let mut pid = None;
        until("a process serves", || {
            pid = self.children.list().first().and_then(|child| child.process).map(|(pid, _)| pid);
            pid.is_some()
        });
        pid.unwrap()
    }

    fn close(self) {
        self.shutdown.cancel();
        self.runtime.block_on(self.serving).unwrap().unwrap();
        assert!(self.runtime.block_on(self.children.shut_down(LONG)), "all children go: {:?}", self.children.list());
        self.desk.close();
        assert!(self.dispatcher.join(), "the scheduler's thread ends in good order");
    }
}

fn started() -> Started {
    let scenario = ScenarioFile::parse(CONFIGURATION, Path::new("config.toml")).unwrap().resolve(&[]);
    let configuration = scenario.unwrap_or_else(|wrong| panic!("{wrong}")).configuration;
    let estimate =
        Estimate { model: ModelId(0), device: DeviceId(0), footprint: FOOTPRINT, load_time: Span::from_secs(1) };
    Started { configuration, profiles: Vec::new(), estimates: vec![estimate], residents: Vec::new() }
}

/// Everything that comes.
fn rest(mut client: TcpStream) -> String {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until an answer has begun.
fn begun(client: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.contains("data: ") {
        let mut bytes = [0; 1024];
        let count = client.read(&mut bytes).unwrap();
        assert!(count > 0, "{text}");
        text += &String::from_utf8_lossy(&bytes[..count]);
    }
    text
}

/// A token every 20 ms.
const SLOWLY: [&str; 2] = ["--fake-service", "slots:1ms,0ms,20ms,0ms,16ms"];

#[test]
fn a_stream_whose_process_stands_still_ends_with_an_error_and_the_next_is_served_by_another() {
    let served = Served::new("served-still", &SLOWLY);
    let mut client = served.ask(10_000);
    begun(&mut client);
    let pid = served.pid();
    kill(pid, "-STOP");
    let rest = rest(client);
    assert!(rest.contains(r#""code":"runtime_wedged""#) && !rest.contains("[DONE]"), "{rest}");
    let answer = served.answer();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"), "{answer}");
    assert_ne!(served.pid(), pid);
    until("the process is gone", || !lives(pid));
    served.close();
}

#[test]
fn a_request_that_a_mute_process_has_is_served_by_the_next() {
    let served = Served::new("served-mute", &["--fake-answers", "mute", "--fake-spared", "1", "--fake-times", "1"]);
    assert!(served.answer().contains("[DONE]"));
    let pid = served.pid();
    let answer = served.answer();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"), "{answer}");
    assert_ne!(served.pid(), pid);
    served.close();
}

#[test]
fn one_that_every_process_is_mute_to_is_given_up() {
    let served = Served::new("served-all-mute", &["--fake-answers", "mute"]);
    let answer = served.answer();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains(r#""code":"runtime_wedged""#), "{answer}");
    served.close();
}

#[test]
fn a_process_that_is_silent_and_busy_is_left_alone() {
    let served = Served::new("served-busy", &["--fake-answers", "busy:4s", "--fake-spared", "1"]);
    assert!(served.answer().contains("[DONE]"));
    let pid = served.pid();
    let answer = served.answer();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"), "{answer}");
    assert_eq!(served.pid(), pid, "it was at work");
    served.close();
}

#[test]
fn a_client_that_takes_no_bytes_harms_nobody() {
    let served = Served::new("served-slow", &[]);
    assert!(served.answer().contains("[DONE]"));
    let pid = served.pid();
    // Far more than what lies in between can hold.
    let mut client = served.ask(400_000);
    begun(&mut client);
    std::thread::sleep(SILENCE * 3);
    assert_eq!(served.pid(), pid, "it waits for its client");
    drop(client);
    served.close();
}

#[test]
fn a_stream_whose_process_is_killed_is_told_of_a_crash() {
    let served = Served::new("served-killed", &SLOWLY);
    let mut client = served.ask(10_000);
    begun(&mut client);
    let pid = served.pid();
    kill(pid, "-KILL");
    let rest = rest(client);
    assert!(rest.contains(r#""code":"runtime_crashed""#) && !rest.contains("[DONE]"), "{rest}");
    let answer = served.answer();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[DONE]"), "{answer}");
    assert_ne!(served.pid(), pid);
    served.close();
}
