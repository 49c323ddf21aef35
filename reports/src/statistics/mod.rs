//! What can be said of figures from independent replications, and what cannot.

mod bootstrap;
mod interval;
mod mser;
mod paired;
mod stability;
mod trend;

pub use bootstrap::{Pair, quantile_difference};
pub use interval::{Confidence, Interval, interval_of_mean, spread_of_mean, student_quantile};
pub use mser::mser_cut;
pub use paired::{Difference, paired_difference};
pub use stability::{Growth, Stability, growth, judge, workload_growth};
pub use trend::{Trend, trend};
