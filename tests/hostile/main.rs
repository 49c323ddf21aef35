//! What comes from outside, damaged: states, scenarios, journals and traces are changed at random and read. Nothing may
//! panic, go on for ever or take memory without bounds, and whatever is refused says where.
//!
//! `WINDTUNNEL_CASES=1000000 cargo test --release --test hostile` tries more, `WINDTUNNEL_SEED=7` other ones.

mod checkpoints;
mod dice;
mod hunt;
mod journals;
mod scenarios;
mod text;
mod traces;
mod tree;
