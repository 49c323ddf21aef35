//! What every section can reach while it is read: complaints, the scenario's folder, and files of sizes read before.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Complaint;
use crate::source::{Place, Sources};

/// Shared by the sections of one document.
pub(crate) struct Context<'a> {
    /// The folder that relative paths start from.
    pub folder: &'a Path,
    /// Files of sizes.
    pub empiricals: &'a Empiricals,
    sources: Sources<'a>,
    complaints: RefCell<Vec<Complaint>>,
    #[cfg(test)]
    pub read: RefCell<std::collections::BTreeSet<(&'static str, String)>>,
}

impl<'a> Context<'a> {
    pub fn new(folder: &'a Path, empiricals: &'a Empiricals, sources: Sources<'a>) -> Context<'a> {
        Context {
            folder,
            empiricals,
            sources,
            complaints: RefCell::default(),
            #[cfg(test)]
            read: RefCell::default(),
        }
    }

    pub fn complain(&self, place: Place, message: impl Into<String>, notes: Vec<String>) {
        self.complaints.borrow_mut().push(Complaint { place, message: message.into(), notes });
    }

    /// The line of a file where `place` begins, from 1.
    pub fn line(&self, place: Place) -> usize {
        let text = self.sources.files.get(place.source).map_or("", |file| &file.text);
        text.bytes().take(place.start).filter(|&one| one == b'\n').count() + 1
    }

    /// A path as it stands at `place`: relative ones start from the folder of their file, those of an override from the
    /// folder of the document.
    pub fn path(&self, place: Place, text: &str) -> PathBuf {
        self.sources.files.get(place.source).map_or(self.folder, |file| &file.folder).join(text)
    }

    /// All complaints so far.
    pub fn complaints(self) -> Vec<Complaint> {
        self.complaints.into_inner()
    }
}

/// The first numeric column of files, each read once.
#[derive(Debug, Default)]
pub(crate) struct Empiricals {
    read: Mutex<BTreeMap<PathBuf, Arc<[f64]>>>,
}

impl Empiricals {
    /// The values of `path`: the first column that is a number in the first row of data, of every row.
    pub fn values(&self, path: &Path) -> Result<Arc<[f64]>, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(values) = read.get(path) {
            return Ok(values.clone());
        }
        let values: Arc<[f64]> = first_numeric_column(path)?.into();
        read.insert(path.to_owned(), values.clone());
        Ok(values)
    }
}

fn first_numeric_column(path: &Path) -> Result<Vec<f64>, String> {
    let failed = |error: csv::Error| match error.kind() {
        csv::ErrorKind::Io(error) => unreadable(path, error),
        _other => format!("cannot be read from {}: {error}", path.display()),
    };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_path(path)
        .map_err(failed)?;
    let mut values = Vec::new();
    let mut column = None;
    for (at, row) in reader.records().enumerate() {
        let row = row.map_err(failed)?;
        column = column.or_else(|| row.iter().position(|field| number(field).is_some()));
        match column.and_then(|column| row.get(column)).and_then(number) {
            Some(value) => values.push(value),
            None if at == 0 => {}
            None => {
                return Err(format!("has no size in row {} of {}: sizes are numbers from 0", at + 1, path.display()));
            }
        }
    }
    if values.is_empty() { Err(format!("finds no numbers in {}", path.display())) } else { Ok(values) }
}

/// Why a file cannot be read; the end of a sentence about who names it.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("needs {}, which does not exist", path.display()),
        _other => format!("needs {}, which cannot be read: {error}", path.display()),
    }
}

fn number(field: &str) -> Option<f64> {
    let field = field.trim_start_matches('\u{feff}');
    field.parse().ok().filter(|value: &f64| (0.0..=crate::sections::MOST).contains(value))
}

impl Clone for Empiricals {
    fn clone(&self) -> Empiricals {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Empiricals { read: Mutex::new(read) }
    }
}
