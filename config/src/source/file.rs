//! A scenario file: read once, resolved as often as a sweep needs it.

use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::Document;

use super::base::merge;
use super::tree::Reader;
use super::{Node, Override, Place, SourceFile, Sources, Table};
use crate::decode::{Context, Empiricals, unreadable};
use crate::error::{Complaint, ConfigError};
use crate::form::check_document;
use crate::scenario::Scenario;
use crate::sections::{self, CONFIGURATION, SCENARIO};

/// A scenario's document, laid over its base where it names one. Nothing but its syntax has been looked at.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    sources: Vec<SourceFile>,
    root: Table,
    folder: PathBuf,
    title: String,
    empiricals: Empiricals,
}

/// The whole of the scenario's own file.
const WHOLE: Place = Place { source: 0, start: 0, end: 0 };

impl ScenarioFile {
    /// Reads the file at `path`, and its base.
    pub fn load(path: &Path) -> Result<ScenarioFile, ConfigError> {
        let bytes = read(path).map_err(|wrong| ConfigError::whole("the scenario", wrong))?;
        ScenarioFile::parse(&decoded(bytes, path, &mut Vec::new())?, path)
    }

    /// Reads `text` as if it stood at `origin`, which names it in messages and is where relative paths start.
    pub fn parse(text: &str, origin: &Path) -> Result<ScenarioFile, ConfigError> {
        let mut sources = Vec::new();
        let mut root = parse(text, origin, &mut sources)?;
        let folder = origin.parent().map_or_else(PathBuf::new, Path::to_owned);
        if let Some(base) = root.get("base").and_then(Node::as_text).map(|base| folder.join(base)) {
            root = over_base(root, &base, &mut sources)?;
        }
        let title = origin.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Ok(ScenarioFile { sources, root, folder, title, empiricals: Empiricals::default() })
    }

    /// The scenario with `overrides` put in place one after another. Everything that is wrong comes back at once, as far as
    /// it can be seen.
    pub fn resolve(&self, overrides: &[Override]) -> Result<Scenario, ConfigError> {
        let sources = Sources { files: &self.sources, overrides };
        let (scenario, complaints) = self.resolved(overrides);
        match scenario {
            Some(scenario) if complaints.is_empty() => Ok(scenario),
            Some(_) | None => Err(ConfigError::of(complaints, sources)),
        }
    }

    fn resolved(&self, overrides: &[Override]) -> (Option<Scenario>, Vec<Complaint>) {
        let (root, complaints) = self.overridden(overrides);
        if !complaints.is_empty() {
            return (None, complaints);
        }
        let findings = check_document(&root, &SCENARIO, WHOLE);
        if !findings.complaints.is_empty() {
            return (None, findings.complaints);
        }
        let context = Context::new(&self.folder, &self.empiricals, Sources { files: &self.sources, overrides });
        let scenario = sections::scenario(&root, WHOLE, &context, &self.title);
        let mut complaints = context.complaints();
        complaints.extend(wrong_sweep_keys(&root));
        (scenario, complaints)
    }

    /// The keys that reading it looks at, with the names of their forms.
    #[cfg(test)]
    pub(crate) fn keys_read(&self) -> std::collections::BTreeSet<(&'static str, String)> {
        let context = Context::new(&self.folder, &self.empiricals, Sources { files: &self.sources, overrides: &[] });
        let scenario = sections::scenario(&self.root, WHOLE, &context, &self.title);
        assert!(scenario.is_some());
        context.read.into_inner()
    }

    /// The document with `overrides` put in place one after another.
    pub(super) fn overlaid(&self, overrides: &[Override]) -> Result<Table, ConfigError> {
        let (root, complaints) = self.overridden(overrides);
        if complaints.is_empty() {
            return Ok(root);
        }
        Err(ConfigError::of(complaints, Sources { files: &self.sources, overrides }))
    }

    fn overridden(&self, overrides: &[Override]) -> (Table, Vec<Complaint>) {
        let mut root = self.root.clone();
        let mut complaints = Vec::new();
        for (source, one) in (self.sources.len()..).zip(overrides) {
            if let Err((message, notes)) = one.apply(&mut root, &SCENARIO, source) {
                complaints.push(Complaint { place: Place { source, start: 0, end: 0 }, message, notes });
            }
        }
        (root, complaints)
    }
}

/// What a file holds, or the end of a sentence about who names it.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

/// The text in `bytes`. Of what is no text the first such place is shown.
fn decoded(bytes: Vec<u8>, path: &Path, sources: &mut Vec<SourceFile>) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let place = Place { source: sources.len(), start, end: start + 1 };
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        sources.push(SourceFile { name: path.display().to_string(), text });
        let complaint = Complaint { place, message: "is not UTF-8 from here on".to_owned(), notes: Vec::new() };
        ConfigError::of(vec![complaint], Sources { files: sources, overrides: &[] })
    })
}

/// Parses a file and enters it among the sources.
fn parse(text: &str, origin: &Path, sources: &mut Vec<SourceFile>) -> Result<Table, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = sources.len();
    sources.push(SourceFile { name: origin.display().to_string(), text: text.to_owned() });
    match Document::parse(text) {
        Ok(document) => Ok(Reader { source, text }.table(document.as_table())),
        Err(error) => {
            let span = error.span().unwrap_or_default();
            let place = Place { source, start: span.start, end: span.end };
            let complaint = Complaint { place, message: error.message().to_owned(), notes: Vec::new() };
            Err(ConfigError::of(vec![complaint], Sources { files: sources, overrides: &[] }))
        }
    }
}

fn over_base(root: Table, base: &Path, sources: &mut Vec<SourceFile>) -> Result<Table, ConfigError> {
    let bytes = read(base).map_err(|wrong| {
        let place = root.get("base").map_or(WHOLE, |node| node.place);
        let complaint = Complaint { place, message: format!("`base` {wrong}"), notes: Vec::new() };
        ConfigError::of(vec![complaint], Sources { files: sources, overrides: &[] })
    })?;
    let text = decoded(bytes, base, sources)?;
    let place = Place { source: sources.len(), start: 0, end: 0 };
    let under = parse(&text, base, sources)?;
    let unknown = check_document(&under, &CONFIGURATION, place).complaints;
    if !unknown.is_empty() {
        return Err(ConfigError::of(unknown, Sources { files: sources, overrides: &[] }));
    }
    Ok(merge(under, root, &SCENARIO))
}

/// Sweeps name keys as overrides do, so that is how they are tried.
fn wrong_sweep_keys(root: &Table) -> Vec<Complaint> {
    let sweeps = root.get("sweep").and_then(Node::as_list).unwrap_or_default();
    let keys = sweeps.iter().filter_map(|sweep| sweep.as_table()?.get("key"));
    let wrong = |node: &Node| {
        let one = Override::new(node.as_text()?, "1").ok()?;
        let (message, notes) = one.apply(&mut root.clone(), &SCENARIO, 0).err()?;
        Some(Complaint { place: node.place, message, notes })
    };
    keys.filter_map(wrong).collect()
}
