//! The pictures of a sweep: what becomes of a system as the load rises, or as another setting changes.

use super::canvas::ChartError;
use super::data::{CurveChart, CurvePoint, Look, Mark, Picture, Series, Spacing, Unit};
use super::of_report::{axis, file_part, runs};
use super::scale::written;
use super::systems::{Across, System, View};
use super::totals::{lost_otherwise, lost_share, summed, waiting_share};
use crate::knee::{Limit, TargetKnee};
use crate::report::{Distribution, Figure, Report, SweepReport};

/// More marks than these would hide the picture.
const MOST_MARKS: usize = 6;

/// All pictures of a sweep for which it has figures; none when fewer than two points lie on its axis.
///
/// # Errors
/// When the drawing library fails.
pub fn sweep_charts(sweep: &SweepReport) -> Result<Vec<Picture>, ChartError> {
    let Some(view) = View::of(sweep) else {
        return Ok(Vec::new());
    };
    let mut pictures = vec![view.throughput().picture("throughput.svg")?];
    pictures.push(view.refusals().picture("refusals.svg")?);
    let workloads = view.workloads();
    for name in &workloads {
        let suffix = if workloads.len() > 1 { format!("-{}", file_part(name)) } else { String::new() };
        for (file, chart) in view.latencies(name, workloads.len() > 1) {
            pictures.push(chart.picture(&format!("{file}{suffix}.svg"))?);
        }
    }
    pictures.push(view.waiting().picture("waiting.svg")?);
    for name in view.batching_models() {
        pictures.push(view.mean_batches(&name).picture(&format!("batch-{}.svg", file_part(&name)))?);
    }
    Ok(pictures)
}

/// Which quantile of a latency.
#[derive(Clone, Copy)]
struct Quantile {
    name: &'static str,
    of: fn(&Distribution) -> Figure,
}

const P50: Quantile = Quantile { name: "p50", of: |latency| latency.p50 };
const P99: Quantile = Quantile { name: "p99", of: |latency| latency.p99 };

impl View<'_> {
    fn throughput(&self) -> CurveChart {
        let mut chart = self.chart("What is completed", "completed (requests/s)", Unit::Number, Spacing::Linear);
        chart.series = self.curves(|report| summed(report, |flow| flow.throughput));
        chart.diagonal = matches!(self.across, Across::Rate).then(|| "all that is offered".to_owned());
        chart.horizontals = self.capacities();
        chart
    }

    fn refusals(&self) -> CurveChart {
        let others = self.reports().any(|report| lost_otherwise(report) > 0.0);
        let (title, label) = if others {
            ("What is refused, times out or fails", "refused, timed out or failed, of those offered")
        } else {
            ("What is refused", "refused, of those offered")
        };
        let mut chart = self.chart(title, label, Unit::Share, Spacing::Linear);
        chart.series = self.curves(lost_share);
        chart
    }

    /// Both quantiles in one picture, or one picture each where there are several systems.
    fn latencies(&self, workload: &str, named: bool) -> Vec<(&'static str, CurveChart)> {
        let of = if named { format!(" of {workload}") } else { String::new() };
        let picture = |title: String, quantiles: &[Quantile]| {
            let mut chart = self.chart(&title, "latency of completed requests", Unit::Seconds, Spacing::Logarithmic);
            chart.series =
                quantiles.iter().flat_map(|quantile| self.quantile_curves(workload, *quantile, quantiles)).collect();
            chart.horizontals = self.targets(quantiles);
            chart
        };
        if self.systems.len() == 1 {
            return vec![("latency", picture(format!("Median and p99 latency{of}"), &[P50, P99]))];
        }
        vec![
            ("p50", picture(format!("Median latency{of}"), &[P50])),
            ("p99", picture(format!("p99 latency{of}"), &[P99])),
        ]
    }

    fn quantile_curves(&self, workload: &str, quantile: Quantile, shown: &[Quantile]) -> Vec<Series> {
        let value = |report: &Report| {
            let latency = report.workload.get(workload)?.flow.latency.as_ref()?;
            Some((quantile.of)(latency))
        };
        let mut curves = self.settled_curves(value);
        if shown.len() > 1 {
            curves.iter_mut().for_each(|curve| quantile.name.clone_into(&mut curve.name));
        }
        curves
    }

    /// The passage from a system that computes to one that waits.
    fn waiting(&self) -> CurveChart {
        let mut chart =
            self.chart("How much of latency is waiting", "mean wait, of mean latency", Unit::Share, Spacing::Linear);
        chart.series = self.settled_curves(waiting_share);
        chart
    }

    fn mean_batches(&self, model: &str) -> CurveChart {
        let title = format!("Mean batch of {model}");
        let mut chart = self.chart(&title, "inputs in a batch", Unit::Number, Spacing::Linear);
        chart.series = self.curves(|report| report.model.get(model)?.mean_batch);
        if self.systems.len() == 1 {
            let seen = self.curves(|report| report.model.get(model)?.mean_batch_seen);
            chart.series.iter_mut().for_each(|curve| "over batches".clone_into(&mut curve.name));
            chart.series.extend(seen.into_iter().map(|curve| Series { name: "over inputs".to_owned(), ..curve }));
        }
        chart
    }

    fn chart(&self, title: &str, y: &str, unit: Unit, spacing: Spacing) -> CurveChart {
        let (x, against) = match &self.across {
            Across::Rate => ("offered rate (requests/s)".to_owned(), "offered rate"),
            Across::Key(key) => (key.clone(), key.as_str()),
            Across::Cards => ("cards".to_owned(), "the number of cards"),
        };
        CurveChart {
            title: format!("{title}, against {against}"),
            subtitle: self.subtitle(),
            x: axis(&x, Unit::Number, Spacing::Linear),
            y: axis(y, unit, spacing),
            series: Vec::new(),
            verticals: self.knee_marks(),
            verticals_are: self.knee_meaning(),
            horizontals: Vec::new(),
            diagonal: None,
        }
    }

    fn subtitle(&self) -> String {
        let Some(report) = self.reports().next() else {
            return String::new();
        };
        let bands = if report.run.replications > 1 { "; bands are 95% intervals" } else { "" };
        let system = match (self.systems.as_slice(), &self.across) {
            ([only], Across::Rate | Across::Key(_)) => format!("{}; ", only.name),
            ([_], Across::Cards) | ([] | [_, _, ..], _) => String::new(),
        };
        format!("{}; {system}{}{bands}", report.title, runs(report))
    }

    /// A curve for each system.
    fn curves(&self, value: impl Fn(&Report) -> Option<Figure>) -> Vec<Series> {
        let curve = |system: &System| Series {
            name: system.name.clone(),
            points: system.points.iter().filter_map(|(x, report)| point(*x, value(report)?)).collect(),
            unsettled: Vec::new(),
            look: Look::Points,
        };
        self.systems.iter().map(curve).collect()
    }

    /// The same for what unstable systems do not have.
    fn settled_curves(&self, value: impl Fn(&Report) -> Option<Figure>) -> Vec<Series> {
        let mut curves = self.curves(|report| if report.unstable { None } else { value(report) });
        for (curve, system) in curves.iter_mut().zip(&self.systems) {
            curve.unsettled = system.points.iter().filter(|(_, report)| report.unstable).map(|(x, _)| *x).collect();
        }
        curves
    }

    /// Knees as vertical lines; with a single system its capacity too. None of them means anything on another axis than
    /// the rate.
    fn knee_marks(&self) -> Vec<Mark> {
        let Across::Rate = self.across else {
            return Vec::new();
        };
        let mut marks = Vec::new();
        for system in &self.systems {
            let Some(knee) = system.knee else { continue };
            let prefix = if self.systems.len() > 1 { format!("{}: ", system.name) } else { String::new() };
            marks.extend(knee.at_target.as_ref().and_then(|target| target_mark(target, &prefix)));
            if let (1, Some(capacity)) = (self.systems.len(), knee.capacity) {
                marks.push(Mark::exact(capacity, format!("capacity {capacity:.0}/s")));
            }
        }
        marks.truncate(MOST_MARKS);
        marks
    }

    /// What the knees of several systems are; that of a single one says it itself.
    fn knee_meaning(&self) -> Option<String> {
        if self.systems.len() < 2 {
            return None;
        }
        let target = self.systems.iter().find_map(|system| system.knee?.at_target.as_ref())?;
        Some(format!("highest rate with {}, in its bracket", limit_words(target)))
    }

    fn capacities(&self) -> Vec<Mark> {
        let Across::Rate = self.across else {
            return Vec::new();
        };
        let mut known: Vec<f64> = self.systems.iter().filter_map(|system| system.knee?.capacity).collect();
        known.sort_by(f64::total_cmp);
        known.dedup();
        known
            .into_iter()
            .take(MOST_MARKS)
            .map(|capacity| Mark::exact(capacity, format!("capacity {capacity:.0}/s")))
            .collect()
    }

    /// The target, where it is one of the quantiles shown.
    fn targets(&self, shown: &[Quantile]) -> Vec<Mark> {
        let targets = self.systems.iter().filter_map(|system| system.knee?.at_target.as_ref());
        let shows = |target: &&TargetKnee| shown.iter().any(|quantile| names_latency(&target.metric, quantile.name));
        let mut limits: Vec<f64> = targets.filter(shows).map(|target| target.limit.value()).collect();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        limits
            .into_iter()
            .map(|limit| Mark::exact(limit, format!("target {}", written(limit, Unit::Seconds, limit))))
            .collect()
    }
}

fn target_mark(target: &TargetKnee, prefix: &str) -> Option<Mark> {
    let rate = target.rate.mean?;
    let label = if prefix.is_empty() {
        format!("{} up to {rate:.0}/s", limit_words(target))
    } else {
        format!("{prefix}{rate:.0}/s")
    };
    Some(Mark { at: rate, between: target.rate.low.zip(target.rate.high), label })
}

fn limit_words(target: &TargetKnee) -> String {
    let metric = target.metric.rsplit('.').next().unwrap_or(&target.metric);
    match target.limit {
        Limit::AtMost(most) => format!("{metric} \u{2264} {}", in_its_unit(metric, most)),
        Limit::AtLeast(least) => format!("{metric} \u{2265} {}", in_its_unit(metric, least)),
    }
}

/// Times are in seconds; rates, counts and shares are plain.
fn in_its_unit(metric: &str, value: f64) -> String {
    let times = ["p50", "p90", "p95", "p99", "p999", "mean", "max"];
    let unit = if times.iter().any(|name| metric.ends_with(name)) { Unit::Seconds } else { Unit::Number };
    written(value, unit, value)
}

/// Whether a metric's name is that of a quantile of the latency of completed requests.
fn names_latency(metric: &str, quantile: &str) -> bool {
    let rest = metric.strip_suffix(quantile).unwrap_or("");
    rest.ends_with('.') && !["wait.", "ttft.", "service.", "latency_all."].iter().any(|other| rest.ends_with(other))
}

fn point(x: f64, figure: Figure) -> Option<CurvePoint> {
    figure.mean.is_finite().then_some(CurvePoint { x, mean: figure.mean, low: figure.low, high: figure.high })
}
