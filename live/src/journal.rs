//! The journal of a daemon: records become lines on the thread of the scheduler and go to disk on another. Where the disk is
//! too slow lines are left out, which the journal says, rather than let anybody wait.
//!
//! A file that has grown beyond its limit is followed by another that begins with a checkpoint: `run.jsonl`,
//! `run.0002.jsonl` and so on. A daemon that starts again goes on in the last of them.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread::{self, JoinHandle},
};

use windtunnel_core::{Checkpoint, Effects, Input, Span, Time};
use windtunnel_reports::{
    Recorder,
    journal::{End, Header, JournalWriter, latest, numbered},
};

/// So many parcels of lines may be on their way to the disk.
const PARCELS: usize = 256;
/// Lines are handed over at the latest when so long has passed since others were.
const PROMPT: Span = Span::from_millis(20);

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
    /// Lines that were left out because the disk was too slow.
    pub left_out: AtomicU64,
    /// Errors of the disk.
    pub errors: AtomicU64,
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
    due: Due,
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

/// What the disk is told.
#[derive(Debug)]
enum Parcel {
    Lines(Vec<u8>),
    NextFile,
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
        let (last, number) = latest(path);
        let (file, written) = open(&last)?;
        let (post, parcels) = mpsc::sync_channel(PARCELS);
        let health = Arc::new(Health::default());
        let disk = Disk { path: path.to_owned(), file, number, health: Arc::clone(&health) };
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
            due: Due::Nothing,
        })
    }

    /// How it fares.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
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
        self.waiting = false;
        self.lines.flush()?;
        let lines = std::mem::take(&mut self.lines.get_mut().lines);
        if lines.is_empty() {
            return Ok(());
        }
        let bytes = lines.len() as u64;
        self.health.lag.fetch_add(bytes, Ordering::Relaxed);
        match self.post.try_send(Parcel::Lines(lines)) {
            Ok(()) => {
                self.written += bytes;
                if self.written >= self.limit && self.due == Due::Nothing {
                    self.due = Due::File;
                }
                Ok(())
            }
            Err(TrySendError::Full(Parcel::Lines(lines)) | TrySendError::Disconnected(Parcel::Lines(lines))) => {
                self.health.lag.fetch_sub(bytes, Ordering::Relaxed);
                let left_out = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
                self.health.left_out.fetch_add(left_out, Ordering::Relaxed);
                self.due = Due::State;
                self.lines.gap(t, Some(left_out))
            }
            Err(_) => Ok(()),
        }
    }
}

impl Log for Journal {
    fn wants_state(&mut self) -> bool {
        self.due != Due::Nothing
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
        self.waiting = true;
        self.lines.step(t, input, effects)?;
        self.hand_over_after(t)
    }

    fn checkpoint(&mut self, t: Time, state: &Checkpoint) -> io::Result<()> {
        if self.due == Due::File {
            self.hand_over(t)?;
            // A full post means that this file goes on a little longer.
            if self.due == Due::File && self.post.try_send(Parcel::NextFile).is_ok() {
                self.written = 0;
            }
        }
        self.due = Due::Nothing;
        self.lines.checkpoint(t, state)?;
        self.hand_over(t)
    }

    fn end(&mut self, end: &End) -> io::Result<()> {
        self.lines.end(end)?;
        self.hand_over(end.t)
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

/// The thread that writes.
struct Disk {
    path: PathBuf,
    file: File,
    number: u32,
    health: Arc<Health>,
}

impl Disk {
    fn run(mut self, parcels: &Receiver<Parcel>) {
        for parcel in parcels {
            let done = match &parcel {
                Parcel::Lines(lines) => {
                    let done = self.file.write_all(lines);
                    self.health.lag.fetch_sub(lines.len() as u64, Ordering::Relaxed);
                    done
                }
                Parcel::NextFile => self.next_file(),
            };
            if done.is_err() {
                self.health.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn next_file(&mut self) -> io::Result<()> {
        loop {
            self.number += 1;
            let path = numbered(&self.path, self.number);
            match OpenOptions::new().create_new(true).append(true).open(path) {
                Ok(file) => {
                    self.file = file;
                    return Ok(());
                }
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
                Err(wrong) => return Err(wrong),
            }
        }
    }
}

/// The file, at its end, after a line feed where the last line of an earlier run was torn; and its size.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    if size > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok((file, size))
}
