//! A sweep as text: one row a point, then the knees.

use std::fmt::Write;

use super::{
    columns::{Columns, wrapped},
    knee::{self, Cards},
    units::{Unit, plain, value, with_interval},
};
use crate::{
    Figure, Report,
    journal::Source,
    report::{Distribution, FlowReport, PointReport, SweepReport},
};

/// A sweep as text.
pub fn sweep_table(sweep: &SweepReport) -> String {
    let mut text = String::new();
    if let Some(first) = sweep.points.first() {
        let report = &first.report;
        text.push_str(&wrapped(&report.title, "", ""));
        let line = format!(
            "windtunnel {}, seed {}, {} replications a point",
            report.run.program,
            report.seed,
            replications(sweep)
        );
        text.push_str(&wrapped(&line, "", "  "));
    }
    let keys = keys(sweep);
    if let Some(class) = sweep.points.iter().find_map(|point| first_class(&point.report)) {
        let _ = writeln!(
            text,
            "latencies are those of class {class}; offered/s, completed/s and lost are of all workloads"
        );
    }
    for (heading, key) in headings(&keys).iter().zip(&keys) {
        let _ = writeln!(text, "{heading} = {key}");
    }
    let _ = write!(text, "\n{}", points(sweep, &keys).text());
    if sweep.points.iter().any(|point| point.report.unstable) {
        text.push_str(&wrapped(
            "UNSTABLE: the backlog grows without end; latencies are of the horizon, not of the queue",
            "",
            "",
        ));
    }
    for one in &sweep.knees {
        let _ = write!(text, "\n{}", knee::words(one, cards(sweep)));
    }
    text
}

fn replications(sweep: &SweepReport) -> String {
    let counts = sweep.points.iter().map(|point| point.report.run.replications);
    match (counts.clone().min(), counts.max()) {
        (Some(low), Some(high)) if low < high => format!("{low} to {high}"),
        (low, _) => low.unwrap_or(0).to_string(),
    }
}

/// The keys that differ between points.
fn keys(sweep: &SweepReport) -> Vec<String> {
    let mut keys: Vec<String> = sweep.points.iter().flat_map(|point| point.set.keys().cloned()).collect();
    keys.sort();
    keys.dedup();
    let varies = |key: &String| {
        let mut values = sweep.points.iter().map(|point| point.set.get(key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    keys.retain(varies);
    keys
}

/// What is said of the keys at the head of their columns: the last word, with the name of what it belongs to where several
/// keys end alike.
fn headings(keys: &[String]) -> Vec<String> {
    let last = |key: &str| key.rsplit_once('.').map_or(key, |(_, last)| last).to_owned();
    let alike = |key: &String| keys.iter().filter(|other| last(other) == last(key)).count() > 1;
    let heading = |key: &String| match key.split('.').nth(1) {
        Some(owner) if alike(key) => format!("{owner} {}", last(key)),
        Some(_) | None => last(key),
    };
    keys.iter().map(heading).collect()
}

/// Whether it was run against an endpoint, of whose cards nothing is known.
fn cards(sweep: &SweepReport) -> Cards {
    match sweep.points.first().map(|point| point.report.source) {
        Some(Source::Live) => Cards::Unknown,
        Some(Source::Sim) | None => Cards::Counted,
    }
}

fn first_class(report: &Report) -> Option<&str> {
    report.class.iter().next().map(|(name, _)| name)
}

fn points(sweep: &SweepReport, keys: &[String]) -> Columns {
    let counted = cards(sweep) == Cards::Counted;
    let named = headings(keys);
    let mut titles = vec![if counted { "cards" } else { "point" }];
    titles.extend(named.iter().map(String::as_str));
    titles.extend(["offered/s", "completed/s", "lost", "p50", "p99", "batch", "waiting", "of capacity", ""]);
    let mut columns = Columns::new(&titles);
    for (number, point) in (1_u32..).zip(&sweep.points) {
        let mut cells: Vec<String> = keys.iter().map(|key| set(point, key)).collect();
        cells.extend(cells_of(&point.report));
        let first = if counted { point.devices } else { number };
        columns.row(&first.to_string(), cells);
    }
    columns
}

fn set(point: &PointReport, key: &str) -> String {
    match point.set.get(key) {
        None => "-".to_owned(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(serde_json::Value::Number(number)) => number.as_f64().map_or_else(|| number.to_string(), short_number),
        Some(other) => other.to_string(),
    }
}

/// At most two decimals, none where the number is whole.
fn short_number(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn cells_of(report: &Report) -> Vec<String> {
    let class = report.class.iter().next().map(|(_, class)| &class.flow);
    let latency = |of: fn(&Distribution) -> Figure| class.and_then(|flow| flow.latency.as_ref()).map(of);
    let total = |of: fn(&FlowReport) -> Figure| report.workload.iter().map(|(_, one)| of(&one.flow).mean).sum::<f64>();
    let (offered, completed) = (total(|flow| flow.offered), total(|flow| flow.completed));
    let lost = if offered > 0.0 { value((1.0 - completed / offered).max(0.0), Unit::Share) } else { "-".to_owned() };
    vec![
        value(total(|flow| flow.offered_rate), Unit::Number),
        value(total(|flow| flow.throughput), Unit::Number),
        lost,
        plain(latency(|times| times.p50), Unit::Seconds),
        with_interval(latency(|times| times.p99), Unit::Seconds),
        busiest_batch(report),
        plain(class.and_then(|flow| flow.waiting_share), Unit::Share),
        capacity(report),
        if report.unstable { "UNSTABLE".to_owned() } else { String::new() },
    ]
}

/// The mean batch of the model that completes most.
fn busiest_batch(report: &Report) -> String {
    let models = report.model.iter().map(|(_, model)| model);
    let busiest = models.max_by(|a, b| a.flow.throughput.mean.total_cmp(&b.flow.throughput.mean));
    plain(busiest.and_then(|model| model.mean_batch), Unit::Number)
}

/// The mean share of capacity of the devices of which it is known.
fn capacity(report: &Report) -> String {
    let shares: Vec<f64> =
        report.device.iter().filter_map(|(_, device)| Some(device.capacity_fraction?.mean)).collect();
    if shares.is_empty() {
        "-".to_owned()
    } else {
        value(shares.iter().sum::<f64>() / shares.len() as f64, Unit::Share)
    }
}
