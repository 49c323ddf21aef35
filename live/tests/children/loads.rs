//! Loads: how they go well, and every way in which they do not.

use std::{collections::BTreeSet, path::Path, time::Duration};

use windtunnel_core::{Attempt, Input, LoadFailure, ModelId};
use windtunnel_live::{Runtimes, children::Phase};

use crate::nursery::{FIRST, Nursery, lives, model, nursery, nursery_with, process, until};

fn failed(cause: LoadFailure) -> Input {
    Input::LoadFailed { attempt: Attempt(0), instance: FIRST, cause }
}

/// Loads, which fails so; why in words.
fn fails(nursery: &mut Nursery, cause: LoadFailure) -> String {
    nursery.load(0);
    assert_eq!(nursery.fact(), failed(cause));
    let started = nursery.heard.watched.lock().unwrap().iter().filter(|line| line.starts_with("started")).count();
    let ended = nursery.heard.watched.lock().unwrap().iter().filter(|line| line.starts_with("ended")).count();
    assert_eq!(started, ended, "whoever watches memory knows that every process is gone");
    nursery.handle.failure(ModelId(0)).expect("it is remembered").text
}

fn proc(pid: u32, what: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(Path::new("/proc").join(pid.to_string()).join(what)).unwrap()).into_owned()
}

#[test]
fn a_child_has_a_group_of_its_own_a_mark_and_a_key_that_no_other_user_sees() {
    let mut nursery = nursery("ready", &[]);
    let child = nursery.loaded();
    let (pid, address) = process(&child);
    assert_eq!(child.phase, Phase::Ready);
    let stat = proc(pid, "stat");
    let group = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap();
    assert_eq!(group, pid.to_string());
    let (line, environment) = (proc(pid, "cmdline").replace('\0', " "), proc(pid, "environ"));
    let key = environment.split('\0').find_map(|one| one.strip_prefix("LLAMA_API_KEY=")).unwrap();
    assert!(key.len() == 32 && !line.contains(key), "{line}");
    assert!(environment.contains("WINDTUNNEL_CHILD="));
    let port = address.port();
    let expected =
        format!("-m /models/small.gguf -a small -c 4096 -np 2 -fit off --no-webui --host 127.0.0.1 --port {port} ");
    assert_eq!(line.split_once(' ').unwrap().1, expected);
    assert!(nursery.heard.lines.lock().unwrap().iter().any(|line| line.contains("listening on")));
    nursery.close();
    assert!(!lives(pid));
}

#[test]
fn a_flag_that_a_build_does_not_know_is_left_out() {
    let mut old = model(&[]);
    old.environment = vec![("FAKE_HIDE".to_owned(), "--fit,--no-webui,--alias".to_owned())];
    let mut nursery = nursery_with("old-build", old, |_| {});
    let (pid, _) = process(&nursery.loaded());
    let line = proc(pid, "cmdline").replace('\0', " ");
    assert!(line.contains("-np 2 --host"), "{line}");
    assert!(!line.contains("-fit") && !line.contains("-a small"), "{line}");
    nursery.close();
}

#[test]
fn a_slow_load_is_waited_for_as_long_as_it_gets_on() {
    for says in ["progress", "memory"] {
        let faults = ["--fake-load", "3s", "--fake-load-says", says];
        let mut nursery = nursery_with(says, model(&faults), |limits| limits.stall = Duration::from_secs(2));
        nursery.loaded();
        nursery.close();
    }
}

#[test]
fn a_load_that_gets_nowhere_is_given_up() {
    let silent = ["--fake-load", "60s", "--fake-load-says", "nothing"];
    for (name, faults) in [("silent", &silent[..]), ("stalled", &["--fake-load-ends", "stalls"])] {
        let mut nursery = nursery_with(name, model(faults), |limits| limits.stall = Duration::from_millis(600));
        let text = fails(&mut nursery, LoadFailure::Stalled);
        assert!(text.starts_with("it said nothing and took no more memory for 0.6 s: "), "{text}");
        nursery.close();
    }
}

#[test]
fn no_load_takes_longer_than_the_longest_may() {
    let mut nursery =
        nursery_with("endless", model(&["--fake-load", "60s"]), |limits| limits.start = Duration::from_millis(600));
    let text = fails(&mut nursery, LoadFailure::Stalled);
    assert!(text.starts_with("it was not ready after 0.6 s"), "{text}");
    nursery.close();
}

#[test]
fn a_crash_at_the_start_says_how_and_what_was_said_last() {
    let mut coded = nursery("code", &["--fake-load-ends", "code=3"]);
    let text = fails(&mut coded, LoadFailure::Crashed);
    assert!(text.starts_with("it exited with code 3: ") && text.contains("loading model"), "{text}");
    assert!(!coded.handle.failure(ModelId(0)).unwrap().output.is_empty());
    coded.close();
    let mut signalled = nursery("signal", &["--fake-load-ends", "signal=6"]);
    let text = fails(&mut signalled, LoadFailure::Crashed);
    assert!(text.starts_with("it was ended by signal 6"), "{text}");
    signalled.close();
}

#[test]
fn a_load_that_runs_out_of_memory_says_so_even_if_its_server_is_healthy() {
    let mut dead = nursery("memory-dead", &["--fake-load-ends", "out-of-memory"]);
    let text = fails(&mut dead, LoadFailure::OutOfMemory);
    assert!(text.starts_with("memory ran out: ") && text.contains("error"), "{text}");
    dead.close();
    let mut healthy = nursery("memory-healthy", &["--fake-load-ends", "out-of-memory-healthy"]);
    let text = fails(&mut healthy, LoadFailure::OutOfMemory);
    assert!(text.starts_with("memory ran out in its warm-up"), "{text}");
    healthy.close();
}

#[test]
fn a_port_that_was_taken_is_followed_by_another() {
    let mut faulty = model(&["--fake-load-ends", "not-bound"]);
    let once = crate::nursery::folder("rebound").join("once");
    faulty.arguments.extend(["--fake-once".to_owned(), once.display().to_string()]);
    let starts = crate::nursery::folder("rebound").join("starts");
    faulty.arguments.extend(["--fake-starts".to_owned(), starts.display().to_string()]);
    let mut nursery = nursery_with("rebound", faulty, |_| {});
    nursery.loaded();
    let starts = nursery.starts();
    let ports: BTreeSet<&str> = starts.iter().filter_map(|line| line.rsplit(' ').next()).collect();
    assert_eq!((starts.len(), ports.len()), (2, 2), "{starts:?}");
    nursery.close();
}

#[test]
fn where_no_port_can_be_had_the_model_is_not_started() {
    let mut nursery = nursery("unbound", &["--fake-load-ends", "not-bound"]);
    assert_eq!(fails(&mut nursery, LoadFailure::NotStarted), "no port could be had in 5 tries");
    nursery.close();
}

#[test]
fn who_answers_without_the_key_is_not_ours() {
    let mut nursery = nursery("stranger", &["--fake-key", "ignored"]);
    assert_eq!(fails(&mut nursery, LoadFailure::NotStarted), "no port could be had in 5 tries");
    nursery.close();
}

#[test]
fn what_is_no_server_is_not_started() {
    let mut nothing = model(&[]);
    nothing.program = "/nowhere/llama-server".into();
    let mut nursery = nursery_with("nothing", nothing, |_| {});
    let text = fails(&mut nursery, LoadFailure::NotStarted);
    assert!(text.contains("No such file"), "{text}");
    nursery.close();
    let mut other = model(&[]);
    other.program = "true".into();
    let mut nursery = nursery_with("other", other, |_| {});
    let text = fails(&mut nursery, LoadFailure::NotStarted);
    assert!(text.ends_with("is no llama-server: its --help knows no --port"), "{text}");
    nursery.close();
}

#[test]
fn a_load_that_is_broken_off_or_stopped_leaves_no_process() {
    let mut nursery = nursery("aborted", &["--fake-load", "60s"]);
    nursery.load(0);
    until("it has a process", || nursery.view(FIRST).process.is_some());
    let (pid, _) = process(&nursery.view(FIRST));
    nursery.children.abort_load(Attempt(7), FIRST);
    std::thread::sleep(Duration::from_millis(300));
    assert!(lives(pid), "another attempt is meant");
    nursery.silent();
    nursery.children.abort_load(Attempt(0), FIRST);
    assert_eq!(nursery.fact(), failed(LoadFailure::Stopped));
    assert!(!lives(pid));
    nursery.load(0);
    nursery.stop(9);
    assert_eq!(nursery.fact(), failed(LoadFailure::Stopped));
    assert_eq!(nursery.fact(), Input::StopFinished { attempt: Attempt(9), instance: FIRST });
    nursery.close();
}
