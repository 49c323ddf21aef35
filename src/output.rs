//! Where results go: stdout in the format asked for, and files in a folder.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use windtunnel_live::whole_file::{self, Outlasts};
use windtunnel_reports::chart::Picture;

pub use windtunnel_live::whole_file::Readers;

use crate::failure::Failure;

/// Prints text on stdout.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a file that is not there yet.
pub fn create(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    whole_file::create(path, text.as_bytes(), readers, Outlasts::TheProgram)
}

/// Writes a file as a whole or not at all, as [`whole_file::replace`] does.
pub fn replace(path: &Path, text: &str, readers: Readers) -> Result<(), Failure> {
    let written = whole_file::replace(path, text.as_bytes(), readers, Outlasts::TheProgram);
    written.map_err(|wrong| Failure::file("write", path, &wrong))
}

/// A folder that a report is written into.
pub struct Folder<'a> {
    path: &'a Path,
}

impl<'a> Folder<'a> {
    /// Makes the folder if it is not there.
    pub fn create(path: &'a Path) -> Result<Folder<'a>, Failure> {
        fs::create_dir_all(path).map_err(|wrong| Failure::file("create folder", path, &wrong))?;
        Ok(Folder { path })
    }

    /// Writes one file, as [`replace`] does.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        replace(&self.path.join(name), text, Readers::All)
    }

    /// Writes pictures.
    pub fn pictures(&self, pictures: &[Picture]) -> Result<(), Failure> {
        pictures.iter().try_for_each(|picture| self.write(&picture.file, &picture.svg))
    }

    pub fn path(&self) -> &Path {
        self.path
    }
}
