//! Headers of GGUF files: metadata and tensor descriptions, never the weights.
//!
//! A GGUF file is a magic word, a version, two counts, then so many pairs of key and value, then so many tensor
//! descriptions, then padding, then the weights. All versions (1 to 3) and both byte orders are read. What a file says
//! is not believed: every length is compared with the bytes the file still has before anything is allocated, counts and
//! nesting have limits, and no tensor may reach beyond the end of its file.
//!
//! Arrays of tokens and merges make up most of a header (megabytes) and say nothing about memory, so they are stepped
//! over; only their length is kept.
//!
//! Why a reader of our own: the crates that exist for this map or load the whole file, keep each token as a string of
//! its own, or lack tensor types that current models use; and none names the byte of the file at which it stopped.
//! The format: `docs/gguf.md` of the ggml project.

mod cache;
mod error;
mod header;
mod model;
mod source;
mod tensor;
mod value;

pub use cache::HeaderCache;
pub use error::{Fault, GgufError};
pub use header::Header;
pub use model::Model;
pub use tensor::{Tensor, TensorType};
pub use value::{List, Value};
