//! Everybody who takes records of the scheduler: the journal, the figures, and whoever watches.

use std::io;

use windtunnel_core::{Checkpoint, Effects, Input, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header},
};

use super::news::News;
use crate::{
    journal::{Journal, Log},
    metrics::{Meter, Watched},
};

/// All of them. A journal that cannot be written says so itself, and keeps nobody else from his records.
pub(super) struct Records {
    pub journal: Option<Journal>,
    pub meter: Meter,
    pub watched: Watched,
    pub news: News,
}

impl Recorder for Records {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        let written = self.journal.begin(header);
        self.watched.begin(header)?;
        written
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        let written = self.journal.step(t, input, effects);
        self.meter.step(t, input, effects)?;
        self.watched.step(t, input, effects)?;
        self.news.step(t, input, effects)?;
        written
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        self.journal.checkpoint(t, state)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.journal.end(end)
    }
}

impl Log for Records {
    fn wants_state(&mut self) -> bool {
        self.journal.as_mut().is_some_and(Log::wants_state)
    }

    fn idle_at(&self) -> Option<Time> {
        self.journal.as_ref()?.idle_at()
    }

    fn idle(&mut self, now: Time) {
        if let Some(journal) = &mut self.journal {
            journal.idle(now);
        }
    }
}
