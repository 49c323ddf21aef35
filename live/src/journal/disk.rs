//! The thread that writes. What a full disk does not take is left out from there on, until the disk takes a gap record with
//! the number of missing lines and the scheduler's whole state: so what is in the file can always be read.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering, mpsc::Receiver},
};

use windtunnel_core::Time;
use windtunnel_reports::journal::{JournalWriter, latest, numbered};

use super::Health;

/// What the disk is told.
#[derive(Debug)]
pub(super) enum Parcel {
    Lines(Vec<u8>),
    /// Lines that can be read without those before, which begin with the state; where lines are missing, this says so first.
    Anew(Time, Vec<u8>),
    NextFile,
}

/// Where lines go.
pub(super) trait Paper: Send {
    /// Writes at the end, possibly not everything.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Takes back the last bytes.
    fn take_back(&mut self, bytes: u64) -> io::Result<()>;

    /// What follows goes to a new file.
    fn next_file(&mut self) -> io::Result<()>;
}

/// What the thread has.
pub(super) struct Disk<P> {
    paper: P,
    health: Arc<Health>,
    /// Lines that are missing since the last that was written.
    missing: u64,
    /// Whether the last line has no end.
    torn: bool,
}

impl<P: Paper> Disk<P> {
    pub(super) fn new(paper: P, health: Arc<Health>) -> Disk<P> {
        Disk { paper, health, missing: 0, torn: false }
    }

    pub(super) fn run(mut self, parcels: &Receiver<Parcel>) {
        for parcel in parcels {
            let size = match &parcel {
                Parcel::Lines(lines) | Parcel::Anew(_, lines) => lines.len() as u64,
                Parcel::NextFile => 0,
            };
            match parcel {
                // What comes before a gap record was said cannot be understood without what is missing.
                Parcel::Lines(lines) if self.missing > 0 => self.leave_out(&lines),
                Parcel::Lines(lines) => self.put(&lines),
                Parcel::Anew(_, lines) if self.missing == 0 => self.put(&lines),
                Parcel::Anew(t, lines) => self.resume(t, lines),
                Parcel::NextFile => match self.paper.next_file() {
                    Ok(()) => self.torn = false,
                    Err(_) => self.failed(),
                },
            }
            self.health.lag.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Writes all lines, or the first of them.
    fn put(&mut self, lines: &[u8]) {
        let written = self.write(lines);
        if written < lines.len() {
            self.failed();
            let whole = lines.get(..written).and_then(|done| done.iter().rposition(|byte| *byte == b'\n'));
            let whole = whole.map_or(0, |at| at + 1);
            self.take_back(written - whole);
            self.leave_out(lines.get(whole..).unwrap_or_default());
        }
    }

    /// Says how many lines are missing and goes on; all of it or nothing.
    fn resume(&mut self, t: Time, lines: Vec<u8>) {
        let mut gap = JournalWriter::new(if self.torn { b"\n".to_vec() } else { Vec::new() });
        let said = gap.gap(t, Some(self.missing)).and_then(|()| gap.flush());
        let all = [gap.get_mut().as_slice(), &lines].concat();
        let written = if said.is_ok() { self.write(&all) } else { 0 };
        if written == all.len() {
            (self.missing, self.torn) = (0, false);
            self.health.lost.store(false, Ordering::Relaxed);
            return;
        }
        self.failed();
        self.take_back(written);
        self.leave_out(&lines);
    }

    fn leave_out(&mut self, lines: &[u8]) {
        let count = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.missing += count;
        self.health.left_out.fetch_add(count, Ordering::Relaxed);
        self.health.lost.store(true, Ordering::Relaxed);
    }

    fn failed(&self) {
        self.health.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the paper takes nothing back, the next line begins on a new one.
    fn take_back(&mut self, bytes: usize) {
        if bytes > 0 && self.paper.take_back(bytes as u64).is_err() {
            self.torn = true;
        }
    }

    /// How many bytes could be written.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match self.paper.write(rest) {
                Ok(0) => break,
                Ok(more) => written += more,
                Err(wrong) if wrong.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        written
    }
}

/// Files in a folder, one after the other.
#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    file: File,
    number: u32,
}

impl Files {
    /// The last file of that path, at its end, after a line feed where the last line of an earlier run was torn; and its size.
    pub(super) fn open(path: &Path) -> io::Result<(Files, u64)> {
        let (last, number) = latest(path);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(last)?;
        let size = file.seek(SeekFrom::End(0))?;
        if size > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok((Files { path: path.to_owned(), file, number }, size))
    }
}

impl Paper for Files {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn take_back(&mut self, bytes: u64) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        self.file.set_len(size.saturating_sub(bytes))
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

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;

    /// A disk that has room for some bytes, and more later.
    #[derive(Clone)]
    struct Full {
        text: Arc<Mutex<Vec<u8>>>,
        rooms: Vec<usize>,
        takes_back: bool,
    }

    impl Paper for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.rooms.first_mut().unwrap();
            let part = bytes.len().min(*room);
            if part == 0 {
                self.rooms.remove(0);
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= part;
            self.text.lock().unwrap().extend_from_slice(&bytes[..part]);
            Ok(part)
        }

        fn take_back(&mut self, bytes: u64) -> io::Result<()> {
            if !self.takes_back {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let mut text = self.text.lock().unwrap();
            let rest = text.len() - bytes as usize;
            text.truncate(rest);
            Ok(())
        }

        fn next_file(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a disk with these rooms makes of lines, of a state for which there is no room, and of one for which there is.
    fn written(takes_back: bool) -> (String, Health) {
        let text: Arc<Mutex<Vec<u8>>> = Arc::default();
        let paper = Full { text: Arc::clone(&text), rooms: vec![6, 3, 1000], takes_back };
        let health = Arc::new(Health::default());
        let (post, parcels) = mpsc::channel();
        let lines = |text: &str| text.as_bytes().to_vec();
        post.send(Parcel::Lines(lines("one\ntwo\nthree\n"))).unwrap();
        post.send(Parcel::Lines(lines("four\n"))).unwrap();
        post.send(Parcel::Anew(Time::ZERO, lines("state\n"))).unwrap();
        post.send(Parcel::Lines(lines("five\n"))).unwrap();
        post.send(Parcel::Anew(Time::ZERO, lines("state\n"))).unwrap();
        post.send(Parcel::Lines(lines("six\n"))).unwrap();
        drop(post);
        health.lag.store(14 + 5 + 6 + 5 + 6 + 4, Ordering::Relaxed);
        Disk::new(paper, Arc::clone(&health)).run(&parcels);
        let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
        (text, Arc::into_inner(health).unwrap())
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_missing_as_a_whole_and_counted() {
        let (text, health) = written(true);
        assert_eq!(text, "one\n{\"gap\":{\"t\":0,\"lines\":5}}\nstate\nsix\n");
        assert_eq!((health.left_out.into_inner(), health.errors.into_inner()), (5, 2));
        assert_eq!((health.lag.into_inner(), health.lost.into_inner()), (0, false));
    }

    #[test]
    fn where_nothing_can_be_taken_back_a_torn_line_ends_before_the_gap() {
        assert_eq!(written(false).0, "one\ntw\n{\"\n{\"gap\":{\"t\":0,\"lines\":5}}\nstate\nsix\n");
    }
}
