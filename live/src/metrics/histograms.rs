//! Bounds of buckets, in seconds.

use prometheus_client::metrics::histogram::Histogram;

/// Of requests: from a hot answer to a queue of minutes.
pub(super) const TIMES: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 150.0, 300.0, 900.0];

/// Of loads.
pub(super) const LOADS: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0];

/// Of steps of the scheduler.
pub(super) const STEPS: &[f64] = &[1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 5e-3, 2.5e-2, 0.1];

pub(super) fn of(bounds: &[f64]) -> Histogram {
    Histogram::new(bounds.iter().copied())
}
