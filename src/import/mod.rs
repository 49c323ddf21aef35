//! Configurations of other programs, rewritten as one of ours.
//!
//! ```text
//! YAML -> tree with lines (yaml) -> what a program's keys mean (llama_swap, gridcore) -> sections with comments (draft) -> TOML
//!                                                     |
//!                                                     v
//!                              what has no counterpart, with its line and why (losses)
//! ```
//!
//! Nothing is dropped without a word: whatever a reader did not ask for is a loss. What is written is read by our own parser
//! before anybody gets it.

mod command_line;
mod draft;
mod duration;
mod gridcore;
mod llama_swap;
mod losses;
mod names;
mod section;
mod yaml;

use std::path::Path;

use windtunnel_config::DaemonFile;

pub use self::losses::Loss;
use self::{
    draft::Written,
    losses::{Losses, Place},
};
use crate::inventory;

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    GridCore,
    LlamaSwap,
}

/// The variables of the environment.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A configuration of ours.
#[derive(Debug)]
pub struct Imported {
    pub text: String,
    pub losses: Vec<Loss>,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::GridCore => "GridCore",
            Origin::LlamaSwap => "llama-swap",
        }
    }
}

/// Rewrites `text`, which stands in `file`. An error is the end of a sentence that begins with the file's name.
pub fn import(origin: Origin, text: &str, file: &str, environment: &Environment<'_>) -> Result<Imported, String> {
    let root = yaml::parse(text).map_err(|wrong| wrong.to_string())?;
    if !matches!(root.value, yaml::Value::Map(_)) {
        return Err(format!("line {}: has to be a mapping of settings, found {}", root.line, root.kind()));
    }
    let mut losses = Losses::default();
    let draft = match origin {
        Origin::GridCore => gridcore::read(&root, environment, &mut losses),
        Origin::LlamaSwap => llama_swap::read(&root, environment, &mut losses),
    };
    let losses = losses.sorted();
    let written = draft.written(&head(origin, file, &losses));
    proved(&written, file)?;
    Ok(Imported { text: written.text, losses })
}

fn head(origin: Origin, file: &str, losses: &[Loss]) -> Vec<String> {
    let mut head = vec![
        format!("Windtunnel's configuration, made from {file} of {}.", origin.name()),
        "Devices are found; `windtunnel check` says what fits. docs/CONFIGURATION.md lists every key.".to_owned(),
    ];
    if !losses.is_empty() {
        head.extend([String::new(), "Not taken over, with the line there:".to_owned()]);
        head.extend(losses.iter().map(|loss| format!("{:>5}  {loss}", loss.line)));
    }
    head
}

/// What is written has to be a configuration. What is wrong with it is told by the keys and lines that it was read from.
fn proved(written: &Written, file: &str) -> Result<(), String> {
    let read = DaemonFile::parse(&written.text, Path::new("imported"));
    let read = read.and_then(|file| file.resolve(&[], &[inventory::no_device()]));
    let Err(wrong) = read else { return Ok(()) };
    let told =
        wrong.problems().iter().map(|problem| match problem.position.and_then(|(line, _)| written.place(line)) {
            Some(Place { line, key }) => format!("line {line}: `{key}` cannot be taken over: {}", problem.message),
            None => format!("says something that our configuration cannot: {problem}"),
        });
    Err(told.collect::<Vec<_>>().join(&format!("\n{file}: ")))
}

#[cfg(test)]
mod tests;
