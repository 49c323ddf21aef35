//! The live side of Windtunnel, where time is real and a model is a process.
//!
//! * [`gguf`] reads the headers of model files: what the file says of its architecture, and every tensor with its type
//!   and exact size. No weight is ever read.

pub mod gguf;
