//! Where a configuration comes from.

use std::path::PathBuf;

use windtunnel_config::{ConfigError, Daemon, DaemonFile, FoundDevice, Override};

/// Where a configuration comes from, and what the command line says otherwise.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: Text,
    /// Values that take the place of the file's.
    pub overrides: Vec<Override>,
}

/// The text of a configuration.
#[derive(Clone, Debug)]
pub enum Text {
    /// That of a file, which is read again when it changes.
    File(PathBuf),
    /// A text that never changes, and what it is called in messages.
    Fixed {
        /// The text.
        text: String,
        /// Its name.
        name: PathBuf,
    },
}

impl Source {
    /// Reads it, for a machine that has these devices.
    ///
    /// # Errors
    /// What is wrong with it, with places.
    pub fn resolve(&self, found: &[FoundDevice]) -> Result<Daemon, ConfigError> {
        let file = match &self.text {
            Text::File(path) => DaemonFile::load(path)?,
            Text::Fixed { text, name } => DaemonFile::parse(text, name)?,
        };
        file.resolve(&self.overrides, found)
    }

    /// The file, where it is one.
    pub fn file(&self) -> Option<&PathBuf> {
        match &self.text {
            Text::File(path) => Some(path),
            Text::Fixed { .. } => None,
        }
    }
}
