//! A report as text.

use std::fmt::Write;

use super::{
    columns::{Columns, wrapped},
    units::{Unit, plain, value, with_interval},
};
use crate::{
    Figure, Report,
    journal::Source,
    report::{Distribution, FlowReport},
};

/// A report as text of a few tables.
pub fn report_table(report: &Report) -> String {
    let mut text = head(report);
    section(&mut text, "arrivals", &arrivals(report));
    section(&mut text, "jobs", &jobs(report));
    section(&mut text, "latency, completed jobs", &latencies(report));
    section(&mut text, "where it comes from", &parts(report));
    section(&mut text, "models", &models(report));
    section(&mut text, "devices", &devices(report));
    text.push_str(&remarks(report));
    text
}

fn section(text: &mut String, heading: &str, columns: &Columns) {
    if !columns.is_empty() {
        let _ = write!(text, "\n{heading}\n{}", columns.text());
    }
}

fn head(report: &Report) -> String {
    let run = &report.run;
    let title = if report.title.is_empty() { "untitled" } else { &report.title };
    let mut text = wrapped(title, "", "");
    let source = match report.source {
        Source::Sim => "simulated",
        Source::Live => "live",
    };
    let count = match run.replications {
        1 => "1 run".to_owned(),
        n => format!("{n} replications"),
    };
    let ended =
        run.ended.iter().map(|(cause, count)| ended(cause, *count, run.replications)).collect::<Vec<_>>().join(", ");
    let line = format!("windtunnel {}, {source}, seed {}, {count}, ended by {ended}", run.program, report.seed);
    text.push_str(&wrapped(&line, "", "  "));
    let line = format!(
        "{} long; warm-up ({}) {} left out, {} measured",
        value(run.duration.mean, Unit::Seconds),
        run.warmup.rule,
        value(run.warmup.cut.mean, Unit::Seconds),
        value(run.window.mean, Unit::Seconds),
    );
    text.push_str(&wrapped(&line, "", "  "));
    if report.unstable {
        let names = report.growing_workloads();
        let whose = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
        let line =
            format!("UNSTABLE: the backlog{whose} grows without end. Latencies are of this horizon, not of the queue.");
        text.push('\n');
        text.push_str(&wrapped(&line, "", "  "));
    }
    text
}

fn ended(cause: &str, count: u32, of: u32) -> String {
    if count == of { cause.to_owned() } else { format!("{cause} ({count})") }
}

fn arrivals(report: &Report) -> Columns {
    let mut columns = Columns::new(&["", "process", "measured/s", "CV of gaps"]);
    for (name, one) in report.workloads_seen() {
        let arrivals = &one.arrivals;
        columns.row(
            name,
            vec![
                arrivals.process.clone(),
                with_interval(arrivals.rate, Unit::Number),
                plain(arrivals.cv, Unit::Number),
            ],
        );
    }
    columns
}

/// The flows worth a row: every workload, and classes and models where there are several of them.
fn flows(report: &Report) -> Vec<(String, &FlowReport)> {
    let mut flows: Vec<(String, &FlowReport)> =
        report.workloads_seen().map(|(name, one)| (name.to_owned(), &one.flow)).collect();
    if flows.len() != 1 {
        flows.extend(report.class.iter().map(|(name, one)| (format!("class {name}"), &one.flow)));
    }
    if report.model.len() > 1 {
        flows.extend(report.model.iter().map(|(name, one)| (format!("model {name}"), &one.flow)));
    }
    flows
}

/// The share of offered jobs.
fn share(count: Figure, flow: &FlowReport) -> String {
    if flow.offered.mean > 0.0 { value(count.mean / flow.offered.mean, Unit::Share) } else { "-".to_owned() }
}

fn jobs(report: &Report) -> Columns {
    let mut columns = Columns::new(&[
        "",
        "offered/s",
        "completed/s",
        "in time/s",
        "refused",
        "timed out",
        "failed",
        "cancelled",
        "unfinished",
    ]);
    for (name, flow) in flows(report) {
        columns.row(
            &name,
            vec![
                plain(Some(flow.offered_rate), Unit::Number),
                with_interval(Some(flow.throughput), Unit::Number),
                plain(Some(flow.goodput), Unit::Number),
                share(flow.rejected, flow),
                share(flow.timed_out, flow),
                share(flow.failed, flow),
                share(flow.cancelled, flow),
                share(flow.unfinished, flow),
            ],
        );
    }
    columns
}

fn latencies(report: &Report) -> Columns {
    let mut columns = Columns::new(&["", "mean", "p50", "p95", "p99", "p99.9", "waiting", "not done"]);
    for (name, flow) in flows(report) {
        let of = |of: fn(&Distribution) -> Figure| flow.latency.as_ref().map(of);
        let lost = 1.0 - flow.completed.mean / flow.offered.mean.max(1.0);
        columns.row(
            &name,
            vec![
                with_interval(of(|times| times.mean), Unit::Seconds),
                plain(of(|times| times.p50), Unit::Seconds),
                plain(of(|times| times.p95), Unit::Seconds),
                with_interval(of(|times| times.p99), Unit::Seconds),
                plain(of(|times| times.p999), Unit::Seconds),
                plain(flow.waiting_share, Unit::Share),
                if flow.offered.mean > 0.0 { value(lost.max(0.0), Unit::Share) } else { "-".to_owned() },
            ],
        );
    }
    columns
}

fn parts(report: &Report) -> Columns {
    let mut columns = Columns::new(&[
        "",
        "wait mean",
        "wait p99",
        "first token",
        "first token p99",
        "service mean",
        "service p99",
        "starved",
    ]);
    for (name, flow) in flows(report) {
        let of = |times: &Option<Distribution>, of: fn(&Distribution) -> Figure| {
            plain(times.as_ref().map(of), Unit::Seconds)
        };
        let token = |part: fn(&Distribution) -> Figure| {
            flow.ttft.as_ref().map(part).map_or(String::new(), |figure| plain(Some(figure), Unit::Seconds))
        };
        columns.row(
            &name,
            vec![
                of(&flow.wait, |times| times.mean),
                of(&flow.wait, |times| times.p99),
                token(|times| times.mean),
                token(|times| times.p99),
                of(&flow.service, |times| times.mean),
                of(&flow.service, |times| times.p99),
                starved(report, &name),
            ],
        );
    }
    columns
}

/// The longest time without progress, in rows of classes.
fn starved(report: &Report, name: &str) -> String {
    let class = name.strip_prefix("class ").and_then(|name| report.class.get(name));
    class.and_then(|class| class.starvation).map_or_else(String::new, |figure| plain(Some(figure), Unit::Seconds))
}

fn models(report: &Report) -> Columns {
    let mut columns = Columns::new(&["", "mean batch", "batch seen", "busy", "loads", "evictions"]);
    for (name, model) in report.model.iter() {
        let some = |figure: Figure| if figure.mean > 0.0 { plain(Some(figure), Unit::Number) } else { String::new() };
        columns.row(
            name,
            vec![
                with_interval(model.mean_batch, Unit::Number),
                plain(model.mean_batch_seen, Unit::Number),
                plain(model.busy, Unit::Share),
                some(model.loads),
                some(model.evictions),
            ],
        );
    }
    columns
}

fn devices(report: &Report) -> Columns {
    let mut columns = Columns::new(&["", "busy", "of capacity", "memory", "interactive mode"]);
    for (name, device) in report.device.iter() {
        if !device.used {
            columns.row(name, vec!["not used".to_owned()]);
            continue;
        }
        columns.row(
            name,
            vec![
                plain(device.busy, Unit::Share),
                with_interval(device.capacity_fraction, Unit::Share),
                device.memory_peak.map_or_else(String::new, |peak| plain(Some(peak), Unit::Bytes)),
                device.mode.map_or_else(String::new, |mode| plain(Some(mode.interactive), Unit::Share)),
            ],
        );
    }
    columns
}

fn remarks(report: &Report) -> String {
    let mut text = String::from("\n");
    for (name, flow) in
        report.workload.iter().map(|(name, one)| (name, &one.flow)).filter(|(_, flow)| !flow.reasons.is_empty())
    {
        let reasons =
            flow.reasons.iter().map(|(reason, count)| format!("{} {}", reason.replace('_', " "), share(*count, flow)));
        text.push_str(&wrapped(&format!("{name} lost: {}", reasons.collect::<Vec<_>>().join(", ")), "* ", "  "));
    }
    for remark in &report.remarks {
        text.push_str(&wrapped(remark, "* ", "  "));
    }
    let invariants = &report.invariants;
    if invariants.violated == 0 {
        let _ = writeln!(text, "* invariants: {} checks, nothing violated", invariants.checked);
    } else {
        let _ = writeln!(text, "* INVARIANTS VIOLATED: {} times in {} checks", invariants.violated, invariants.checked);
        invariants.details.iter().take(10).for_each(|one| text.push_str(&wrapped(one, "    ", "      ")));
    }
    text
}
