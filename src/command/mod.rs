//! The subcommands, one a file.

pub mod bench;
pub mod check;
pub mod config;
pub mod events;
pub mod fuzz;
pub mod load;
pub mod models;
pub mod profiles;
pub mod replay;
pub mod report;
pub mod schema;
pub mod selftest;
pub mod serve;
pub mod sim;
pub mod status;
pub mod sweep;
pub mod test;
pub mod whatif;
