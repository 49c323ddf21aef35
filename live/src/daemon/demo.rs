//! Configurations that nobody has to write: of a simulated card, and of the model files that lie on this machine.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{gguf::Header, places};

/// What `serve --simulated` serves.
pub const SIMULATED: &str = include_str!("simulated.toml");

/// Folders below one where models are looked for are followed so deep.
const DEPTH: usize = 6;
/// The most model files that a demonstration serves.
const MOST: usize = 8;

/// A demonstration cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    /// No runtime.
    #[error("no llama-server was found on PATH; name one with --llama-server, or try --simulated, which needs none")]
    NoRuntime,
    /// No model.
    #[error(
        "no model file was found in {looked}; name one with --model FILE.gguf, or try --simulated, which needs none"
    )]
    NoModel {
        /// Where they were looked for.
        looked: String,
    },
    /// A file that was named is no model.
    #[error("{}: {wrong}", .path.display())]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        wrong: String,
    },
}

/// The configuration of a demonstration: every model file that was named, or else those that are found where programs for
/// local models keep them, served by `runtime`, or by the `llama-server` on PATH.
///
/// # Errors
/// If there is no runtime or no model.
pub fn demo(models: &[PathBuf], runtime: Option<&Path>) -> Result<String, DemoError> {
    let runtime = match runtime {
        Some(path) => path.to_owned(),
        None => places::program(Path::new("llama-server")).ok_or(DemoError::NoRuntime)?,
    };
    let named = !models.is_empty();
    let files = if named { models.to_vec() } else { found() };
    let mut text = format!("[server]\nllama_server = {}\n", quoted(&runtime.to_string_lossy()));
    let mut names = BTreeSet::new();
    for path in &files {
        match Header::open(path) {
            Ok(header) => text += &section(path, &header, &mut names),
            Err(wrong) if named => return Err(DemoError::NotAModel { path: path.clone(), wrong: wrong.to_string() }),
            Err(_) => {}
        }
    }
    if names.is_empty() {
        let looked = folders().iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(DemoError::NoModel { looked });
    }
    Ok(text)
}

/// The section of a model. A context of 8192 tokens for two slots is enough to try things out and fits most machines.
fn section(path: &Path, header: &Header, names: &mut BTreeSet<String>) -> String {
    let stem = path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().to_lowercase());
    let plain: String = stem.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
    let mut name = plain.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{plain}-{number}");
        number += 1;
    }
    let path = quoted(&path.to_string_lossy());
    // Models that are made for vectors say how they pool those of single tokens.
    let rest = if header.of_architecture("pooling_type").is_some() {
        "capabilities = [\"embedding\"]\nbatch = { max = 32 }\nargs = [\"--embedding\"]\n"
    } else {
        "slots = 2\nctx = 8192\n"
    };
    format!("\n[models.{name}]\ngguf = {path}\n{rest}")
}

/// Text as TOML has it between quotes; what JSON escapes, TOML escapes in the same way.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Where programs for local models keep them.
fn folders() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("models")];
    if let Some(home) = std::env::home_dir() {
        let usual =
            ["models", ".cache/llama.cpp", ".lmstudio/models", ".cache/huggingface/hub", "Library/Caches/llama.cpp"];
        folders.extend(usual.iter().map(|folder| home.join(folder)));
    }
    folders
}

fn found() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders() {
        collect(&folder, DEPTH, &mut files);
    }
    files.sort();
    files.truncate(MOST);
    files
}

/// Model files below a folder: no projectors, and of a file in parts the first.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() && depth > 0 {
            collect(&path, depth - 1, files);
        } else if path.extension().is_some_and(|one| one.eq_ignore_ascii_case("gguf")) && is_whole_or_first(&path) {
            files.push(path);
        }
    }
}

fn is_whole_or_first(path: &Path) -> bool {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    let part = name.contains("-of-") && !name.contains("-00001-of-");
    !name.contains("mmproj") && !part
}
