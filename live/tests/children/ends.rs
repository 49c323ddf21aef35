//! Ends: those that were asked for, those that were not, and those that are hard to come by.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use windtunnel_core::{Attempt, ExitCause, Input, InstanceId, ModelId};
use windtunnel_live::{
    Runtimes,
    children::{Alert, ChildView, Phase},
};

use crate::nursery::{FIRST, LONG, Nursery, kill, lives, model, nursery, nursery_with, process, until};

fn stopped(attempt: u64) -> Input {
    Input::StopFinished { attempt: Attempt(attempt), instance: FIRST }
}

fn grandchild(nursery: &Nursery) -> u32 {
    let mut found = None;
    until("it says who its grandchild is", || {
        let lines = nursery.heard.lines.lock().unwrap();
        found = lines.iter().find_map(|line| line.split_once("grandchild ")?.1.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

/// Asks a child for a completion; what it answers.
fn ask(child: &ChildView) -> String {
    let (pid, address) = process(child);
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let key = environment.split('\0').find_map(|one| one.strip_prefix("LLAMA_API_KEY=")).unwrap();
    let body = r#"{"prompt":"a","max_tokens":3}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n");
    let rest = format!("Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all((head + &rest).as_bytes()).unwrap();
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_child_that_is_stopped_has_not_crashed() {
    // Nobody is killed here: it goes when it is asked to.
    let mut nursery = nursery_with("stopped", model(&[]), |limits| limits.grace = LONG * 2);
    let child = nursery.loaded();
    assert!(ask(&child).starts_with("HTTP/1.1 200"));
    let progress = nursery.handle.progress(FIRST).unwrap();
    nursery.stop(5);
    assert_eq!(nursery.fact(), stopped(5));
    assert!(!lives(process(&child).0));
    let heard = nursery.runtime.block_on(async { tokio::time::timeout(LONG, progress.ended()).await });
    assert_eq!(heard, Ok(None), "whoever waits for its end hears of it");
    assert_eq!(*nursery.heard.watched.lock().unwrap(), ["started instance 0", "ended instance 0"]);
    assert_eq!(nursery.handle.failure(ModelId(0)), None);
    nursery.silent();
    nursery.close();
}

#[test]
fn one_that_is_gone_is_stopped_already() {
    let mut nursery = nursery("gone", &[]);
    nursery.stop(5);
    assert_eq!(nursery.fact(), stopped(5));
    nursery.close();
}

#[test]
fn one_that_ignores_term_is_killed_after_its_grace() {
    let mut nursery = nursery_with("deaf", model(&["--fake-term", "ignored"]), |limits| {
        limits.grace = Duration::from_millis(300);
    });
    let (pid, _) = process(&nursery.loaded());
    nursery.stop(5);
    assert_eq!(nursery.fact(), stopped(5));
    assert!(!lives(pid));
    nursery.close();
}

#[test]
fn a_grandchild_in_a_session_of_its_own_goes_too() {
    for end in ["stop", "crash"] {
        let mut nursery = nursery(&format!("grandchild-{end}"), &["--fake-grandchild", "300s"]);
        let (pid, _) = process(&nursery.loaded());
        let grandchild = grandchild(&nursery);
        assert!(lives(grandchild));
        match end {
            "stop" => nursery.stop(5),
            _ => kill(pid, "-KILL"),
        }
        nursery.fact();
        until("it goes too", || !lives(grandchild));
        nursery.close();
    }
}

#[test]
fn a_crash_is_said_with_its_signal_or_code_and_remembered_until_the_next_load() {
    let mut killed = nursery("killed", &[]);
    let (pid, _) = process(&killed.loaded());
    kill(pid, "-KILL");
    assert_eq!(killed.fact(), Input::Exited { instance: FIRST, cause: ExitCause::Signal(9) });
    assert!(killed.handle.failure(ModelId(0)).unwrap().text.starts_with("it was ended by signal 9"));
    killed.loaded();
    assert_eq!(killed.handle.failure(ModelId(0)), None);
    killed.close();
    let mut dying = nursery("dying", &["--fake-answers", "dies:1:code=4"]);
    let child = dying.loaded();
    ask(&child);
    assert_eq!(dying.fact(), Input::Exited { instance: FIRST, cause: ExitCause::Code(4) });
    dying.close();
}

#[test]
fn a_server_that_says_that_memory_ran_out_is_heard() {
    let mut nursery = nursery("memory", &["--fake-answers", "out-of-memory", "--fake-times", "1"]);
    let child = nursery.loaded();
    assert!(ask(&child).starts_with("HTTP/1.1 500"));
    assert_eq!(nursery.fact(), Input::OutOfMemory { device: child.device, instance: FIRST });
    assert!(ask(&child).starts_with("HTTP/1.1 200"), "it goes on serving");
    kill(process(&child).0, "-KILL");
    let cause = ExitCause::OutOfMemory;
    assert_eq!(nursery.fact(), Input::Exited { instance: FIRST, cause }, "memory that ran out just before is why");
    nursery.close();
}

#[test]
fn one_that_is_still_there_when_nobody_waits_any_more_is_said_and_its_stop_is_not() {
    // Who has much memory to give back is long about his end.
    let large = model(&["--fake-term", "ignored", "--fake-balloon", "256MiB"]);
    let mut nursery = nursery_with("unkillable", large, |limits| {
        (limits.grace, limits.kill) = (Duration::ZERO, Duration::ZERO);
    });
    // Nobody waits at all here, so that a process that dies at once would have to be quick.
    for attempt in 0..20 {
        nursery.loaded();
        let (pid, _) = process(&nursery.view(FIRST));
        nursery.stop(100 + attempt);
        assert_eq!(nursery.fact(), stopped(100 + attempt));
        let alerts = nursery.heard.alerts.lock().unwrap().clone();
        let (instance, model) = (FIRST, ModelId(0));
        match &alerts[..] {
            [] => {}
            alerts => {
                let gone = Alert::GoneAtLast { instance, model, pid };
                assert_eq!(alerts, [Alert::Unkillable { instance, model, pid }, gone]);
                return nursery.close();
            }
        }
    }
    panic!("twenty processes died faster than anybody could look");
}

#[test]
fn at_the_end_of_the_daemon_all_of_them_go() {
    let mut nursery = nursery("all", &[]);
    nursery.load(0);
    nursery.load(1);
    nursery.fact();
    nursery.fact();
    let pids: Vec<u32> = nursery.handle.list().iter().map(|child| process(child).0).collect();
    assert_eq!(pids.len(), 2);
    nursery.children.read(windtunnel_core::DeviceId(0));
    assert!(nursery.heard.watched.lock().unwrap().contains(&"read device 0".to_owned()));
    assert_eq!(nursery.view(InstanceId(1)).model, ModelId(0));
    nursery.close();
    assert!(pids.iter().all(|pid| !lives(*pid)));
}

#[test]
fn in_a_hurry_nobody_is_given_time_not_even_one_that_is_being_stopped() {
    let mut nursery = nursery_with("hurry", model(&["--fake-term", "ignored"]), |limits| limits.grace = LONG * 2);
    let (pid, _) = process(&nursery.loaded());
    nursery.stop(5);
    until("it is being stopped", || nursery.handle.list().iter().all(|child| child.phase == Phase::Stopping));
    assert!(lives(pid), "it does not listen");
    assert!(nursery.runtime.block_on(nursery.handle.kill(LONG)), "{:?}", nursery.handle.list());
    assert!(!lives(pid));
    assert_eq!(nursery.fact(), stopped(5));
    nursery.close();
}
