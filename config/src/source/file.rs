//! A scenario file: read once, resolved as often as a sweep needs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::Document;

use super::base::merge;
use super::endpoint::fill_in;
use super::estimate::{give_footprints, names_model_files};
use super::tree::Reader;
use super::{Entry, Node, Override, Place, SourceFile, Sources, Table};
use crate::decode::{Context, Empiricals, unreadable};
use crate::error::{Complaint, ConfigError};
use crate::estimate::Estimator;
use crate::form::check_document;
use crate::scenario::Scenario;
use crate::sections::{self, CONFIGURATION, SCENARIO};

/// A scenario's document, laid over its base where it names one. Nothing but its syntax has been looked at.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    pub(super) sources: Vec<SourceFile>,
    root: Table,
    folder: PathBuf,
    title: String,
    empiricals: Empiricals,
    estimator: Option<Arc<dyn Estimator>>,
    /// Arguments that the base gives every model's runtime.
    standing: Vec<String>,
    served: Served,
}

/// Who serves the workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// The cards of the file.
    Here,
    /// Somebody else.
    Elsewhere,
}

/// The whole of the scenario's own file.
pub(super) const WHOLE: Place = Place { source: 0, start: 0, end: 0 };

impl ScenarioFile {
    /// Reads the file at `path`, and its base.
    pub fn load(path: &Path) -> Result<ScenarioFile, ConfigError> {
        let bytes = read(path).map_err(|wrong| ConfigError::whole("the scenario", wrong))?;
        ScenarioFile::parse(&decoded(bytes, path, &mut Vec::new())?, path)
    }

    /// The same file, which was read at `path`, over `base` in place of what its base held.
    ///
    /// # Errors
    /// If `base` is no configuration.
    pub fn over(&self, path: &Path, base: &str) -> Result<ScenarioFile, ConfigError> {
        let own = self.sources.first().map_or("", |file| &file.text);
        ScenarioFile::parse_over(own, path, Some(base))
    }

    /// Reads `text` as if it stood at `origin`, which names it in messages and is where relative paths start.
    pub fn parse(text: &str, origin: &Path) -> Result<ScenarioFile, ConfigError> {
        ScenarioFile::parse_over(text, origin, None)
    }

    fn parse_over(text: &str, origin: &Path, instead: Option<&str>) -> Result<ScenarioFile, ConfigError> {
        let mut sources = Vec::new();
        let mut root = parse(text, origin, &mut sources)?;
        let mut standing = Vec::new();
        let folder = folder_of(origin);
        if let Some(base) = root.get("base").and_then(Node::as_text).map(|base| folder.join(base)) {
            (root, standing) = over_base(root, &base, instead, &mut sources)?;
        }
        let title = origin.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let empiricals = Empiricals::default();
        Ok(ScenarioFile { sources, root, folder, title, empiricals, estimator: None, standing, served: Served::Here })
    }

    /// The same, with somebody who tells the memory of models from their files (`gguf`).
    pub fn with_estimator(self, estimator: Arc<dyn Estimator>) -> ScenarioFile {
        ScenarioFile { estimator: Some(estimator), ..self }
    }

    /// Where its base lies, if it has one.
    pub fn base(&self) -> Option<PathBuf> {
        Some(self.folder.join(self.root.get("base")?.as_text()?))
    }

    /// Whether it leaves out what a simulation cannot do without and a daemon finds out: devices, or the service of a model.
    pub fn lacks_cards(&self) -> bool {
        let models = self.root.get("models").and_then(Node::as_table);
        let mut models = models.into_iter().flat_map(|models| &models.entries).filter_map(|one| one.node.as_table());
        let no_devices = self.root.get("devices").and_then(Node::as_list).is_none_or(<[Node]>::is_empty);
        no_devices || models.any(|model| !says_service(model))
    }

    /// The same for workloads that somebody else serves: cards, models and services that it does not have are filled in, and
    /// none of what it says of them means anything.
    pub fn served_elsewhere(self) -> ScenarioFile {
        ScenarioFile { served: Served::Elsewhere, ..self }
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
        let (root, mut complaints) = self.estimated(root, overrides);
        let context = Context::new(&self.folder, &self.empiricals, Sources { files: &self.sources, overrides });
        let scenario = sections::scenario(&root, WHOLE, &context, &self.title);
        complaints.extend(context.complaints());
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

    /// The keys of its first level, those of its base included.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.root.entries.iter().map(|entry| entry.key.as_str())
    }

    /// The document with `overrides` put in place one after another.
    pub(super) fn overlaid(&self, overrides: &[Override]) -> Result<Table, ConfigError> {
        let (root, complaints) = self.overridden(overrides);
        let (root, complaints) =
            if complaints.is_empty() { self.estimated(root, overrides) } else { (root, complaints) };
        if complaints.is_empty() {
            return Ok(root);
        }
        Err(ConfigError::of(complaints, Sources { files: &self.sources, overrides }))
    }

    /// The document with a footprint for every model that names its file and none, and what is wrong with those files.
    fn estimated(&self, mut root: Table, overrides: &[Override]) -> (Table, Vec<Complaint>) {
        if !names_model_files(&root) {
            return (root, Vec::new());
        }
        let context = Context::new(&self.folder, &self.empiricals, Sources { files: &self.sources, overrides });
        let estimator = self.estimator.as_deref();
        let estimates = sections::estimated(&root, WHOLE, &context, estimator, &self.standing);
        give_footprints(&mut root, estimates);
        (root, context.complaints())
    }

    fn overridden(&self, overrides: &[Override]) -> (Table, Vec<Complaint>) {
        let mut root = self.root.clone();
        let mut complaints = Vec::new();
        for (source, one) in (self.sources.len()..).zip(overrides) {
            if let Err((message, notes)) = one.apply(&mut root, &SCENARIO, source) {
                complaints.push(Complaint { place: Place { source, start: 0, end: 0 }, message, notes });
            }
        }
        if self.served == Served::Elsewhere {
            fill_in(&mut root);
        }
        (root, complaints)
    }
}

/// Whether a model has a service, everywhere or on some device.
pub(super) fn says_service(model: &Table) -> bool {
    let on = model.get("on").and_then(Node::as_table).map(|on| on.entries.as_slice()).unwrap_or_default();
    let there = |entry: &Entry| entry.node.as_table().is_some_and(|on| on.get("service").is_some());
    model.get("service").is_some() || on.iter().any(there)
}

/// Where relative paths in a file start from.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// What a file holds, or the end of a sentence about who names it.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| unreadable(path, &error))
}

/// The text in `bytes`. Of what is no text the first such place is shown.
pub(super) fn decoded(bytes: Vec<u8>, path: &Path, sources: &mut Vec<SourceFile>) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let place = Place { source: sources.len(), start, end: start + 1 };
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        sources.push(SourceFile { name: path.display().to_string(), text, folder: folder_of(path) });
        let complaint = Complaint { place, message: "is not UTF-8 from here on".to_owned(), notes: Vec::new() };
        ConfigError::of(vec![complaint], Sources { files: sources, overrides: &[] })
    })
}

/// Parses a file and enters it among the sources.
pub(super) fn parse(text: &str, origin: &Path, sources: &mut Vec<SourceFile>) -> Result<Table, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source = sources.len();
    sources.push(SourceFile { name: origin.display().to_string(), text: text.to_owned(), folder: folder_of(origin) });
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

/// The document laid over its base, and the arguments that the base gives every model's runtime. How a daemon listens and
/// whom it serves is checked and nothing to a scenario.
fn over_base(
    root: Table,
    base: &Path,
    instead: Option<&str>,
    sources: &mut Vec<SourceFile>,
) -> Result<(Table, Vec<String>), ConfigError> {
    let text = match instead {
        Some(text) => text.to_owned(),
        None => {
            let bytes = read(base).map_err(|wrong| {
                let place = root.get("base").map_or(WHOLE, |node| node.place);
                let complaint = Complaint { place, message: format!("`base` {wrong}"), notes: Vec::new() };
                ConfigError::of(vec![complaint], Sources { files: sources, overrides: &[] })
            })?;
            decoded(bytes, base, sources)?
        }
    };
    let place = Place { source: sources.len(), start: 0, end: 0 };
    let mut under = parse(&text, base, sources)?;
    let unknown = check_document(&under, &CONFIGURATION, place).complaints;
    if !unknown.is_empty() {
        return Err(ConfigError::of(unknown, Sources { files: sources, overrides: &[] }));
    }
    let (folder, empiricals) = (folder_of(base), Empiricals::default());
    let context = Context::new(&folder, &empiricals, Sources { files: sources, overrides: &[] });
    let standing = sections::standing_arguments(&under, place, &context);
    under.entries.retain(|entry| SCENARIO.key(&entry.key).is_some());
    Ok((merge(under, root, &SCENARIO), standing))
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
