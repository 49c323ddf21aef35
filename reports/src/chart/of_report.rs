//! The pictures of one setting: how its latencies are distributed, how its queue went, how its batches were.

use super::canvas::ChartError;
use super::data::{Axis, BarChart, BarSeries, CurveChart, CurvePoint, Look, Mark, Picture, Series, Spacing, Unit};
use super::scale::written;
use crate::report::{ModelReport, Report, SeriesReport};

/// Quantiles that are marked in a distribution.
const MARKED: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.01)];

/// All pictures of a report for which it has figures.
///
/// # Errors
/// When the drawing library fails.
pub fn report_charts(report: &Report) -> Result<Vec<Picture>, ChartError> {
    let mut pictures = Vec::new();
    if let Some(chart) = distribution(report) {
        pictures.push(chart.picture("distribution.svg")?);
    }
    if let Some(chart) = report.run.series.as_ref().and_then(|series| queue(report, series)) {
        pictures.push(chart.picture("queue.svg")?);
    }
    let batching = report.model.iter().filter(|(_, model)| model.batch_sizes.iter().any(|one| one.size > 1));
    for (name, model) in batching {
        pictures.push(batches(report, name, model).picture(&format!("batches-{}.svg", file_part(name)))?);
    }
    Ok(pictures)
}

/// The share of requests that took longer, against how long: the tail is where one looks.
fn distribution(report: &Report) -> Option<CurveChart> {
    let curves = report.workload.iter().filter(|(_, workload)| workload.latency_curve.len() > 1);
    let series: Vec<Series> = curves
        .map(|(name, workload)| {
            let slower = workload.latency_curve.iter().map(|[share, time]| CurvePoint::plain(*time, 1.0 - share));
            let shown = slower.filter(|point| point.x > 0.0 && point.mean > 1e-9);
            Series { name: name.to_owned(), points: shown.collect(), unsettled: Vec::new(), look: Look::Line }
        })
        .filter(|series| series.points.len() > 1)
        .collect();
    let of = match series.as_slice() {
        [only] => format!("How latencies of {} are distributed", only.name),
        _ => "How latencies are distributed".to_owned(),
    };
    (!series.is_empty()).then(|| CurveChart {
        title: of,
        subtitle: circumstances(report),
        x: axis("latency of completed requests", Unit::Seconds, Spacing::Logarithmic),
        y: axis("share of requests that took longer", Unit::Share, Spacing::Logarithmic),
        series,
        verticals: Vec::new(),
        verticals_are: None,
        horizontals: MARKED.map(|(name, share)| Mark::exact(share, name)).to_vec(),
        diagonal: None,
    })
}

fn queue(report: &Report, series: &SeriesReport) -> Option<CurveChart> {
    let curve = |name: &str, values: &[f64]| {
        let points = series.time.iter().zip(values).map(|(time, value)| CurvePoint::plain(*time, *value));
        Series { name: name.to_owned(), points: points.collect(), unsettled: Vec::new(), look: Look::Line }
    };
    let cut = report.run.warmup.cut.mean;
    (series.time.len() > 1).then(|| CurveChart {
        title: "Requests in the system and waiting, over time".to_owned(),
        subtitle: format!("{}; first replication", circumstances(report)),
        x: axis("time since the run began", Unit::Seconds, Spacing::Linear),
        y: axis("requests, mean over each stretch", Unit::Number, Spacing::Linear),
        series: vec![curve("in the system", &series.in_system), curve("waiting", &series.queue)],
        verticals: (cut > 0.0).then(|| Mark::exact(cut, "warm-up ends")).into_iter().collect(),
        verticals_are: None,
        horizontals: Vec::new(),
        diagonal: None,
    })
}

/// Batches counted by batches and by requests: what a card does is not what a request sees.
fn batches(report: &Report, name: &str, model: &ModelReport) -> BarChart {
    let all: f64 = model.batch_sizes.iter().map(|one| one.count as f64).sum();
    let inputs: f64 = model.batch_sizes.iter().map(|one| one.count as f64 * f64::from(one.size)).sum();
    let sizes = || model.batch_sizes.iter().map(|one| (f64::from(one.size), one.count as f64));
    let means = match (model.mean_batch, model.mean_batch_seen) {
        (Some(mean), Some(seen)) => {
            format!("; mean {:.2}, mean that an input finds itself in {:.2}", mean.mean, seen.mean)
        }
        (Some(_), None) | (None, _) => String::new(),
    };
    BarChart {
        title: format!("Batch sizes of {name}"),
        subtitle: format!("{}{means}", circumstances(report)),
        x: axis("inputs in the batch", Unit::Number, Spacing::Linear),
        y: axis("share", Unit::Share, Spacing::Linear),
        series: vec![
            BarSeries {
                name: "of batches".to_owned(),
                bars: sizes().map(|(size, count)| (size, count / all)).collect(),
            },
            BarSeries {
                name: "of inputs, by the batch they are in".to_owned(),
                bars: sizes().map(|(size, count)| (size, count * size / inputs)).collect(),
            },
        ],
        verticals: Vec::new(),
    }
}

/// What the figures stand on, in a line.
fn circumstances(report: &Report) -> String {
    let offered: f64 = report.workload.iter().map(|(_, workload)| workload.flow.offered_rate.mean).sum();
    let settled = if report.unstable { "; unstable, so these are figures of the horizon" } else { "" };
    format!(
        "{}; {} requests/s offered, {}{settled}",
        report.title,
        written(offered, Unit::Number, offered),
        runs(report)
    )
}

/// How many replications of which length.
pub(super) fn runs(report: &Report) -> String {
    let run = &report.run;
    let each = match run.jobs {
        Some(jobs) if run.horizon.is_none() => format!("{} requests", written(jobs as f64, Unit::Number, jobs as f64)),
        Some(_) | None => written(run.duration.mean, Unit::Seconds, run.duration.mean),
    };
    match run.replications {
        1 => format!("1 run of {each}"),
        several => format!("{several} replications of {each}"),
    }
}

pub(super) fn axis(label: &str, unit: Unit, spacing: Spacing) -> Axis {
    Axis { label: label.to_owned(), unit, spacing }
}

/// A name as a part of a file's name.
pub(super) fn file_part(name: &str) -> String {
    name.chars().map(|letter| if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '-' }).collect()
}
