//! Progress of a long job on stderr: what share is done, how fast, and for how long still. Silent when nobody watches.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use windtunnel_live::load::Gauge;
use windtunnel_sim::Control;

use crate::reading::Reading;

/// What a bar shows.
#[derive(Clone)]
pub enum Work {
    /// Simulated runs.
    Runs(Arc<Control>),
    /// A search, with the millionths of it that are over.
    Search(Arc<Control>, Arc<AtomicU64>),
    /// Measurements, with the millionths of them that are done.
    Measuring(Arc<AtomicU64>),
    /// Files being read.
    Files(Arc<Reading>),
    /// Requests to an endpoint.
    Load(Arc<Gauge>),
}

/// A progress bar that follows some [`Work`] for as long as it lives.
pub struct Progress {
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

impl Progress {
    pub fn start(what: &str, work: Work, quiet: bool) -> Progress {
        let over = Arc::new(AtomicBool::new(false));
        if quiet || !std::io::stderr().is_terminal() {
            return Progress { over, watcher: None };
        }
        let bar = bar(what, work.clone());
        let seen = Arc::clone(&over);
        let watcher = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let (done, all) = work.done_of();
                bar.set_length(all.max(1));
                bar.set_position(done);
                thread::park_timeout(TICK);
            }
            bar.finish_and_clear();
        });
        Progress { over, watcher: Some(watcher) }
    }
}

impl Work {
    fn done_of(&self) -> (u64, u64) {
        match self {
            Work::Runs(control) => (control.millionths_done(), control.runs_planned() * 1_000_000),
            Work::Search(_, millionths) | Work::Measuring(millionths) => {
                (millionths.load(Ordering::Relaxed), 1_000_000)
            }
            Work::Files(reading) => (reading.bytes(), reading.total()),
            Work::Load(gauge) => gauge.millionths(),
        }
    }

    fn steps(&self) -> u64 {
        match self {
            Work::Runs(control) | Work::Search(control, _) => control.steps(),
            Work::Measuring(millionths) => millionths.load(Ordering::Relaxed) / 10_000,
            Work::Files(reading) => reading.records(),
            Work::Load(gauge) => gauge.sent(),
        }
    }

    /// What else is worth showing.
    fn beside(&self) -> String {
        match self {
            Work::Runs(_) | Work::Search(..) | Work::Measuring(_) | Work::Files(_) => String::new(),
            Work::Load(gauge) => format!("  {} under way", HumanCount(gauge.sent().saturating_sub(gauge.ended()))),
        }
    }

    fn unit(&self) -> &'static str {
        match self {
            Work::Runs(_) | Work::Search(..) => "steps",
            Work::Measuring(_) => "percent",
            Work::Files(_) => "records",
            Work::Load(_) => "requests",
        }
    }
}

fn bar(what: &str, work: Work) -> ProgressBar {
    let template =
        format!("{{prefix}} {{wide_bar}} {{percent:>3}}%  {{rate}} {}/s{{beside}}  {{eta}} left", work.unit());
    let shown = work.clone();
    let beside = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        // A bar that cannot be drawn is no reason to stop.
        let _ = write!(out, "{}", shown.beside());
    };
    let rate = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let seconds = state.elapsed().as_secs_f64().max(1e-3);
        // A bar that cannot be drawn is no reason to stop.
        let _ = write!(out, "{}", HumanCount((work.steps() as f64 / seconds) as u64));
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(1).with_prefix(what.to_owned()).with_style(style.with_key("rate", rate).with_key("beside", beside))
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            watcher.thread().unpark();
            // The watcher only draws; whether it ended well changes nothing.
            let _ = watcher.join();
        }
    }
}
