//! Memory in proportion to the jobs in flight, not to those that have been.
//!
//! Each run is measured in a process of its own, since memory once freed is not given back to the system.

use std::process::Command;

use windtunnel_config::{Arrivals, Noise, Request, Warmup};
use windtunnel_core::{Class, Span};
use windtunnel_sim::selftest::{Flow, System};

use crate::{
    measured, mm4, setup,
    timing::{Line, Sheet},
};

/// The argument that makes this program one of those processes: a subject and a number of requests follow.
pub const CHILD: &str = "--memory-of";

/// Requests one after another, few in flight at a time.
const STREAM: &str = "stream";
/// Requests all at once.
const BURST: &str = "burst";

/// Prints how much the peak grows with ten times as many jobs one after another, and with jobs that wait.
pub fn in_flight(sheet: &mut Sheet, requests: u64) {
    let peaks = [(STREAM, requests / 10), (STREAM, requests), (BURST, 1), (BURST, requests / 5)];
    let [Some(few), Some(many), Some(none), Some(waiting)] =
        peaks.map(|(subject, requests)| peak_of(subject, requests))
    else {
        return;
    };
    let more = (many - few) / 1_048_576.0;
    sheet.line(Line::at_most("memory for 10 times as many jobs, one after another", "MiB more", more, 2.0));
    sheet.line(Line::plain("memory of a job in flight", "bytes", (waiting - none) / (requests / 5) as f64));
}

/// Runs the subject named in the arguments and prints the most memory this process has had, in bytes.
pub fn child() {
    let arguments: Vec<String> = std::env::args().skip_while(|argument| argument != CHILD).skip(1).collect();
    if let [subject, requests, ..] = arguments.as_slice() {
        let requests = requests.parse().unwrap_or(1);
        let system = if subject == BURST { burst(requests) } else { mm4() };
        measured(&setup(&system.scenario("memory", requests, 1)));
    }
    if let Some(peak) = peak() {
        println!("{peak}");
    }
}

/// The peak of a process that runs the subject; only where the system tells.
fn peak_of(subject: &str, requests: u64) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).args([CHILD, subject, &requests.to_string()]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

/// So many requests at once.
fn burst(requests: u64) -> System {
    let request = Request { at: Span::ZERO, inputs: None, prompt_tokens: None, output_tokens: None };
    let arrivals = Arrivals::At(vec![request; requests as usize]);
    let flow = Flow { name: "burst".to_owned(), class: Class::Interactive, arrivals, deadline: None };
    let warmup = Warmup::Fixed(Span::ZERO);
    System { flows: vec![flow], warmup, ..System::single(Span::from_millis(1), Noise::None, 1.0) }
}
