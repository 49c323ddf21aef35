//! Figures of a point as the readings of a knee take them.

use windtunnel_reports::{
    Report, RunFigures,
    knee::{GridPoint, Stability},
    statistics::{Confidence, spread_of_mean},
};

use super::Measured;

/// The point at its nominal total rate.
pub fn grid_point(measured: &Measured) -> GridPoint {
    let shares: Vec<f64> = measured.runs.iter().map(completed_share).collect();
    GridPoint {
        rate: measured.point.setup.open_rate(),
        completed_share: shares.iter().sum::<f64>() / shares.len().max(1) as f64,
        completed_share_half_width: spread_of_mean(&shares, Confidence::P95),
        throughput: measured.report.workload.iter().map(|(_, workload)| workload.flow.throughput.mean).sum(),
        mean_latency: mean_latency(&measured.report),
        stability: stability(&measured.report),
    }
}

/// Whether the system settles.
pub fn stability(report: &Report) -> Stability {
    if report.unstable { Stability::Unstable } else { Stability::Stable }
}

/// Completions over arrivals of the window; 1 where nothing arrived.
fn completed_share(run: &RunFigures) -> f64 {
    let tallies = (0..run.header.workloads.len()).map(|label| run.workload(label));
    let (done, offered) = tallies.fold((0, 0), |(done, offered), tally| (done + tally.done, offered + tally.offered));
    if offered == 0 { 1.0 } else { done as f64 / offered as f64 }
}

/// Over the completed requests of all workloads.
fn mean_latency(report: &Report) -> Option<f64> {
    let flows = report.workload.iter().map(|(_, workload)| &workload.flow);
    let weighed = flows.filter_map(|flow| Some((flow.latency?.mean.mean, flow.completed.mean)));
    let (sum, count) = weighed.fold((0.0, 0.0), |(sum, count), (mean, of)| (sum + mean * of, count + of));
    (count > 0.0).then_some(sum / count)
}
