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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use windtunnel_core::Span;

    use super::*;
    use crate::metrics::Metrics;

    fn records(journal: Option<&Path>) -> Records {
        let journal = journal.map(|path| Journal::open(path, u64::MAX).unwrap());
        let (watched, _) = Watched::new();
        let (news, _) = News::start(std::sync::Arc::new(|_| {})).unwrap();
        let mut records = Records { journal, meter: Metrics::new(None).meter(), watched, news };
        records.step(Time::ZERO, &Input::TimerDue, &Effects::new()).unwrap();
        records
    }

    #[test]
    fn the_journal_is_told_when_nothing_happens() {
        let folder = std::env::temp_dir().join(format!("windtunnel-records-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path: PathBuf = folder.join("run.jsonl");
        let mut records = records(Some(&path));
        let at = records.idle_at().expect("a line waits");
        assert_eq!(at, Time::ZERO.after(Span::from_millis(20)));
        records.idle(at);
        assert_eq!(records.idle_at(), None, "it was handed over");
        drop(records);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("timer_due"), "{text}");
    }

    #[test]
    fn without_a_journal_nobody_wants_to_be_called() {
        let mut records = records(None);
        assert_eq!(records.idle_at(), None);
        records.idle(Time::ZERO);
        assert!(!records.wants_state());
    }
}
