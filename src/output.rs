//! Where results go: stdout in the format asked for, and files in a folder.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use windtunnel_reports::chart::Picture;

use crate::failure::Failure;

/// Prints text on stdout.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
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

    /// Writes one file; a half-written one never takes the place of an older.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let (path, part) = (self.path.join(name), self.path.join(format!("{name}.part")));
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &path));
        written.map_err(|wrong: io::Error| Failure::file("write", &path, &wrong))
    }

    /// Writes pictures.
    pub fn pictures(&self, pictures: &[Picture]) -> Result<(), Failure> {
        pictures.iter().try_for_each(|picture| self.write(&picture.file, &picture.svg))
    }

    pub fn path(&self) -> &Path {
        self.path
    }
}
