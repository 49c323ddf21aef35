//! How every job of a run ended.

use std::io;

use windtunnel_core::{Class, Effect, Effects, Finish, Input, Time};

use crate::{
    Recorder,
    journal::{End, Header},
};

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobEnd {
    /// Its class.
    pub class: Class,
    /// Whether all of it was done.
    pub completed: bool,
    /// Seconds from its arrival until its first step started, or until its end if none did.
    pub wait: f64,
    /// Seconds from its arrival to its end.
    pub latency: f64,
}

/// The end of every job, by its number; a recorder that keeps nothing else.
#[derive(Clone, Debug, Default)]
pub struct JobEnds {
    ends: Vec<Option<JobEnd>>,
}

impl JobEnd {
    /// The end of a job that ended at `t`.
    pub fn of(t: Time, finish: &Finish) -> JobEnd {
        let seconds = |until: Time| until.since(finish.arrived).as_nanos() as f64 / 1e9;
        JobEnd {
            class: finish.class,
            completed: finish.outcome.is_completed(),
            wait: seconds(finish.started.unwrap_or(t)),
            latency: seconds(t),
        }
    }
}

impl JobEnds {
    /// No job yet.
    pub fn new() -> JobEnds {
        JobEnds::default()
    }

    /// The end of the job of that number, if it has ended.
    pub fn get(&self, job: usize) -> Option<JobEnd> {
        self.ends.get(job).copied().flatten()
    }
}

impl Recorder for JobEnds {
    fn begin(&mut self, _header: &Header) -> io::Result<()> {
        self.ends.clear();
        Ok(())
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        if let Input::Submitted { .. } = input {
            self.ends.push(None);
        }
        for effect in effects {
            if let Effect::Finish(finish) = effect
                && let Some(end) = self.ends.get_mut(finish.job.0 as usize)
            {
                *end = Some(JobEnd::of(t, finish));
            }
        }
        Ok(())
    }

    fn end(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }
}
