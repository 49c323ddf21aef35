//! What a running simulation and whoever watches it tell each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between all runs of a command and the thread that watches them: a wish to stop in one direction, progress in
/// the other. Runs look at it every few thousand steps.
#[derive(Debug, Default)]
pub struct Control {
    interrupted: AtomicBool,
    steps: AtomicU64,
    millionths: AtomicU64,
    planned: AtomicU64,
}

impl Control {
    /// Nothing has happened yet.
    pub fn new() -> Control {
        Control::default()
    }

    /// Asks every run to stop where it is. Runs that have ended are kept.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether runs are to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Steps of the scheduler so far, over all runs.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Runs done so far, in millionths of a run; one under way counts by the share of it that is done.
    pub fn millionths_done(&self) -> u64 {
        self.millionths.load(Ordering::Relaxed)
    }

    /// Runs that are known to be needed; a search adds to them as it goes on.
    pub fn runs_planned(&self) -> u64 {
        self.planned.load(Ordering::Relaxed)
    }

    /// So many more runs are needed.
    pub(crate) fn plan(&self, runs: u64) {
        self.planned.fetch_add(runs, Ordering::Relaxed);
    }
}

/// What one run has told of its progress.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    control: &'a Control,
    steps: u64,
    millionths: u64,
}

impl<'a> Progress<'a> {
    pub fn new(control: &'a Control) -> Progress<'a> {
        Progress { control, steps: 0, millionths: 0 }
    }

    /// Tells that the run has taken `steps` steps and has done `share` of its way, in [0, 1].
    pub fn tell(&mut self, steps: u64, share: f64) {
        let millionths = ((share * 1e6) as u64).clamp(self.millionths, 1_000_000);
        self.control.steps.fetch_add(steps - self.steps, Ordering::Relaxed);
        self.control.millionths.fetch_add(millionths - self.millionths, Ordering::Relaxed);
        (self.steps, self.millionths) = (steps, millionths);
    }

    /// Whether the run is to stop.
    pub fn is_interrupted(&self) -> bool {
        self.control.is_interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_several_runs_adds_up() {
        let control = Control::new();
        let (mut one, mut other) = (Progress::new(&control), Progress::new(&control));
        one.tell(100, 0.25);
        other.tell(10, 1.0);
        one.tell(150, 0.5);
        one.tell(150, 0.4);
        assert_eq!((control.steps(), control.millionths_done()), (160, 1_500_000));
        control.interrupt();
        assert!(one.is_interrupted() && other.is_interrupted());
    }
}
