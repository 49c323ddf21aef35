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

    /// Whether a configuration that was read from here is one to serve by: a file that an editor has emptied for a moment, or
    /// that was lost, would take every model away.
    ///
    /// # Errors
    /// If it names no model.
    pub fn check(&self, daemon: &Daemon) -> Result<(), String> {
        if !daemon.configuration.models.is_empty() {
            return Ok(());
        }
        let name = match &self.text {
            Text::File(name) | Text::Fixed { name, .. } => name,
        };
        Err(format!("{}: it names no model; at least one `[models.NAME]` is wanted", name.display()))
    }

    /// The file, where it is one.
    pub fn file(&self) -> Option<&PathBuf> {
        match &self.text {
            Text::File(path) => Some(path),
            Text::Fixed { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_file_is_refused_by_name() {
        let name = PathBuf::from("windtunnel.toml");
        let source = |text: &str| Source {
            text: Text::Fixed { text: text.to_owned(), name: name.clone() },
            overrides: Vec::new(),
        };
        let said = |text: &str| {
            let source = source(text);
            source.resolve(&[]).map_err(|wrong| wrong.to_string()).and_then(|daemon| source.check(&daemon))
        };
        let wrong = said("[[devices]]\nname = \"cpu\"\nbackend = \"cpu\"\n").unwrap_err();
        assert!(wrong.starts_with("windtunnel.toml: ") && wrong.contains("[models.NAME]"), "{wrong}");
        assert_eq!(said(crate::daemon::demo::SIMULATED), Ok(()));
    }
}
