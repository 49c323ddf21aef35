//! What becomes of children whose daemon is killed.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use windtunnel_live::children::{Alert, Fate};

use crate::nursery::{FIRST, folder, kill, lives, nursery, process, until};

/// Set in a process that is to be the daemon of the test below.
const DAEMON: &str = "CHILDREN_TEST_IS_DAEMON";

#[test]
fn a_daemon_that_is_killed_takes_its_children_along() {
    if std::env::var_os(DAEMON).is_some() {
        return be_a_daemon();
    }
    let name = "daemon::a_daemon_that_is_killed_takes_its_children_along";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(DAEMON, "yes").stdout(Stdio::piped());
    let mut daemon = command.spawn().unwrap();
    let lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    let child = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("child ")?.parse().ok());
    let child: u32 = child.expect("the daemon says who its child is");
    let _guard = Guard(child);
    assert!(lives(child));
    kill(daemon.id(), "-KILL");
    drop(daemon.wait());
    until("the child goes with it", || !lives(child));
    // Its list is still there, and nobody on it is.
    let list = std::fs::read_to_string(folder("daemon").join("children.json")).unwrap();
    assert!(list.contains(&format!("\"pid\":{child}")), "{list}");
}

/// Ends a process that outlived its test.
struct Guard(u32);

impl Drop for Guard {
    fn drop(&mut self) {
        if lives(self.0) {
            kill(self.0, "-KILL");
        }
    }
}

/// Has a child and waits to be killed.
fn be_a_daemon() {
    let mut nursery = nursery("daemon", &["--fake-term", "ignored"]);
    println!("\nchild {}", process(&nursery.loaded()).0);
    loop {
        std::thread::park();
    }
}

#[test]
fn the_next_daemon_ends_who_carries_a_mark_of_the_last_one_and_nobody_else() {
    let folder = folder("orphans");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    let sleep = |mark: &str| {
        let mut command = Command::new("sleep");
        command.arg("300").env("WINDTUNNEL_CHILD", mark).spawn().unwrap()
    };
    let (mut orphan, mut stranger, mut later) = (sleep("ours"), sleep("others"), sleep("ours too"));
    let child = |pid: u32, start: u64, mark: &str| {
        format!(r#"{{"pid":{pid},"start":{start},"mark":"{mark}","model":"small"}}"#)
    };
    let list = [
        child(orphan.id(), start_of(orphan.id()), "ours"),
        child(stranger.id(), start_of(stranger.id()), "ours once"),
        child(later.id(), start_of(later.id()) + 1, "ours too"),
    ];
    // A daemon of that number has lived, at another time.
    let daemon = format!(r#"{{"pid":{},"start":1}}"#, std::process::id());
    let text = format!(r#"{{"daemon":{daemon},"children":[{}]}}"#, list.join(","));
    let path = folder.join("children.json");
    std::fs::write(&path, text).unwrap();
    let alerts = crate::nursery::reopened("orphans");
    drop(orphan.wait());
    let pid = orphan.id();
    let ended = |alert: &Alert| matches!(alert, Alert::Orphan(one) if one.pid == pid && one.fate == Fate::Ended);
    assert!(alerts.len() == 1 && ended(&alerts[0]), "{alerts:?}");
    assert!(lives(stranger.id()), "its mark is another");
    assert!(lives(later.id()), "its number came again");
    for process in [&mut stranger, &mut later] {
        process.kill().unwrap();
        drop(process.wait());
    }
}

#[test]
fn nobody_of_a_daemon_that_lives_is_touched() {
    let mut nursery = nursery("alive", &[]);
    let (pid, _) = process(&nursery.loaded());
    let alerts = crate::nursery::reopened("alive");
    assert_eq!(alerts, []);
    assert!(lives(pid));
    assert_eq!(process(&nursery.view(FIRST)).0, pid);
    nursery.close();
}

fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap()
}
