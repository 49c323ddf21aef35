//! One journal out of the journals of replications that are written side by side.

use std::{
    fs::{self, File},
    io,
    ops::Range,
    path::{Path, PathBuf},
};

/// Files beside the journal, one for each replication. They are gone when this is, whatever happened.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    numbers: Range<u32>,
}

impl Parts {
    /// The parts of the journal at `path`.
    pub fn new(path: &Path, numbers: Range<u32>) -> Parts {
        Parts { path: path.to_owned(), numbers }
    }

    /// Begins the part of one replication.
    pub fn create(&self, number: u32) -> io::Result<File> {
        File::create(self.part(number))
    }

    /// Writes the journal: the parts of the replications `written`, in that order. With none there is no journal, and one
    /// that was there before stays.
    pub fn join(&self, written: &[u32]) -> io::Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let mut whole = File::create(&self.path)?;
        for &number in written {
            io::copy(&mut File::open(self.part(number))?, &mut whole)?;
        }
        Ok(())
    }

    fn part(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".part{number}"));
        name.into()
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        for number in self.numbers.clone() {
            // A part that was never begun is not there; one that cannot be removed harms nobody.
            let _ = fs::remove_file(self.part(number));
        }
    }
}
