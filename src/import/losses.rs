//! What a file says that a configuration here cannot say.

use std::fmt;

/// Where a setting stands in the file that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// Its dotted name.
    pub key: String,
}

/// A setting that was not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where it stands, from 1.
    pub line: usize,
    /// Its dotted name.
    pub key: String,
    /// Why, and what takes its place: the rest of a sentence.
    pub why: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.key, self.why)
    }
}

/// All of them, in the order of the file.
#[derive(Debug, Default)]
pub struct Losses {
    all: Vec<Loss>,
}

impl Losses {
    pub fn add(&mut self, line: usize, key: impl Into<String>, why: impl Into<String>) {
        self.all.push(Loss { line, key: key.into(), why: why.into() });
    }

    pub fn sorted(mut self) -> Vec<Loss> {
        self.all.sort_by_key(|loss| loss.line);
        self.all
    }
}
