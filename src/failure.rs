//! What can go wrong, in the words a user reads, and the exit code it means.

use std::{fmt, io, path::Path, process::ExitCode};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// What the user gave cannot be used; exit code 2.
    BadInput(String),
    /// An expectation does not hold, said already; exit code 1.
    Unmet,
    /// Whoever was asked does not answer, or refuses; exit code 1.
    NoAnswer(String),
    /// Somebody pressed Ctrl-C; exit code 130.
    Interrupted(String),
    /// Whoever read the output has gone; nothing is left to be said.
    Unread,
}

impl Failure {
    /// A file could not be read or written.
    pub fn file(what: &str, path: &Path, wrong: &io::Error) -> Failure {
        Failure::BadInput(format!("{what} {}: {wrong}", path.display()))
    }

    /// Tells the user, and gives the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::BadInput(message) => {
                anstream::eprintln!("error: {}", message.trim_end());
                ExitCode::from(2)
            }
            Failure::NoAnswer(message) => {
                anstream::eprintln!("error: {message}");
                ExitCode::from(1)
            }
            Failure::Unmet => ExitCode::from(1),
            Failure::Interrupted(message) => {
                anstream::eprintln!("interrupted: {message}");
                ExitCode::from(130)
            }
            Failure::Unread => ExitCode::SUCCESS,
        }
    }
}

impl From<windtunnel_config::ConfigError> for Failure {
    fn from(wrong: windtunnel_config::ConfigError) -> Failure {
        Failure::BadInput(wrong.to_string())
    }
}

impl From<windtunnel_sim::SimError> for Failure {
    fn from(wrong: windtunnel_sim::SimError) -> Failure {
        Failure::BadInput(wrong.to_string())
    }
}

impl From<windtunnel_reports::journal::JournalError> for Failure {
    fn from(wrong: windtunnel_reports::journal::JournalError) -> Failure {
        Failure::BadInput(wrong.to_string())
    }
}

impl From<windtunnel_live::load::LoadError> for Failure {
    fn from(wrong: windtunnel_live::load::LoadError) -> Failure {
        Failure::BadInput(wrong.to_string())
    }
}

/// Output errors: only stdout is written without naming a file.
impl From<io::Error> for Failure {
    fn from(wrong: io::Error) -> Failure {
        match wrong.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::BadInput(format!("write to stdout: {wrong}")),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::BadInput(message) | Failure::NoAnswer(message) | Failure::Interrupted(message) => {
                f.write_str(message)
            }
            Failure::Unmet => f.write_str("an expectation does not hold"),
            Failure::Unread => f.write_str("nobody reads the output"),
        }
    }
}
