//! `windtunnel serve` as a process: it listens, answers, takes up new configurations, ends in good order, and its journal
//! replays.

mod serving;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use serving::Serving;

/// Nothing here takes longer, however busy the machine is.
const LONG: Duration = Duration::from_secs(60);

const ONE_MODEL: &str = r#"
[[devices]]
name = "gpu"
backend = "simulated"
memory = "8GiB"
load = { fixed = "10ms" }

[models.chat]
footprint = "4GiB"
slots = 2
service = { kind = "slots", decode_alpha = "1ms" }
"#;

const ANOTHER_MODEL: &str = r#"
[models.more]
footprint = "2GiB"
service = { kind = "slots", decode_alpha = "1ms" }
"#;

/// A daemon that is ended when it is dropped.
struct Daemon {
    serving: Serving,
    address: String,
    said: Receiver<String>,
}

fn folder(name: &str) -> PathBuf {
    serving::folder("serve", name)
}

fn windtunnel() -> Command {
    Command::new(env!("CARGO_BIN_EXE_windtunnel"))
}

impl Daemon {
    fn start(folder: &Path, arguments: &[&str]) -> Daemon {
        let mut command = windtunnel();
        command.arg("serve").args(arguments).args(["--listen", "127.0.0.1:0", "--state-dir"]).arg(folder.join("state"));
        command.arg("--journal").arg(folder.join("run.jsonl"));
        Daemon::of(Serving::start(command.stderr(Stdio::piped())))
    }

    fn of(mut serving: Serving) -> Daemon {
        let address = serving.url.trim_start_matches("http://").to_owned();
        let (say, said) = mpsc::channel();
        let err = BufReader::new(serving.child.stderr.take().expect("stderr is piped"));
        thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Daemon { serving, address, said }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a time-out can be set");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    fn chat(&self, model: &str, tokens: u32) -> String {
        let messages = r#"[{"role":"user","content":"how is the weather"}]"#;
        let body = format!(r#"{{"model":"{model}","max_tokens":{tokens},"messages":{messages}}}"#);
        self.ask("POST", "/v1/chat/completions", &body)
    }

    fn signal(&self, signal: &str) {
        self.serving.signal(signal);
    }

    /// Waits until it says a line with this in it.
    fn hears(&self, part: &str) -> String {
        let until = Instant::now() + LONG;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.said.recv_timeout(left).unwrap_or_else(|_| panic!("it never said {part:?}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    fn ends(mut self) -> Option<i32> {
        let until = Instant::now() + LONG;
        loop {
            match self.serving.child.try_wait().expect("it can be waited for") {
                Some(status) => return status.code(),
                None if Instant::now() > until => panic!("it does not end"),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

fn run(arguments: &[&str]) -> Output {
    windtunnel().args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

#[test]
fn a_simulated_daemon_answers_and_its_journal_replays() {
    let folder = folder("simulated");
    let daemon = Daemon::start(&folder, &["--simulated"]);
    let line = daemon.hears("serves");
    assert!(line.contains("assistant, coder, large, small, vectors"), "{line}");
    assert!(daemon.ask("GET", "/v1/models", "").contains(r#""id":"small""#));
    let answer = daemon.chat("small", 5);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""completion_tokens":5"#), "{answer}");
    assert!(answer.contains("x-windtunnel-model: small"), "{answer}");
    daemon.hears("small is loaded on gpu0 after");
    let refused = daemon.chat("smal", 5);
    assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("did you mean `small`?"), "{refused}");
    let events = daemon.ask("GET", "/admin/events", "");
    assert!(events.contains("loaded    small on gpu0"), "it is there at the first question: {events}");
    let metrics = daemon.ask("GET", "/metrics", "");
    assert!(metrics.contains(r#"windtunnel_requests_total{class="interactive",outcome="completed"} 1"#), "{metrics}");
    assert!(metrics.contains(r#"windtunnel_instances{device="gpu0",model="small"} 1"#), "{metrics}");
    daemon.signal("-TERM");
    assert_eq!(daemon.ends(), Some(0));

    let journal = folder.join("run.jsonl").display().to_string();
    let replay = run(&["replay", &journal]);
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stdout));
    let report = run(&["report", &journal, "--format", "json"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains(r#""source": "live""#) || report.contains(r#""source":"live""#), "{report}");
}

#[test]
fn a_new_configuration_is_taken_up_and_one_with_a_mistake_changes_nothing() {
    let folder = folder("reload");
    let file = folder.join("windtunnel.toml");
    fs::write(&file, ONE_MODEL).expect("the file can be written");
    let daemon = Daemon::start(&folder, &["--config", &file.display().to_string()]);
    assert!(daemon.chat("chat", 3).starts_with("HTTP/1.1 200"));
    assert!(daemon.chat("more", 3).starts_with("HTTP/1.1 404"));

    fs::write(&file, format!("{ONE_MODEL}{ANOTHER_MODEL}")).expect("the file can be written");
    daemon.signal("-HUP");
    daemon.hears("new: more");
    assert!(daemon.chat("more", 3).starts_with("HTTP/1.1 200"));
    let status = daemon.ask("GET", "/admin/status", "");
    assert!(status.contains(r#""instance":0,"model":"chat""#), "the process of before still serves: {status}");

    fs::write(&file, format!("{ONE_MODEL}slotz = 1\n{ANOTHER_MODEL}")).expect("the file can be written");
    daemon.signal("-HUP");
    let line = daemon.hears("stays as it was");
    assert!(line.contains("windtunnel.toml:"), "{line}");
    assert!(daemon.chat("more", 3).starts_with("HTTP/1.1 200"));

    fs::write(&file, format!("{}{ANOTHER_MODEL}", ONE_MODEL.replace("slots = 2", "slots = 3")))
        .expect("it can be written");
    daemon.signal("-HUP");
    daemon.hears("chat leaves gpu0: the configuration starts it in another way now");

    // A changed file is noticed without a signal.
    fs::write(&file, ONE_MODEL).expect("the file can be written");
    daemon.hears("removed: more");
    assert!(daemon.chat("more", 3).starts_with("HTTP/1.1 404"));
    daemon.signal("-INT");
    assert_eq!(daemon.ends(), Some(0));
    let replay = run(&["replay", &folder.join("run.jsonl").display().to_string()]);
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stdout));
}

#[test]
fn what_runs_may_end_and_a_second_signal_ends_at_once() {
    let folder = folder("signals");
    let file = folder.join("windtunnel.toml");
    fs::write(&file, ONE_MODEL.replace("1ms", "20ms")).expect("the file can be written");
    let daemon = Daemon::start(&folder, &["--config", &file.display().to_string()]);
    assert!(daemon.chat("chat", 1).starts_with("HTTP/1.1 200"));
    let address = daemon.address.clone();
    let long = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let body = r#"{"model":"chat","max_tokens":20000,"stream":true,"messages":[{"role":"user","content":"x"}]}"#;
        let length = body.len();
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
        let mut some = [0; 16];
        stream.read_exact(&mut some).expect("it begins to answer");
        stream
    });
    let stream = long.join().expect("it begins to answer");
    daemon.signal("-TERM");
    let until = Instant::now() + LONG;
    while !daemon.ask_quietly("/readyz").is_none_or(|answer| answer.starts_with("HTTP/1.1 503")) {
        assert!(Instant::now() < until, "it goes on taking work");
        thread::sleep(Duration::from_millis(20));
    }
    daemon.signal("-TERM");
    assert!(daemon.ends().is_some());
    drop(stream);
}

impl Daemon {
    /// The answer; `None` where nobody listens any more.
    fn ask_quietly(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

#[test]
fn a_daemon_that_is_to_end_with_stdin_does() {
    let folder = folder("stdin");
    let mut command = windtunnel();
    command.args(["serve", "--simulated", "--while-stdin", "--listen", "127.0.0.1:0", "--state-dir"]);
    command.arg(folder.join("state")).stderr(Stdio::piped());
    let mut serving = Serving::start_with(&mut command, Stdio::piped());
    let stdin = serving.child.stdin.take().expect("stdin is piped");
    let mut daemon = Daemon::of(serving);
    assert!(daemon.ask("GET", "/readyz", "").starts_with("HTTP/1.1 200"));
    assert!(matches!(daemon.serving.child.try_wait(), Ok(None)), "it serves as long as stdin is open");
    drop(stdin);
    assert_eq!(daemon.ends(), Some(0));
}

#[test]
fn what_cannot_be_served_is_said_before_anything_runs() {
    let folder = folder("refused");
    let file = folder.join("windtunnel.toml");
    fs::write(&file, ONE_MODEL).expect("the file can be written");
    let file = file.display().to_string();
    let public = run(&["serve", "--config", &file, "--listen", "0.0.0.0:0"]);
    let said = String::from_utf8_lossy(&public.stderr).into_owned();
    assert_eq!(public.status.code(), Some(2), "{said}");
    assert!(said.contains("keys") && public.stdout.is_empty(), "{said}");
    let missing = run(&["serve", "--config", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nowhere.toml"));
    let empty = folder.join("empty");
    fs::create_dir_all(&empty).expect("the folder can be made");
    let none = windtunnel().arg("serve").current_dir(&empty).env("XDG_CONFIG_HOME", &empty).output().expect("it runs");
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!(none.status.code(), Some(2), "{said}");
    assert!(said.contains("--demo") && said.contains("--simulated"), "{said}");
}
