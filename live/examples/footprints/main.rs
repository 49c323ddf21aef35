//! Compares estimates with what a real `llama-server` reports, and prints the tables of `docs/FOOTPRINTS.md`.
//!
//! ```text
//! cargo run --release -p windtunnel-live --example footprints -- SERVER MODEL...
//! ```
//!
//! Each model is loaded over a grid of contexts, slots, cache types and `-ngl`, without a device and, if the server
//! lists one, on the first device; the sizes are those that the server prints. Models that would not fit are files
//! with a header only, for which the server prints what it would take (`--fit`).

mod compare;
mod grid;
mod server;

#[path = "../../tests/fixtures/mod.rs"]
mod fixtures;

use std::{env, error::Error, path::PathBuf};

use compare::{Comparison, table};
use server::Server;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = env::args_os().skip(1).map(PathBuf::from);
    let program = paths.next().ok_or("the path of a llama-server is missing, then those of models")?;
    let server = Server::new(program)?;
    println!("Measured with {}, device: {}.\n", server.version, server.device_name());
    for model in paths {
        let name = model.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let comparisons = grid::loads(&server, &model)?;
        println!("## {name}\n\n{}", table(&comparisons));
    }
    println!("## Layouts of larger models and other architectures\n\n{}", table(&grid::layouts(&server)?));
    Ok(())
}

/// What went wrong with one run, which the table shows.
type Outcome = Result<Comparison, Box<dyn Error>>;
