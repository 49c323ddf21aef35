//! Figures of a report over all its workloads.

use crate::report::{Distribution, Figure, FlowReport, Report};

/// A figure over all workloads. Its interval is as wide as theirs together, which is wide enough however they depend on
/// each other.
pub(super) fn summed(report: &Report, of: impl Fn(&FlowReport) -> Figure) -> Option<Figure> {
    let figures: Vec<Figure> = report.workload.iter().map(|(_, workload)| of(&workload.flow)).collect();
    let first = figures.first()?;
    let half = figures.iter().map(Figure::half).sum::<Option<f64>>();
    Some(Figure::bare(figures.iter().map(|figure| figure.mean).sum(), first.n).within(half))
}

pub(super) fn lost_share(report: &Report) -> Option<Figure> {
    let offered = summed(report, |flow| flow.offered)?.mean;
    let lost = summed(report, lost)?;
    (offered > 0.0).then(|| Figure::bare(lost.mean / offered, lost.n).within(lost.half().map(|half| half / offered)))
}

fn lost(flow: &FlowReport) -> Figure {
    let parts = [flow.rejected, flow.timed_out, flow.failed];
    let half = parts.iter().map(Figure::half).sum::<Option<f64>>();
    Figure::bare(parts.iter().map(|part| part.mean).sum(), flow.offered.n).within(half)
}

pub(super) fn lost_otherwise(report: &Report) -> f64 {
    report.workload.iter().map(|(_, workload)| workload.flow.timed_out.mean + workload.flow.failed.mean).sum()
}

/// The mean wait over the mean latency of all workloads, weighed by what they complete.
pub(super) fn waiting_share(report: &Report) -> Option<Figure> {
    let only = match report.workload.len() {
        1 => report.workload.iter().next()?.1.flow.waiting_share,
        _ => None,
    };
    let total = |of: fn(&FlowReport) -> Option<Distribution>| -> f64 {
        let part = |flow: &FlowReport| of(flow).map_or(0.0, |times| times.mean.mean * flow.completed.mean);
        report.workload.iter().map(|(_, workload)| part(&workload.flow)).sum()
    };
    let (wait, latency) = (total(|flow| flow.wait), total(|flow| flow.latency));
    only.or_else(|| (latency > 0.0).then(|| Figure::bare(wait / latency, report.run.replications)))
}
