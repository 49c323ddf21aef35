//! Memory in proportion to the jobs in flight, not to those that have been.

use windtunnel_config::{Arrivals, Noise, Request, Warmup};
use windtunnel_core::{Class, Span};
use windtunnel_sim::selftest::{Flow, System};

use crate::{
    measured, mm4, setup,
    timing::{Line, Sheet},
};

/// The most memory this process has had, in bytes; only where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

/// Starts the peak anew, where the system lets one.
fn forget_peak() {
    // not every system has it; then peaks only rise and the growth below is a lower bound
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Prints how much the peak grows with ten times as many jobs one after another, and with jobs that wait.
pub fn in_flight(sheet: &mut Sheet, requests: u64) {
    let few = growth(&mm4(), requests / 10);
    let many = growth(&mm4(), requests);
    let waiting = requests / 5;
    let queue = growth(&burst(waiting), waiting);
    if let (Some(few), Some(many), Some(queue)) = (few, many, queue) {
        sheet.line(Line::at_most(
            "memory for 10 times as many jobs, one after another",
            "MiB more",
            (many - few) / 1048576.0,
            2.0,
        ));
        sheet.line(Line::plain("memory of a job in flight", "bytes", queue / waiting as f64));
    }
}

/// By how much a run raises the peak.
fn growth(system: &System, requests: u64) -> Option<f64> {
    let setup = setup(&system.scenario("memory", requests, 1));
    forget_peak();
    let before = peak()?;
    measured(&setup);
    Some((peak()? - before).max(0.0))
}

/// So many requests at once.
fn burst(requests: u64) -> System {
    let request = Request { at: Span::ZERO, inputs: None, prompt_tokens: None, output_tokens: None };
    let arrivals = Arrivals::At(vec![request; requests as usize]);
    let flow = Flow { name: "burst".to_owned(), class: Class::Interactive, arrivals, deadline: None };
    let warmup = Warmup::Fixed(Span::ZERO);
    System { flows: vec![flow], warmup, ..System::single(Span::from_millis(1), Noise::None, 1.0) }
}
