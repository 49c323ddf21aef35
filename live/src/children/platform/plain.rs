//! Systems without `/proc`: `ps` tells what it can, and a child ends with its stdin, not by a signal.

use std::{io, process::Command, time::Duration};

/// There is no such signal: a child ends when its stdin does.
///
/// # Errors
/// Never.
pub fn die_with(_parent: i32) -> io::Result<()> {
    Ok(())
}

/// The processor time a process has used; `None`: it cannot be told.
pub fn processor_time(pid: u32) -> Option<Duration> {
    seconds(&ps("time=", pid)?).map(Duration::from_secs_f64)
}

/// Bytes of a process that are in memory; `None`: it cannot be told.
pub fn resident(pid: u32) -> Option<u64> {
    ps("rss=", pid)?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Nobody is found again after a crash here: children end with their stdin.
pub fn start_of(_pid: u32) -> Option<u64> {
    None
}

/// The environment of others cannot be read.
pub fn marked(_marks: &[&str]) -> Vec<u32> {
    Vec::new()
}

fn ps(what: &str, pid: u32) -> Option<String> {
    let told = Command::new("ps").args(["-o", what, "-p", &pid.to_string()]).output().ok()?;
    String::from_utf8(told.stdout).ok().filter(|text| !text.trim().is_empty())
}

/// `[[DD-]HH:]MM:SS[.ss]`.
fn seconds(text: &str) -> Option<f64> {
    let (days, rest) = text.trim().split_once('-').unwrap_or(("0", text.trim()));
    let clock = rest.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?));
    Some(days.parse::<f64>().ok()? * 86_400.0 + clock?)
}
