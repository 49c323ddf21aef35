//! A model: one file, or the parts of a split one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    cache::HeaderCache,
    error::{Fault, GgufError},
    header::Header,
    tensor::Tensor,
    value::Value,
};

/// No model has more parts (the file names have five digits; real ones have a dozen).
const PARTS: u64 = 1024;

/// The headers of a model's files: of one, or of all parts of a split model, the first one first.
#[derive(Clone, Debug)]
pub struct Model {
    parts: Vec<Arc<Header>>,
}

impl Model {
    /// Reads the headers of the model at `path`. Of a split model that is the first part,
    /// `NAME-00001-of-0000N.gguf`; the others lie beside it.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is damaged, or the parts do not belong together.
    pub fn open(path: &Path, cache: &HeaderCache) -> Result<Model, GgufError> {
        let first = cache.header(path)?;
        let count = split_key(&first, "split.count")?.unwrap_or(1);
        if count > PARTS {
            return Err(unlike(&first, "split.count", "at most 1024"));
        }
        let mut parts = vec![first];
        if count > 1 {
            for at in 1..count {
                let part = cache.header(&sibling(&parts[0], at, count)?)?;
                belongs(&part, at, count)?;
                parts.push(part);
            }
            belongs(&parts[0], 0, count)?;
        }
        Ok(Model { parts })
    }

    /// A model of one header, however it was read.
    pub fn of(header: Header) -> Model {
        Model { parts: vec![Arc::new(header)] }
    }

    /// The first part, which says what the model is.
    pub fn header(&self) -> &Header {
        &self.parts[0]
    }

    /// The tensors of all parts.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.parts.iter().flat_map(|part| &part.tensors)
    }

    /// The tensor of this name, wherever it lies.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.parts.iter().find_map(|part| part.tensor(name))
    }

    /// The sizes of all files together, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.file_bytes))
    }

    /// How many files the model has.
    pub fn files(&self) -> usize {
        self.parts.len()
    }
}

fn split_key(header: &Header, key: &str) -> Result<Option<u64>, GgufError> {
    match header.metadata.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| unlike(header, key, "a number")),
    }
}

fn unlike(header: &Header, key: &str, right: &'static str) -> GgufError {
    let found = header.metadata.get(key).map_or_else(|| "missing".to_owned(), Value::to_string);
    GgufError::new(&header.path, 0, Fault::Key { key: key.to_owned(), found, right })
}

/// The path of part `at` (from 0) of `count`, told from the first part's name.
fn sibling(first: &Header, at: u64, count: u64) -> Result<PathBuf, GgufError> {
    let name = first.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ending = format!("-00001-of-{count:05}.gguf");
    let Some(stem) = name.strip_suffix(&ending) else {
        let text = format!("the file is one part of {count}; name the first one, whose name ends in `{ending}`");
        return Err(GgufError::new(&first.path, 0, Fault::Split(text)));
    };
    Ok(first.path.with_file_name(format!("{stem}-{:05}-of-{count:05}.gguf", at + 1)))
}

/// Complains if `part` does not say that it is part `at` (from 0) of `count`.
fn belongs(part: &Header, at: u64, count: u64) -> Result<(), GgufError> {
    let said = (split_key(part, "split.no")?, split_key(part, "split.count")?);
    if said == (Some(at), Some(count)) {
        return Ok(());
    }
    let show = |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    let text = format!(
        "the file should be part {at} (from 0) of {count} and says that it is part {} of {}; \
         are the parts of one download?",
        show(said.0),
        show(said.1)
    );
    Err(GgufError::new(&part.path, 0, Fault::Split(text)))
}
