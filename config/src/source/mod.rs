//! Where text comes from: files and `--set` overrides, as trees of values that remember their places.

use std::path::PathBuf;

mod base;
mod daemon;
mod document;
mod endpoint;
mod estimate;
mod file;
mod overrides;
mod tree;

pub use daemon::DaemonFile;
pub use document::to_toml;
pub use file::ScenarioFile;
pub use overrides::Override;
pub(crate) use tree::{Entry, Node, Table, Value};

/// A stretch of one source. Sources are numbered: first the files, then the overrides of a call to `resolve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the source.
    pub source: usize,
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// As the user knows it.
    pub name: String,
    /// All of it.
    pub text: String,
    /// Where paths in it start from.
    pub folder: PathBuf,
}

/// Every source a place can point into.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// The files, from number 0.
    pub files: &'a [SourceFile],
    /// What follows them.
    pub overrides: &'a [Override],
}
