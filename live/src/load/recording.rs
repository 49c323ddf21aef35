//! Records of what a client saw, in the order of their times.
//!
//! Exchanges tell of themselves a moment after things happened, and a request counts from when it was to be sent. So records
//! are held for a while ([`HOLD`]) and written sorted; ends come before what is sent at the same moment, because a client
//! that does not think sends at the very moment its last request ended.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
};

use windtunnel_core::{Span, Time};
use windtunnel_reports::{
    RunFigures, RunMetrics,
    journal::{JournalWriter, Record},
};

/// How long after something happened it may still be told in order.
pub(super) const HOLD: Span = Span::from_secs(1);

/// Takes records in and hands them, in order, to metrics and to a journal if there is one.
pub struct Recording {
    metrics: RunMetrics,
    journal: Option<JournalWriter<Box<dyn Write + Send>>>,
    held: BTreeMap<Place, Record>,
    written: Time,
    count: u64,
}

/// When a record is due, its rank among those of the same moment, and its number.
type Place = (Time, Rank, u64);

/// The order of records of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The head of the run.
    Head,
    /// What happened to requests.
    Happened,
    /// What is sent.
    Sent,
    /// The end of the run.
    Last,
}

impl Recording {
    /// Nothing has happened yet. With somewhere to write, a journal goes there.
    pub fn new(journal: Option<Box<dyn Write + Send>>) -> Recording {
        Recording {
            metrics: RunMetrics::new(),
            journal: journal.map(JournalWriter::new),
            held: BTreeMap::new(),
            written: Time::ZERO,
            count: 0,
        }
    }

    /// The figures of the run.
    pub fn into_run(self) -> RunFigures {
        self.metrics.into_run()
    }

    /// When something that happened at `at` can be told to have happened; later if the records of `at` are written.
    pub(super) fn moment(&self, at: Time) -> Time {
        at.max(self.written)
    }

    /// Holds a record of something that happened at `at`, a [`Recording::moment`].
    pub(super) fn hold(&mut self, at: Time, rank: Rank, record: Record) {
        self.held.insert((at, rank, self.count), record);
        self.count += 1;
    }

    /// Writes what happened before `until`.
    pub(super) fn write_before(&mut self, until: Time) -> io::Result<()> {
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 < until) {
            let ((at, ..), record) = first.remove_entry();
            self.written = at;
            self.put(&record)?;
        }
        Ok(())
    }

    /// Forgets what happened after `end`, the end of the run.
    pub(super) fn forget_after(&mut self, end: Time) {
        self.held.retain(|(at, ..), _| *at <= end);
    }

    /// Writes all that is held; the run is over.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.write_before(Time::MAX)?;
        match &mut self.journal {
            Some(journal) => journal.flush(),
            None => Ok(()),
        }
    }

    fn put(&mut self, record: &Record) -> io::Result<()> {
        self.metrics.record(record);
        self.journal.as_mut().map_or(Ok(()), |journal| journal.record(record))
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("held", &self.held.len()).field("written", &self.written).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use windtunnel_core::Input;
    use windtunnel_reports::journal::Records;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gap(t: Time, lines: u64) -> Record {
        Record::Gap { t, lines: Some(lines) }
    }

    #[test]
    fn records_are_written_in_the_order_of_their_times() {
        let paper = Paper::default();
        let mut recording = Recording::new(Some(Box::new(paper.clone())));
        let at = Time::from_nanos;
        recording.hold(at(30), Rank::Sent, gap(at(30), 3));
        recording.hold(at(10), Rank::Sent, gap(at(10), 1));
        recording.write_before(at(20)).unwrap();
        assert_eq!((recording.moment(at(5)), recording.moment(at(15))), (at(10), at(15)));
        recording.hold(at(30), Rank::Happened, gap(at(30), 2));
        recording.hold(at(40), Rank::Sent, gap(at(40), 4));
        recording.forget_after(at(35));
        recording.hold(at(35), Rank::Last, Record::Input { t: at(35), input: Input::TimerDue });
        recording.close().unwrap();
        let text = paper.0.lock().unwrap().clone();
        let lines: Vec<Option<u64>> = Records::new(&text[..])
            .map(|record| match record.unwrap() {
                Record::Gap { lines, .. } => lines,
                _ => None,
            })
            .collect();
        assert_eq!(lines, [Some(1), Some(2), Some(3), None]);
    }
}
