//! What goes on beside a run: invariants are checked, progress is told, a wish to stop is heard.

use windtunnel_core::{Scheduler, Time};
use windtunnel_reports::journal::{End, EndCause};

use crate::{Control, control::Progress};

/// The scheduler's invariants are checked, and counted as checked, every so many steps and at the end. A debug build
/// checks them after every step as well (with n jobs in flight, after every n/32 steps: a check looks at all of them),
/// which finds violations earlier and counts nothing, so that the journals of both builds are equal wherever nothing is
/// violated.
const CHECKED_EVERY: u64 = 65_536;

/// Progress is told and a wish to stop heard every so many steps.
const TOLD_EVERY: u64 = 4_096;

/// How many violations are written down.
const WRITTEN_DOWN: usize = 20;

/// The eye on one run.
#[derive(Debug)]
pub struct Watch<'a> {
    progress: Progress<'a>,
    horizon: Option<f64>,
    jobs: Option<f64>,
    steps: u64,
    /// There is nothing to do before this step.
    look_at: u64,
    debug_check_at: u64,
    checked: u64,
    violations: Vec<String>,
    interrupted: bool,
    rigour: Rigour,
}

/// How closely invariants are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rigour {
    /// Now and then, and the run goes on whatever is found.
    #[default]
    Usual,
    /// After every step, and the run stops where one does not hold.
    EveryStep,
}

impl<'a> Watch<'a> {
    /// Of a run of that length.
    pub fn new(run: &windtunnel_config::Run, rigour: Rigour, control: &'a Control) -> Watch<'a> {
        Watch {
            progress: Progress::new(control),
            horizon: run.horizon.map(|horizon| horizon.as_nanos() as f64),
            jobs: run.jobs.map(|jobs| jobs as f64),
            steps: 0,
            look_at: 0,
            debug_check_at: 0,
            checked: 0,
            violations: Vec::new(),
            interrupted: control.is_interrupted(),
            rigour,
        }
    }

    /// The scheduler has taken a step.
    #[inline]
    pub fn step(&mut self, now: Time, arrived: u64, scheduler: &Scheduler) {
        self.steps += 1;
        if self.steps >= self.look_at {
            self.look(now, arrived, scheduler);
        }
    }

    #[cold]
    fn look(&mut self, now: Time, arrived: u64, scheduler: &Scheduler) {
        if self.rigour == Rigour::EveryStep {
            self.check(now, scheduler);
            self.interrupted |= !self.violations.is_empty();
        }
        if self.steps.is_multiple_of(TOLD_EVERY) {
            self.look_up(now, arrived, scheduler);
        } else if cfg!(debug_assertions) && self.steps >= self.debug_check_at {
            self.debug_check_at = self.steps + 1 + scheduler.jobs_in_flight() as u64 / 32;
            self.check(now, scheduler);
        }
        self.look_at = match self.rigour {
            Rigour::Usual if cfg!(debug_assertions) => self.next_told().min(self.debug_check_at),
            Rigour::Usual => self.next_told(),
            Rigour::EveryStep => 0,
        };
    }

    fn next_told(&self) -> u64 {
        (self.steps / TOLD_EVERY + 1) * TOLD_EVERY
    }

    fn look_up(&mut self, now: Time, arrived: u64, scheduler: &Scheduler) {
        let of_horizon = self.horizon.map_or(0.0, |horizon| now.as_nanos() as f64 / horizon);
        let of_jobs = self.jobs.map_or(0.0, |jobs| arrived as f64 / jobs);
        self.progress.tell(self.steps, of_horizon.max(of_jobs));
        self.interrupted = self.progress.is_interrupted();
        if self.steps.is_multiple_of(CHECKED_EVERY) {
            self.checked += 1;
            self.check(now, scheduler);
        }
    }

    /// Whether the run is to stop.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    fn check(&mut self, now: Time, scheduler: &Scheduler) {
        if let Err(violation) = scheduler.check()
            && self.violations.len() < WRITTEN_DOWN
        {
            self.violations.push(format!("at {now}: {violation}"));
        }
    }

    /// The run has ended.
    pub fn end(&mut self, now: Time, cause: EndCause, scheduler: &Scheduler) -> End {
        self.checked += 1;
        self.check(now, scheduler);
        self.progress.tell(self.steps, 1.0);
        let violations = std::mem::take(&mut self.violations);
        End { t: now, cause, invariants_checked: self.checked, violations, remarks: std::collections::BTreeMap::new() }
    }
}
