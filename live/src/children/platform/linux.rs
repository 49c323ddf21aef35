//! Linux: everything stands in `/proc`.

use std::{fs, io, time::Duration};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::children::launch::MARK;

/// Ticks of `/proc/PID/stat` a second: `USER_HZ`, which is part of the kernel's interface.
const TICKS: u64 = 100;

/// This process dies with the thread that started it.
///
/// # Errors
/// If that cannot be had, or if `parent` is gone already.
pub fn die_with(parent: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let now = getppid().map(|pid| pid.as_raw_nonzero().get());
    if now == Some(parent) {
        return Ok(());
    }
    Err(io::Error::other(format!("process {parent}, which wanted a child, is gone")))
}

/// The processor time a process has used; `None`: it cannot be told.
pub fn processor_time(pid: u32) -> Option<Duration> {
    let stat = stat(pid)?;
    let ticks = |place: usize| stat.get(place)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(UTIME)? + ticks(STIME)?) * (1_000 / TICKS)))
}

/// Bytes of a process that are in memory; `None`: it cannot be told.
pub fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// When a process started, in the system's own measure; `None`: there is none of that number, or one that is dead.
pub fn start_of(pid: u32) -> Option<u64> {
    let stat = stat(pid)?;
    let dead = stat.get(STATE).is_some_and(|state| state == "Z" || state == "X");
    if dead { None } else { stat.get(START)?.parse().ok() }
}

/// Processes that carry one of these marks.
pub fn marked(marks: &[&str]) -> Vec<u32> {
    let marks: Vec<Vec<u8>> = marks.iter().map(|mark| format!("{MARK}={mark}").into_bytes()).collect();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| carries(*pid, &marks)).collect()
}

fn carries(pid: u32, marks: &[Vec<u8>]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|variable| marks.iter().any(|mark| mark == variable))
}

/// Places of fields after the name, which may hold anything, in `/proc/PID/stat`.
const STATE: usize = 0;
const UTIME: usize = 11;
const STIME: usize = 12;
const START: usize = 19;

fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_be_seen() {
        let own = std::process::id();
        assert!(resident(own).is_some_and(|bytes| bytes > 1 << 20));
        let before = processor_time(own).unwrap();
        let spin = std::time::Instant::now();
        while processor_time(own).unwrap() == before && spin.elapsed() < Duration::from_secs(20) {}
        assert!(processor_time(own).unwrap() > before);
        assert!(start_of(own).is_some_and(|start| start > 0));
        assert_eq!(start_of(u32::MAX), None);
    }
}
