//! Reports for people and for spreadsheets: plain text under 110 columns, in ASCII, and CSV.
//!
//! Text carries no colour; whoever prints it may add some.

mod columns;
mod csv;
mod knee;
mod report;
mod sweep;
mod units;
mod whatif;

pub use csv::{report_csv, sweep_csv};
pub use report::report_table;
pub use sweep::sweep_table;
pub use whatif::whatif_table;

/// No line of a table is longer.
pub const WIDTH: usize = 110;
