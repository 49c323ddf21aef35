//! Journals in, figures and pictures out: metrics, statistics, knees, tables and charts.
//!
//! Data walks one way: records -> [`metrics`] of one run -> [`report`] over replications, with what [`statistics`] allows to
//! be said -> [`table`] and pictures. Whoever drives the scheduler hands its records to a [`Recorder`]; whether that is a
//! journal on disk or metrics in memory makes no difference to the figures.
//!
//! This crate knows neither a clock nor a process.

pub mod chart;
pub mod journal;
pub mod knee;
pub mod metrics;
mod recorder;
pub mod report;
pub mod statistics;
pub mod table;
pub mod whatif;

pub use metrics::{RunFigures, RunMetrics};
pub use recorder::{NoRecord, Recorder, Tee};
pub use report::{Figure, Report};
