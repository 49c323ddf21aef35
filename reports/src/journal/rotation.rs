//! Journals in several files: `run.jsonl` is followed by `run.0002.jsonl`, then by `run.0003.jsonl` and so on.
//!
//! Names sorted as text put the first file last, so files are ordered by their number. Numbers that look like years are left
//! out: `run.2026.jsonl` is a journal that somebody named so, and no part of `run.jsonl`.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

/// The digits that a number has at least.
const DIGITS: usize = 4;
/// Numbers that stand in no name.
const YEARS: Range<u32> = 1900..2100;

/// File number `number` of the journal that begins in `path`: `run.jsonl` as `run.0002.jsonl`. The first is `path` itself.
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    if number < 2 {
        return path.to_owned();
    }
    let extension = path.extension().map_or_else(String::new, |one| format!(".{}", one.to_string_lossy()));
    path.with_extension(format!("{}{extension}", digits(number)))
}

/// The same paths with the files of each journal in their order, where its first one stood.
pub fn in_order<P: AsRef<Path>>(paths: &[P]) -> Vec<PathBuf> {
    let places: Vec<(PathBuf, u32)> = paths.iter().map(|path| place(path.as_ref())).collect();
    let rank = |(first, number): &(PathBuf, u32)| (places.iter().position(|(other, _)| other == first), *number);
    let mut ranked: Vec<_> = paths.iter().zip(&places).map(|(path, place)| (rank(place), path.as_ref())).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, path)| path.to_owned()).collect()
}

/// What of these journals was left out although it lies beside them, in words.
pub fn left_out<P: AsRef<Path>>(paths: &[P]) -> Vec<String> {
    let given: Vec<(PathBuf, u32)> = paths.iter().map(|path| place(path.as_ref())).collect();
    let missing = given.iter().zip(paths).filter_map(|((first, number), path)| {
        let next = (first.clone(), number.checked_add(1)?);
        let file = numbered(&next.0, next.1);
        let left_out = !given.contains(&next) && file.exists();
        left_out.then(|| format!("{} goes on in {}: give that file as well", path.as_ref().display(), file.display()))
    });
    missing.collect()
}

/// The last file there is of the journal that begins in `path`, and its number.
pub fn latest(path: &Path) -> (PathBuf, u32) {
    // Files in between may have been removed.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = beside.filter_map(|entry| {
        let (first, number) = place(&path.with_file_name(entry.file_name()));
        (first == path).then_some(number)
    });
    let number = numbers.max().unwrap_or(1);
    (numbered(path, number), number)
}

/// The first file of the journal that a file belongs to, and the file's number.
fn place(path: &Path) -> (PathBuf, u32) {
    let alone = || (path.to_owned(), 1);
    let extension = path.extension().map(|one| one.to_string_lossy().into_owned());
    let Some(extension) = extension else { return alone() };
    if let Some(number) = number(&extension) {
        return (path.with_extension(""), number);
    }
    let stem = path.with_extension("");
    match stem.extension().and_then(|digits| number(&digits.to_string_lossy())) {
        Some(number) => (stem.with_extension(extension), number),
        None => alone(),
    }
}

/// A number as it stands in a name.
fn digits(number: u32) -> String {
    let shown = if number < YEARS.start { number } else { number.saturating_add(YEARS.end - YEARS.start) };
    format!("{shown:0DIGITS$}")
}

/// The number that stands in a name as this; a year is none's.
fn number(shown: &str) -> Option<u32> {
    let read: u32 = shown.parse().ok().filter(|read| *read >= 2)?;
    let number = if read < YEARS.start { read } else { read - (YEARS.end - YEARS.start) };
    (shown == digits(number)).then_some(number)
}

#[cfg(test)]
mod tests;
