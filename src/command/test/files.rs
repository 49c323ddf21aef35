//! Which scenario files a list of paths means.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// The files named, and every `.toml` file in the folders named, sorted.
pub fn scenarios(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        collect(path, &mut files)?;
        if files.len() == before {
            return Err(Failure::BadInput(format!("{} holds no scenario (a .toml file)", path.display())));
        }
    }
    Ok(files)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut entries = entries.map_err(|wrong| Failure::file("read folder", path, &wrong))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries.iter().map(fs::DirEntry::path) {
        if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "toml") {
            collect(&entry, files)?;
        }
    }
    Ok(())
}
