//! What is done with configurations.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub task: ConfigTask,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum ConfigTask {
    /// Rewrite the configuration of another program as one of ours.
    Import(ImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel config import llama-swap config.yaml
  windtunnel config import gridcore ~/.config/gridcore/config.yaml --output windtunnel.toml
  windtunnel check windtunnel.toml

What has no counterpart is listed on stderr with its line and why. Relative paths are kept: they start where the written file
lies. Exit codes: 0 written, 2 it cannot be read or written.")]
pub struct ImportArgs {
    /// Whose configuration it is.
    #[arg(value_enum)]
    pub from: ImportFrom,
    /// The configuration; - for stdin.
    pub file: PathBuf,
    /// Write it here instead of on stdout (-); readable by this user only, since it may hold keys.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace a file that is there.
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Whose configuration is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFrom {
    #[value(name = "gridcore")]
    GridCore,
    LlamaSwap,
}
