//! From journals to figures.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use super::{
    reader::{JournalError, Records, Warning},
    record::{Header, Record, Source},
};
use crate::{Recorder, Report, RunFigures, RunMetrics};

/// The runs of a journal, one after another, each as soon as its last record is read.
#[derive(Debug)]
pub struct Runs<R> {
    records: Records<R>,
    gatherer: Gatherer,
}

/// The runs of several journals and what had to be borne.
#[derive(Debug, Default)]
pub struct Journals {
    /// The figures of every run.
    pub runs: Vec<RunFigures>,
    /// What to tell the reader, with the file where there is one.
    pub warnings: Vec<String>,
}

/// Makes runs of records.
#[derive(Debug, Default)]
struct Gatherer {
    open: Option<Box<RunMetrics>>,
    title: (String, u32),
    seen: BTreeSet<(String, u64, u32)>,
    done: VecDeque<RunFigures>,
    warnings: Vec<Warning>,
}

/// The runs of the journal in `input`.
pub fn read_runs<R: BufRead>(input: R) -> Runs<R> {
    Runs { records: Records::new(input), gatherer: Gatherer::default() }
}

/// The runs of all these files, `-` for stdin. A file that does not begin with a header goes on where the one before it broke off.
///
/// # Errors
/// When a file cannot be read, is no journal, or has another major version.
pub fn read_journals<P: AsRef<Path>>(paths: &[P]) -> Result<Journals, JournalError> {
    let mut gatherer = Gatherer::default();
    let mut warnings = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let said = gatherer
            .file(path)
            .map_err(|cause| JournalError::InFile { path: path.to_owned(), cause: Box::new(cause) })?;
        warnings.extend(said.iter().map(|warning| format!("{}: {warning}", path.display())));
    }
    gatherer.close();
    warnings.extend(gatherer.warnings.iter().map(Warning::to_string));
    Ok(Journals { runs: gatherer.done.into(), warnings })
}

/// The report that the program which wrote these journals printed, and what had to be borne to get it.
///
/// # Errors
/// As for [`read_journals`].
pub fn report_from_journals<P: AsRef<Path>>(paths: &[P]) -> Result<(Report, Vec<String>), JournalError> {
    let Journals { runs, warnings } = read_journals(paths)?;
    Ok((Report::from_runs(runs), warnings))
}

impl<R: BufRead> Runs<R> {
    /// What was borne so far.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.records.warnings().iter().chain(&self.gatherer.warnings)
    }
}

impl<R: BufRead> Iterator for Runs<R> {
    type Item = Result<RunFigures, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.gatherer.done.is_empty() {
            match self.records.next() {
                Some(Ok(record)) => {
                    if let Err(error) = self.gatherer.take(record, self.records.line()) {
                        return Some(Err(error));
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.gatherer.close();
                    return self.gatherer.done.pop_front().map(Ok);
                }
            }
        }
        self.gatherer.done.pop_front().map(Ok)
    }
}

impl Gatherer {
    fn file(&mut self, path: &Path) -> Result<Vec<Warning>, JournalError> {
        let input: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path)?),
        };
        let mut records = Records::new(BufReader::with_capacity(1 << 16, input));
        while let Some(record) = records.next() {
            self.take(record?, records.line())?;
        }
        Ok(records.warnings().to_vec())
    }

    fn take(&mut self, record: Record, line: u64) -> Result<(), JournalError> {
        if let Record::Header(header) = &record {
            self.close();
            self.check_new(header, line)?;
            self.open(header)?;
            return Ok(());
        }
        let Some(metrics) = &mut self.open else { return Err(JournalError::NoHeader { line }) };
        metrics.record(&record);
        match record {
            Record::Gap { lines, .. } => self.warnings.push(Warning::Gap { lines }),
            Record::End(_) => self.end(),
            Record::Input { .. } | Record::Effect { .. } | Record::Checkpoint { .. } | Record::Header(_) => {}
        }
        Ok(())
    }

    /// Simulated runs are told apart by title, seed and replication.
    fn check_new(&mut self, header: &Header, line: u64) -> Result<(), JournalError> {
        let Header { title, seed, replication, .. } = header;
        if header.source == Source::Live || self.seen.insert((title.clone(), *seed, *replication)) {
            return Ok(());
        }
        Err(JournalError::Repeated { line, title: title.clone(), seed: *seed, replication: *replication })
    }

    fn open(&mut self, header: &Header) -> Result<(), JournalError> {
        let mut metrics = RunMetrics::new();
        metrics.begin(header)?;
        self.title = (header.title.clone(), header.replication);
        self.open = Some(Box::new(metrics));
        Ok(())
    }

    fn end(&mut self) {
        self.done.extend(self.open.take().map(|metrics| metrics.into_run()));
    }

    /// A run that is still open breaks off here.
    fn close(&mut self) {
        if self.open.is_some() {
            let (title, replication) = self.title.clone();
            self.warnings.push(Warning::NoEnd { title, replication });
            self.end();
        }
    }
}
