//! The journal of a daemon: records become lines on the thread of the scheduler and go to disk on another. Where the disk is
//! too slow lines are left out, which the journal says, rather than let anybody wait.
//!
//! A file that has grown beyond its limit is followed by another that begins with a checkpoint: `run.jsonl`,
//! `run.0002.jsonl` and so on. A daemon that starts again goes on in the last of them.

mod disk;

use std::{
    io::{self, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, SyncSender, TrySendError},
    },
    thread::{self, JoinHandle},
};

use windtunnel_core::{Checkpoint, Effects, Input, Span, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header, JournalWriter},
};

use disk::{Disk, Files, Paper, Parcel};

/// So many parcels of lines may be on their way to the disk.
const PARCELS: usize = 256;
/// Lines are handed over at the latest when so long has passed since others were.
const PROMPT: Span = Span::from_millis(20);
/// A disk that took nothing is tried again after so long: what it is sent then is the whole state.
const AGAIN: Span = Span::from_secs(1);

/// A recorder that may ask for the scheduler's whole state.
pub trait Log: Recorder {
    /// Whether the next record should be a checkpoint. Asked after every step.
    fn wants_state(&mut self) -> bool;

    /// When it wants to be called although nothing has happened; `None`: never.
    fn idle_at(&self) -> Option<Time> {
        None
    }

    /// Nothing has happened until `now`.
    fn idle(&mut self, _now: Time) {}
}

/// What is known of a journal from outside.
#[derive(Debug, Default)]
pub struct Health {
    /// Bytes on their way to the disk.
    pub lag: AtomicU64,
    /// Lines that were left out because the disk was too slow or took them not.
    pub left_out: AtomicU64,
    /// Errors of the disk.
    pub errors: AtomicU64,
    /// Whether lines are missing at the end of the file, so that it can go on with the state only.
    lost: AtomicBool,
}

/// A journal that makes nobody wait.
#[derive(Debug)]
pub struct Journal {
    lines: JournalWriter<Parcels>,
    post: SyncSender<Parcel>,
    health: Arc<Health>,
    disk: Option<JoinHandle<()>>,
    /// When lines were last handed over, and whether there are new ones.
    handed: Time,
    waiting: bool,
    /// Bytes of the file so far, and how many it may have.
    written: u64,
    limit: u64,
    /// Bytes of the state that the file begins with.
    opening: u64,
    due: Due,
    /// When the last record came, and when a disk that had lost lines was last sent the state.
    now: Time,
    tried: Option<Time>,
}

/// What comes before the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Nothing,
    /// Another file, which begins with the state.
    File,
    /// The state, since lines are missing.
    State,
}

/// Collects whole lines: the writer above never splits one.
#[derive(Debug, Default)]
struct Parcels {
    lines: Vec<u8>,
}

impl Journal {
    /// A journal that begins in `path`, with files of about `limit` bytes; what exists of it is gone on with.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path, limit: u64) -> io::Result<Journal> {
        let (files, written) = Files::open(path)?;
        Journal::on(files, written, limit)
    }

    fn on(paper: impl Paper + 'static, written: u64, limit: u64) -> io::Result<Journal> {
        let (post, parcels) = mpsc::sync_channel(PARCELS);
        let health = Arc::new(Health::default());
        let disk = Disk::new(paper, Arc::clone(&health));
        let disk = thread::Builder::new().name("journal".to_owned()).spawn(move || disk.run(&parcels))?;
        Ok(Journal {
            lines: JournalWriter::new(Parcels::default()),
            post,
            health,
            disk: Some(disk),
            handed: Time::ZERO,
            waiting: false,
            written,
            limit: limit.max(1),
            opening: 0,
            due: Due::Nothing,
            now: Time::ZERO,
            tried: None,
        })
    }

    /// How it fares.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Whether the file has grown beyond its limit, and by as much again as the state that it began with: however large that is,
    /// files are not full of states alone.
    fn is_full(&self) -> bool {
        self.written >= self.limit.max(self.opening.saturating_mul(2))
    }

    fn hand_over_after(&mut self, t: Time) -> io::Result<()> {
        if t < self.handed.after(PROMPT) {
            return Ok(());
        }
        self.handed = t;
        self.hand_over(t)
    }

    /// Gives the lines to the disk, or leaves them out where it is far behind.
    fn hand_over(&mut self, t: Time) -> io::Result<()> {
        self.send(t, Parcel::Lines)
    }

    fn send(&mut self, t: Time, parcel: impl FnOnce(Vec<u8>) -> Parcel) -> io::Result<()> {
        self.waiting = false;
        self.lines.flush()?;
        let lines = std::mem::take(&mut self.lines.get_mut().lines);
        if lines.is_empty() {
            return Ok(());
        }
        let bytes = lines.len() as u64;
        self.health.lag.fetch_add(bytes, Ordering::Relaxed);
        match self.post.try_send(parcel(lines)) {
            Ok(()) => {
                self.written += bytes;
                if self.is_full() && self.due == Due::Nothing {
                    self.due = Due::File;
                }
                Ok(())
            }
            Err(TrySendError::Full(Parcel::NextFile) | TrySendError::Disconnected(Parcel::NextFile)) => Ok(()),
            Err(
                TrySendError::Full(Parcel::Lines(lines) | Parcel::Anew(_, lines))
                | TrySendError::Disconnected(Parcel::Lines(lines) | Parcel::Anew(_, lines)),
            ) => {
                self.health.lag.fetch_sub(bytes, Ordering::Relaxed);
                let left_out = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                self.health.left_out.fetch_add(left_out, Ordering::Relaxed);
                self.due = Due::State;
                self.lines.gap(t, Some(left_out))
            }
        }
    }
}

impl Journal {
    /// Whether the disk left out lines, of which only it knows how many.
    fn has_lost(&self) -> bool {
        self.health.lost.load(Ordering::Relaxed)
    }
}

impl Log for Journal {
    fn wants_state(&mut self) -> bool {
        self.due != Due::Nothing || self.has_lost() && self.tried.is_none_or(|at| self.now >= at.after(AGAIN))
    }

    fn idle_at(&self) -> Option<Time> {
        self.waiting.then(|| self.handed.after(PROMPT))
    }

    /// The last lines before a pause do not wait for what comes after it.
    fn idle(&mut self, now: Time) {
        self.handed = now;
        drop(self.hand_over(now));
    }
}

impl Recorder for Journal {
    fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.lines.begin(header)
    }

    fn step(&mut self, t: Time, input: &Input, effects: &Effects) -> io::Result<()> {
        (self.waiting, self.now) = (true, t);
        self.lines.step(t, input, effects)?;
        self.hand_over_after(t)
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        let mut begins = false;
        if self.due == Due::File {
            self.hand_over(t)?;
            // A full post means that this file goes on a little longer.
            begins = self.due == Due::File && self.post.try_send(Parcel::NextFile).is_ok();
        }
        self.due = Due::Nothing;
        let anew = self.has_lost();
        if anew {
            self.tried = Some(t);
            self.hand_over(t)?;
        }
        self.lines.checkpoint(t, state)?;
        if begins {
            self.lines.flush()?;
            (self.written, self.opening) = (0, self.lines.get_mut().lines.len() as u64);
        }
        if anew { self.send(t, |lines| Parcel::Anew(t, lines)) } else { self.hand_over(t) }
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.hand_over(end.t)?;
        self.lines.end(end)?;
        // Whether lines are missing shows when the disk has come so far.
        self.send(end.t, |lines| Parcel::Anew(end.t, lines))
    }
}

/// The last lines are on the disk when it is gone.
impl Drop for Journal {
    fn drop(&mut self) {
        let (post, _) = mpsc::sync_channel(0);
        drop(std::mem::replace(&mut self.post, post));
        if let Some(disk) = self.disk.take() {
            drop(disk.join());
        }
    }
}

impl Write for Parcels {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.lines.extend_from_slice(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use windtunnel_core::Scheduler;
    use windtunnel_reports::journal::{Record, Records};

    use super::*;

    /// A disk that is full at its first write, and tears a line.
    struct Torn {
        text: Arc<Mutex<Vec<u8>>>,
        writes: u32,
    }

    impl Paper for Torn {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            let part = match self.writes {
                1 => bytes.len() - 3,
                2 => return Err(io::ErrorKind::StorageFull.into()),
                _ => bytes.len(),
            };
            self.text.lock().unwrap().extend_from_slice(&bytes[..part]);
            Ok(part)
        }

        fn take_back(&mut self, _bytes: u64) -> io::Result<()> {
            Err(io::ErrorKind::InvalidInput.into())
        }

        fn next_file(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_was_full_gets_a_gap_and_the_state_and_can_be_read() {
        let text: Arc<Mutex<Vec<u8>>> = Arc::default();
        let mut journal = Journal::on(Torn { text: Arc::clone(&text), writes: 0 }, 0, u64::MAX).unwrap();
        let health = journal.health();
        let step = |journal: &mut Journal, millis| {
            journal.step(Time::ZERO.after(Span::from_millis(millis)), &Input::TimerDue, &Effects::new()).unwrap();
        };
        assert!(!journal.wants_state());
        step(&mut journal, 100);
        let started = std::time::Instant::now();
        while !health.lost.load(Ordering::Relaxed) {
            assert!(started.elapsed() < Duration::from_secs(20), "the disk should fail");
            thread::sleep(Duration::from_millis(1));
        }
        step(&mut journal, 200);
        assert!(journal.wants_state());
        journal.checkpoint(Time::ZERO.after(Span::from_millis(200)), &Scheduler::new().checkpoint()).unwrap();
        step(&mut journal, 300);
        drop(journal);
        let text = text.lock().unwrap().clone();
        let records: Vec<Record> = Records::new(text.as_slice()).map(|record| record.unwrap()).collect();
        assert!(matches!(records[0], Record::Gap { lines: Some(2), .. }), "{records:?}");
        assert!(matches!(records[1], Record::Checkpoint { .. }), "{records:?}");
        assert!(matches!(records[2..], [Record::Input { .. }]), "{records:?}");
        assert_eq!((health.left_out.load(Ordering::Relaxed), health.lag.load(Ordering::Relaxed)), (2, 0));
    }

    /// A disk that counts its files.
    struct Counting(Arc<Mutex<(u32, u64)>>);

    impl Paper for Counting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().1 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn take_back(&mut self, _bytes: u64) -> io::Result<()> {
            Ok(())
        }

        fn next_file(&mut self) -> io::Result<()> {
            self.0.lock().unwrap().0 += 1;
            Ok(())
        }
    }

    #[test]
    fn a_state_beyond_the_limit_does_not_begin_a_file_with_every_step() {
        let seen = Arc::default();
        let mut journal = Journal::on(Counting(Arc::clone(&seen)), 0, 1).unwrap();
        let state = Scheduler::new().checkpoint();
        for second in 1..=500 {
            let now = Time::ZERO.after(Span::from_secs(second));
            if journal.wants_state() {
                journal.checkpoint(now, &state).unwrap();
            }
            journal.step(now, &Input::TimerDue, &Effects::new()).unwrap();
            // The disk keeps up.
            while journal.health().lag.load(Ordering::Relaxed) > 0 {
                thread::yield_now();
            }
        }
        let left_out = journal.health().left_out.load(Ordering::Relaxed);
        drop(journal);
        let (files, bytes) = *seen.lock().unwrap();
        let of_steps = 500
            * (serde_json::to_vec(&Record::Input { t: Time::ZERO, input: Input::TimerDue }).unwrap().len() as u64 + 20);
        assert!(files > 1 && left_out == 0, "{files} files, {left_out} lines left out");
        assert!(bytes < 3 * of_steps, "{files} files of {bytes} bytes for {of_steps} of steps");
    }
}
