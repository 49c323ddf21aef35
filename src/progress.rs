//! Progress of a long job on stderr: what share is done, how fast, and for how long still. Silent when nobody watches.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};
use windtunnel_sim::Control;

/// A progress bar that follows a [`Control`] for as long as it lives.
pub struct Progress {
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

impl Progress {
    pub fn start(what: &str, control: Arc<Control>, quiet: bool) -> Progress {
        let over = Arc::new(AtomicBool::new(false));
        if quiet || !std::io::stderr().is_terminal() {
            return Progress { over, watcher: None };
        }
        let bar = bar(what, Arc::clone(&control));
        let seen = Arc::clone(&over);
        let watcher = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                bar.set_length(control.runs_planned().max(1) * 1_000_000);
                bar.set_position(control.millionths_done());
                thread::park_timeout(TICK);
            }
            bar.finish_and_clear();
        });
        Progress { over, watcher: Some(watcher) }
    }
}

fn bar(what: &str, control: Arc<Control>) -> ProgressBar {
    let rate = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let seconds = state.elapsed().as_secs_f64().max(1e-3);
        // A bar that cannot be drawn is no reason to stop.
        let _ = write!(out, "{}", HumanCount((control.steps() as f64 / seconds) as u64));
    };
    let template = "{prefix} {wide_bar} {percent:>3}%  {rate} steps/s  {eta} left";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(1).with_prefix(what.to_owned()).with_style(style.with_key("rate", rate))
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
