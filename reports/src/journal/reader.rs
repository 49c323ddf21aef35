//! Reads a journal line by line, and bears what journals suffer: a last line that was never finished, and lines and fields
//! of a program that is newer than this one.

use std::{
    fmt,
    io::{self, BufRead},
    path::PathBuf,
};

use serde::Deserialize;
use thiserror::Error;

use super::record::{Record, SCHEMA, SchemaVersion};

/// The records of a journal, one by one.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    buffer: Vec<u8>,
    /// The line last read, from 1.
    line: u64,
    /// The version of the run's header.
    version: SchemaVersion,
    warnings: Vec<Warning>,
    over: bool,
}

/// Something that was borne.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The last line was never finished and is left out.
    Torn {
        /// Its number, from 1.
        line: u64,
    },
    /// Lines of a newer program that this one does not know were left out.
    Unknown {
        /// How many.
        lines: u64,
        /// The number of the first, from 1.
        first: u64,
    },
    /// The run says nothing of its end.
    NoEnd {
        /// Its title.
        title: String,
        /// Its replication.
        replication: u32,
    },
    /// Lines are missing, so figures are incomplete.
    Gap {
        /// How many, where that is known.
        lines: Option<u64>,
    },
}

/// Why a journal cannot be read.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The file could not be read.
    #[error("cannot read the journal: {0}")]
    Io(#[from] io::Error),
    /// A line in the middle is not a record.
    #[error("line {line} is not a record of a journal: {cause}")]
    Corrupt {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// The journal was written by a program of another major version.
    #[error("line {line}: the journal has schema version {found}, this program reads {}.x", SCHEMA.major)]
    Version {
        /// The header's line, from 1.
        line: u64,
        /// The version found.
        found: SchemaVersion,
    },
    /// A record stands before any header.
    #[error("line {line}: a journal begins with a header, found another record")]
    NoHeader {
        /// Its number, from 1.
        line: u64,
    },
    /// The same simulated run is there twice; counted as two it would make intervals look narrower than they are.
    #[error(
        "line {line}: replication {replication} of \"{title}\" with seed {seed} is there already; leave one of the two out"
    )]
    Repeated {
        /// The second header's line, from 1.
        line: u64,
        /// Its title.
        title: String,
        /// Its seed.
        seed: u64,
        /// Its replication.
        replication: u32,
    },
    /// One of several files.
    #[error("{}: {cause}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: Box<JournalError>,
    },
}

/// As much of a header as every version has.
#[derive(Deserialize)]
struct Peek {
    header: Option<PeekHeader>,
}

#[derive(Deserialize)]
struct PeekHeader {
    schema: SchemaVersion,
}

/// What a line turned out to be.
enum Parsed {
    Record(Box<Record>),
    Skipped,
}

impl<R: BufRead> Records<R> {
    /// The records of `input`.
    pub fn new(input: R) -> Records<R> {
        Records { input, buffer: Vec::new(), line: 0, version: SCHEMA, warnings: Vec::new(), over: false }
    }

    /// The number of the line last read, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// What was borne so far.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Reads until there is a record; `None` at the end.
    fn read(&mut self) -> Result<Option<Record>, JournalError> {
        loop {
            self.buffer.clear();
            if self.input.read_until(b'\n', &mut self.buffer)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let whole = self.buffer.ends_with(b"\n");
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            match self.parse() {
                Ok(Parsed::Record(record)) => return Ok(Some(*record)),
                Ok(Parsed::Skipped) => {}
                Err(JournalError::Corrupt { line, .. }) if !whole => {
                    self.warnings.push(Warning::Torn { line });
                    return Ok(None);
                }
                Err(JournalError::Corrupt { line, cause }) if cause.is_eof() => {
                    return self.after_torn(line, cause).map(Some);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A line that was never finished may have another behind it that says so: the header of a later run that goes on with the
    /// file, or that lines are missing.
    fn after_torn(&mut self, line: u64, cause: serde_json::Error) -> Result<Record, JournalError> {
        self.buffer.clear();
        if self.input.read_until(b'\n', &mut self.buffer)? > 0 {
            self.line += 1;
            if let Ok(Parsed::Record(record)) = self.parse()
                && matches!(*record, Record::Header(_) | Record::Gap { .. })
            {
                self.warnings.push(Warning::Torn { line });
                return Ok(*record);
            }
        }
        self.line = line;
        Err(JournalError::Corrupt { line, cause })
    }

    fn parse(&mut self) -> Result<Parsed, JournalError> {
        let line = self.line;
        match serde_json::from_slice::<Record>(&self.buffer) {
            Ok(record) => {
                if let Record::Header(header) = &record {
                    self.meet(header.schema)?;
                }
                Ok(Parsed::Record(Box::new(record)))
            }
            Err(cause) => self.unknown(cause).map_err(|cause| match cause {
                Refused::Version(found) => JournalError::Version { line, found },
                Refused::Corrupt(cause) => JournalError::Corrupt { line, cause },
            }),
        }
    }

    /// A line that is no record of this version may be one of a newer.
    fn unknown(&mut self, cause: serde_json::Error) -> Result<Parsed, Refused> {
        if let Ok(Peek { header: Some(header) }) = serde_json::from_slice::<Peek>(&self.buffer)
            && header.schema.major != SCHEMA.major
        {
            return Err(Refused::Version(header.schema));
        }
        let valid = serde_json::from_slice::<serde::de::IgnoredAny>(&self.buffer).is_ok();
        if self.version <= SCHEMA || !valid {
            return Err(Refused::Corrupt(cause));
        }
        let unknown = self.warnings.iter_mut().find_map(|warning| match warning {
            Warning::Unknown { lines, .. } => Some(lines),
            Warning::Torn { .. } | Warning::NoEnd { .. } | Warning::Gap { .. } => None,
        });
        match unknown {
            Some(lines) => *lines += 1,
            None => self.warnings.push(Warning::Unknown { lines: 1, first: self.line }),
        }
        Ok(Parsed::Skipped)
    }

    fn meet(&mut self, found: SchemaVersion) -> Result<(), JournalError> {
        if found.major != SCHEMA.major {
            return Err(JournalError::Version { line: self.line, found });
        }
        self.version = found;
        Ok(())
    }
}

enum Refused {
    Version(SchemaVersion),
    Corrupt(serde_json::Error),
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, JournalError>;

    /// The next record; nothing comes after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.read().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Torn { line } => write!(f, "line {line} was never finished and is left out"),
            Warning::Unknown { lines, first } => {
                write!(f, "{lines} lines of a newer version are left out, the first is line {first}")
            }
            Warning::NoEnd { title, replication } => {
                write!(
                    f,
                    "replication {replication} of \"{title}\" breaks off: it is taken as interrupted at its last line"
                )
            }
            Warning::Gap { lines: Some(lines) } => write!(f, "{lines} lines are missing: figures are incomplete"),
            Warning::Gap { lines: None } => write!(f, "lines are missing: figures are incomplete"),
        }
    }
}
