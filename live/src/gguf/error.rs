//! What is wrong with a model file, where, and what would be right.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why a model file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: byte {offset}: {fault}", path.display())]
pub struct GgufError {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes from its start.
    pub offset: u64,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong at a place of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The operating system refused to open or read the file.
    #[error("the file cannot be read: {0}")]
    Io(String),
    /// The file does not begin with the four letters `GGUF`.
    #[error("the file begins with {0}, not with \"GGUF\": it is not a model in GGUF form")]
    Magic(Found),
    /// A version that is not known.
    #[error("GGUF version {0} is not known; versions 1 to 3 are")]
    Version(u32),
    /// The file ends before its header does, or before its weights do.
    #[error("{what} needs {wanted} bytes, and the file ends after {left}: is its download complete?")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// How many bytes it needs.
        wanted: u64,
        /// How many bytes are left.
        left: u64,
    },
    /// A number beyond its limit.
    #[error("{what} is {found}, at most {limit} is believed: the file is damaged")]
    TooLarge {
        /// What the number says.
        what: &'static str,
        /// The number.
        found: u64,
        /// The largest that is accepted.
        limit: u64,
    },
    /// A value type that the format does not have.
    #[error("value type {0} does not exist; 0 to 12 do")]
    ValueType(u32),
    /// A tensor type that is not known.
    #[error("tensor `{tensor}` has type {found}, whose size is not known; a newer windtunnel may know it")]
    TensorType {
        /// The tensor's name.
        tensor: String,
        /// The type's number.
        found: u32,
    },
    /// A tensor whose rows are not whole blocks of its type.
    #[error("tensor `{tensor}` has rows of {row} elements, which is no multiple of {block}, the block of its type")]
    Row {
        /// The tensor's name.
        tensor: String,
        /// Elements of a row.
        row: u64,
        /// Elements of a block.
        block: u64,
    },
    /// Text that is not UTF-8.
    #[error("{0} is not UTF-8 text")]
    Text(&'static str),
    /// A key or a tensor that occurs twice.
    #[error("`{0}` occurs twice")]
    Twice(String),
    /// A key whose value makes no sense.
    #[error("`{key}` is {found}, and should be {right}")]
    Key {
        /// The key.
        key: String,
        /// What it says.
        found: String,
        /// What it may say.
        right: &'static str,
    },
    /// A part of a split model that does not belong where it is.
    #[error("{0}")]
    Split(String),
}

/// The first bytes of a file, shown so that a person can tell what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found(pub [u8; 4]);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl GgufError {
    pub(super) fn io(path: &Path, offset: u64, wrong: &io::Error) -> GgufError {
        GgufError { path: path.to_owned(), offset, fault: Fault::Io(wrong.to_string()) }
    }

    pub(super) fn new(path: &Path, offset: u64, fault: Fault) -> GgufError {
        GgufError { path: path.to_owned(), offset, fault }
    }
}
