//! The fake server as a process: its flags, its ends, and what it does wrong.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use crate::client::{LONG, ask, request};

const FAKE: &str = env!("CARGO_BIN_EXE_fake-llama-server");

/// A process that is killed when the test is over.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    log: BufReader<ChildStderr>,
    address: SocketAddr,
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Running {
    let port = free_port();
    let mut command = Command::new(FAKE);
    command.args(["--host", "127.0.0.1", "--port", &port.to_string()]).args(arguments);
    command.envs(environment.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let log = BufReader::new(child.stderr.take().unwrap());
    Running { child, stdin, log, address: ([127, 0, 0, 1], port).into() }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(FAKE).args(arguments).output().unwrap()
}

impl Running {
    /// Waits for a line of the log that has `text` in it.
    fn says(&mut self, text: &str) -> String {
        // One reader for all of it: what a reader has taken in is lost with it.
        let lines = self.log.by_ref().lines();
        lines.map(Result::unwrap).find(|line| line.contains(text)).expect("the line comes before the log ends")
    }

    fn ends(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < LONG, "the process ends");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn log(&mut self) -> String {
        let mut text = String::new();
        self.log.read_to_string(&mut text).unwrap();
        text
    }

    fn status(&self, path: &str) -> u16 {
        ask(self.address, &request("GET", path, "", "")).status()
    }

    fn term(&self) {
        kill(self.child.id(), "-TERM");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn kill(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_flag_it_does_not_know_is_an_error_and_a_build_may_know_fewer() {
    let unknown = run(&["--frobnicate"]);
    assert_eq!(String::from_utf8(unknown.stderr).unwrap(), "error: invalid argument: --frobnicate\n");
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(run(&["--fake-hide", "--fit", "--fit", "off"]).status.code(), Some(1));
    let help = |arguments: &[&str]| String::from_utf8(run(arguments).stdout).unwrap();
    assert!(help(&["--help"]).contains("\n-fit, --fit [on|off]"));
    assert!(!help(&["--fake-hide", "--fit", "--help"]).contains("--fit"));
    assert_eq!(help(&["--list-devices"]), "Available devices:\n");
}

#[test]
fn it_serves_with_the_key_of_its_environment_and_ends_when_told_to() {
    let mut running = start(&["-c", "4096", "-np", "2", "--no-webui"], &[("LLAMA_API_KEY", "sesame")]);
    running.says("listening on");
    assert_eq!((running.status("/health"), running.status("/props")), (200, 401));
    running.term();
    assert_eq!(running.ends().code(), Some(0));
}

#[test]
fn it_ends_with_its_stdin_where_somebody_holds_that() {
    let mut held = start(&[], &[("LLAMA_SERVER_ROUTER_PORT", "0")]);
    held.says("listening on");
    drop(held.stdin.take());
    assert_eq!(held.ends().code(), Some(1));
    let mut alone = start(&[], &[]);
    drop(alone.stdin.take());
    alone.says("listening on");
    assert_eq!(alone.status("/health"), 200);
}

#[test]
fn a_slow_load_answers_that_it_loads_and_a_stalled_one_for_ever() {
    let mut slow = start(&["--fake-load", "300ms"], &[]);
    slow.says("loading model");
    assert_eq!(slow.status("/health"), 503);
    slow.says("listening on");
    assert_eq!(slow.status("/health"), 200);
    let mut stalled = start(&["--fake-load-ends", "stalls"], &[]);
    stalled.says("loading model");
    assert_eq!(stalled.status("/health"), 503);
}

#[test]
fn a_load_can_end_in_every_way() {
    assert_eq!(start(&["--fake-load-ends", "code=3"], &[]).ends().code(), Some(3));
    assert_eq!(start(&["--fake-load-ends", "signal=11"], &[]).ends().signal(), Some(11));
    let mut full = start(&["--fake-load-ends", "out-of-memory"], &[]);
    assert_eq!(full.ends().code(), Some(1));
    assert!(full.log().contains("cudaMalloc failed: out of memory"));
    let mut healthy = start(&["--fake-load-ends", "out-of-memory-healthy"], &[]);
    healthy.says("kIOGPUCommandBufferCallbackErrorOutOfMemory");
    healthy.says("listening on");
    assert_eq!(healthy.status("/health"), 200);
    let mut unbound = start(&["--fake-load-ends", "not-bound"], &[]);
    assert_eq!(unbound.ends().code(), Some(1));
    assert!(unbound.log().contains("couldn't bind HTTP server socket"));
}

#[test]
fn a_port_that_is_taken_is_a_failure_to_bind() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let refused = run(&["--port", &taken.local_addr().unwrap().port().to_string()]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("couldn't bind HTTP server socket"));
}

#[test]
fn a_fault_may_be_for_the_first_process_only() {
    let mark = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fake-once");
    drop(std::fs::remove_file(&mark));
    let arguments = ["--fake-load-ends", "code=3", "--fake-once", mark.to_str().unwrap()];
    assert_eq!(start(&arguments, &[]).ends().code(), Some(3));
    start(&arguments, &[]).says("listening on");
}

#[test]
fn one_that_ignores_term_has_to_be_killed() {
    let mut deaf = start(&["--fake-term", "ignored"], &[]);
    deaf.says("listening on");
    deaf.term();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(deaf.status("/health"), 200);
    kill(deaf.child.id(), "-KILL");
    assert_eq!(deaf.ends().signal(), Some(9));
}

#[test]
fn a_grandchild_in_a_session_of_its_own_outlives_it() {
    let mut parent = start(&["--fake-grandchild", "20s"], &[]);
    let line = parent.says("grandchild ");
    let grandchild: u32 = line.rsplit(' ').next().unwrap().parse().unwrap();
    kill(parent.child.id(), "-KILL");
    parent.ends();
    kill(grandchild, "-0");
    kill(grandchild, "-KILL");
}

#[test]
fn a_server_can_die_in_the_middle_of_a_stream() {
    let mut mortal = start(&["--fake-answers", "dies:2:signal=6"], &[]);
    mortal.says("listening on");
    let body = r#"{"prompt":"a","max_tokens":9,"stream":true}"#;
    let answer = ask(mortal.address, &request("POST", "/v1/completions", "", body));
    assert_eq!(answer.data().len(), 2);
    assert_eq!(mortal.ends().signal(), Some(6));
}
