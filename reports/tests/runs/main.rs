//! Whole runs of the real scheduler on a small simulated card, through journals, metrics, reports and tables.

mod journals;
mod quantiles;
mod small;
mod steady;
mod tables;
mod torn;
