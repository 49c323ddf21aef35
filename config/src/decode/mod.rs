//! From a checked document to values: units, decimals, and sections that read their keys.

mod context;
mod decimal;
mod section;
pub(crate) mod units;

pub(crate) use context::{Context, Empiricals, unreadable};
pub(crate) use section::Section;
pub use units::parse_span;
