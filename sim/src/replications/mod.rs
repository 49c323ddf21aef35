//! Independent runs of one scenario, side by side.
//!
//! Replications share nothing but the scenario, so they run on as many threads as there are; what comes out is ordered by
//! their numbers and does not depend on the threads. When the control asks to stop, replications that have ended are kept
//! and the others are forgotten.

mod journal;

use std::{ops::Range, path::Path};

use rayon::prelude::*;
use windtunnel_reports::{
    Recorder, Report, RunFigures, RunMetrics, Tee,
    journal::{EndCause, JournalWriter},
};

use crate::{Control, SimError, setup::Setup};
use journal::Parts;

/// What came out of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The report over the replications that ended.
    pub report: Report,
    /// How many ended.
    pub finished: u32,
    /// How many were asked for; more than `finished` only if the control asked to stop.
    pub asked: u32,
}

impl Outcome {
    /// Whether every replication ended.
    pub fn is_complete(&self) -> bool {
        self.finished == self.asked
    }
}

impl Setup {
    /// Runs all replications of the scenario. With a path for it, their journals are written there one after another.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn run_all(&self, journal: Option<&Path>, control: &Control) -> Result<Outcome, SimError> {
        let asked = self.scenario().run.replications;
        let runs = match journal {
            None => self.replications(0..asked, control)?,
            Some(path) => self.journaled(0..asked, path, control)?,
        };
        Ok(Outcome { finished: runs.len() as u32, asked, report: Report::from_runs(runs) })
    }

    /// Runs some replications and gives the figures of those that ended, in order.
    ///
    /// # Errors
    /// As [`Setup::recorded`]; metrics in memory have none of their own.
    pub fn replications(&self, numbers: Range<u32>, control: &Control) -> Result<Vec<RunFigures>, SimError> {
        let metrics = self.recorded(numbers, |_| Ok(RunMetrics::new()), RunMetrics::into_run, control)?;
        Ok(metrics)
    }

    /// Runs some replications, each with a recorder made for it, and gives what `finish` makes of the recorders of those
    /// that ended, in order.
    ///
    /// # Errors
    /// The first, by number, of a recorder.
    pub fn recorded<R: Recorder, T: Send>(
        &self,
        numbers: Range<u32>,
        make: impl Fn(u32) -> Result<R, SimError> + Sync,
        finish: impl Fn(R) -> T + Sync,
        control: &Control,
    ) -> Result<Vec<T>, SimError> {
        control.plan(numbers.len() as u64);
        let results: Vec<Result<Option<T>, SimError>> = numbers
            .into_par_iter()
            .with_max_len(1)
            .map(|number| {
                let Some(recorder) = self.run_one(number, &make, control)? else { return Ok(None) };
                Ok(Some(finish(recorder)))
            })
            .collect();
        results.into_iter().filter_map(Result::transpose).collect()
    }

    /// One replication; `None` if it was interrupted.
    pub(crate) fn run_one<R: Recorder>(
        &self,
        number: u32,
        make: impl Fn(u32) -> Result<R, SimError>,
        control: &Control,
    ) -> Result<Option<R>, SimError> {
        if control.is_interrupted() {
            return Ok(None);
        }
        let mut recorder = make(number)?;
        let end = self.run(number, &mut recorder, control)?;
        Ok((end.cause != EndCause::Interrupted).then_some(recorder))
    }

    fn journaled(&self, numbers: Range<u32>, path: &Path, control: &Control) -> Result<Vec<RunFigures>, SimError> {
        let parts = Parts::new(path, numbers.clone());
        let make = |number| Ok(Tee(RunMetrics::new(), JournalWriter::new(parts.create(number)?)));
        let finish = |Tee(metrics, journal): Tee<RunMetrics, JournalWriter<_>>| {
            let run = metrics.into_run();
            (run.header.replication, run, journal.into_inner().map(drop))
        };
        let done = self.recorded(numbers, make, finish, control)?;
        let mut runs = Vec::new();
        let mut written = Vec::new();
        for (number, run, flushed) in done {
            flushed?;
            written.push(number);
            runs.push(run);
        }
        parts.join(&written)?;
        Ok(runs)
    }
}

#[cfg(test)]
mod tests;
