//! Files as they are read, with how far the reading has come for whoever shows it.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::failure::Failure;

/// How far the reading has come.
#[derive(Debug, Default)]
pub struct Reading {
    total: u64,
    bytes: AtomicU64,
    records: AtomicU64,
}

/// A file that tells how far it was read.
#[derive(Debug)]
pub struct Counted<R> {
    input: R,
    reading: Arc<Reading>,
}

impl Reading {
    /// Of these files; what has no size that is known counts nothing.
    pub fn of(paths: &[PathBuf]) -> Arc<Reading> {
        let sizes = paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len());
        Arc::new(Reading { total: sizes.sum(), ..Reading::default() })
    }

    /// Opens one of them, `-` for stdin.
    pub fn open(self: &Arc<Reading>, path: &Path) -> Result<BufReader<Counted<Box<dyn Read>>>, Failure> {
        let input: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).map_err(|wrong| Failure::file("open", path, &wrong))?),
        };
        Ok(BufReader::with_capacity(1 << 16, Counted { input, reading: Arc::clone(self) }))
    }

    /// One more record was read.
    pub fn record(&self) {
        self.records.fetch_add(1, Ordering::Relaxed);
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes in all, at least those read so far.
    pub fn total(&self) -> u64 {
        self.total.max(self.bytes())
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.reading.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
