//! The file of a daemon's configuration: read once, resolved for the machine it is to run on.

use std::path::{Path, PathBuf};

use super::file::{WHOLE, decoded, folder_of, parse, read};
use super::{Override, Place, SourceFile, Sources, Table};
use crate::daemon::{Daemon, FoundDevice};
use crate::decode::{Context, Empiricals};
use crate::error::{Complaint, ConfigError};
use crate::form::check_document;
use crate::sections::{self, CONFIGURATION};

/// A daemon's configuration as a document. Nothing but its syntax has been looked at.
#[derive(Clone, Debug)]
pub struct DaemonFile {
    sources: Vec<SourceFile>,
    root: Table,
    folder: PathBuf,
}

impl DaemonFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is no TOML.
    pub fn load(path: &Path) -> Result<DaemonFile, ConfigError> {
        let bytes = read(path).map_err(|wrong| ConfigError::whole("the configuration", wrong))?;
        DaemonFile::parse(&decoded(bytes, path, &mut Vec::new())?, path)
    }

    /// Reads `text` as if it stood at `origin`, which names it in messages and is where relative paths start.
    ///
    /// # Errors
    /// If it is no TOML.
    pub fn parse(text: &str, origin: &Path) -> Result<DaemonFile, ConfigError> {
        let mut sources = Vec::new();
        let root = parse(text, origin, &mut sources)?;
        Ok(DaemonFile { sources, root, folder: folder_of(origin) })
    }

    /// The configuration with `overrides` put in place one after another, for a machine that has the devices `found`: they
    /// are what is served from if the file names none, and fill in what it leaves out of those it names. Whether other
    /// files exist is not looked at.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once, as far as it can be seen.
    pub fn resolve(&self, overrides: &[Override], found: &[FoundDevice]) -> Result<Daemon, ConfigError> {
        let sources = Sources { files: &self.sources, overrides };
        let fail = |complaints: Vec<Complaint>| Err(ConfigError::of(complaints, sources));
        let root = self.overridden(overrides)?;
        let findings = check_document(&root, &CONFIGURATION, WHOLE);
        if !findings.complaints.is_empty() {
            return fail(findings.complaints);
        }
        let empiricals = Empiricals::default();
        let context = Context::new(&self.folder, &empiricals, sources);
        let daemon = sections::daemon(&root, WHOLE, &context, found);
        let complaints = context.complaints();
        if complaints.is_empty() { Ok(daemon) } else { fail(complaints) }
    }

    /// The document with `overrides` put in place one after another.
    pub(super) fn overridden(&self, overrides: &[Override]) -> Result<Table, ConfigError> {
        let mut root = self.root.clone();
        let mut complaints = Vec::new();
        for (source, one) in (self.sources.len()..).zip(overrides) {
            if let Err((message, notes)) = one.apply(&mut root, &CONFIGURATION, source) {
                complaints.push(Complaint { place: Place { source, start: 0, end: 0 }, message, notes });
            }
        }
        if complaints.is_empty() {
            return Ok(root);
        }
        Err(ConfigError::of(complaints, Sources { files: &self.sources, overrides }))
    }
}
