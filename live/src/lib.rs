//! The live side of Windtunnel, where time is real and a model is a process.
//!
//! * [`gguf`] reads the headers of model files: what the file says of its architecture, and every tensor with its type
//!   and exact size. No weight is ever read.
//! * [`footprint`] says from headers and the arguments of a `llama-server` how much memory the process will take, on
//!   the device and on the host, row by row, before anything is started.
//!
//! An estimate is needed once per model, before its first load; afterwards the measurement replaces it.

pub mod footprint;
pub mod gguf;
