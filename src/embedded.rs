//! Scenarios that are part of the program, so that the first command needs no file.

/// The knee of one card with dynamic batching; swept on 1, 2 and 4 cards.
pub const KNEE: &str = include_str!("../scenarios/knee.toml");

/// What messages call it.
pub const KNEE_NAME: &str = "scenarios/knee.toml (embedded)";
