//! Expectations held against a report and against what became of the expected lines.

use windtunnel_config::{Claim, Expectation, Range, did_you_mean};
use windtunnel_reports::{Report, journal::EventOutcome};

use super::kinds;

/// The sequences of lines that must occur, and the lines that must not, in the order of the file.
pub fn events(expectations: &[Expectation]) -> (Vec<Vec<String>>, Vec<String>) {
    let sequences = kinds(expectations, as_sequence).map(|(_, lines)| lines.clone()).collect();
    let nevers = kinds(expectations, as_never).map(|(_, line)| line.clone()).collect();
    (sequences, nevers)
}

/// What does not hold, in words.
pub fn failures(expectations: &[Expectation], report: &Report, events: &EventOutcome) -> Vec<String> {
    let metrics = kinds(expectations, as_metric);
    let metrics = metrics.filter_map(|(one, (name, range))| unmet(report, name, range).map(|why| (one.line, why)));
    let sequences = kinds(expectations, as_sequence).zip(&events.sequences);
    let sequences = sequences.filter_map(|((one, _), missed)| missed.clone().map(|why| (one.line, why)));
    let nevers = kinds(expectations, as_never).zip(&events.nevers);
    let nevers = nevers.filter_map(|((one, _), met)| met.clone().map(|why| (one.line, why)));
    let mut all: Vec<(usize, String)> = metrics.chain(sequences).chain(nevers).collect();
    all.sort();
    let mut failures: Vec<String> = all.into_iter().map(|(line, why)| format!("line {line}: {why}")).collect();
    failures.extend(report.invariants.details.iter().map(|broken| format!("invariant: {broken}")));
    failures
}

fn unmet(report: &Report, name: &str, range: Range) -> Option<String> {
    let Some(figure) = report.figure(name) else {
        return Some(missing(report, name));
    };
    let found = figure.mean;
    if holds(range, found) {
        return None;
    }
    let interval = match (figure.low, figure.high) {
        (Some(low), Some(high)) => format!(" [{low:.6}, {high:.6}]"),
        (None, _) | (_, None) => String::new(),
    };
    Some(format!("{name} is {found:.6}{interval}, expected {}", words(range)))
}

fn missing(report: &Report, name: &str) -> String {
    if report.knows(name) {
        return format!("{name} has no value in this run: nothing was measured for it");
    }
    let names = report.figure_names();
    let hint = did_you_mean(name, names.iter().map(String::as_str));
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("the report has no figure {name}{hint}")
}

fn holds(range: Range, found: f64) -> bool {
    match range {
        Range::AtMost(most) => found <= most,
        Range::AtLeast(least) => found >= least,
        Range::Equals(value) => (found - value).abs() <= value.abs() * 1e-12,
        Range::Between(low, high) => (low..=high).contains(&found),
        Range::Within { share, of } => (found - of).abs() <= share * of.abs(),
    }
}

fn words(range: Range) -> String {
    match range {
        Range::AtMost(most) => format!("at most {most}"),
        Range::AtLeast(least) => format!("at least {least}"),
        Range::Equals(value) => format!("exactly {value}"),
        Range::Between(low, high) => format!("between {low} and {high}"),
        Range::Within { share, of } => format!("within {}% of {of}", share * 100.0),
    }
}

fn as_metric(claim: &Claim) -> Option<(&str, Range)> {
    match claim {
        Claim::Metric { name, range } => Some((name, *range)),
        Claim::Events(_) | Claim::Never(_) => None,
    }
}

fn as_sequence(claim: &Claim) -> Option<&Vec<String>> {
    match claim {
        Claim::Events(lines) => Some(lines),
        Claim::Metric { .. } | Claim::Never(_) => None,
    }
}

fn as_never(claim: &Claim) -> Option<&String> {
    match claim {
        Claim::Never(line) => Some(line),
        Claim::Metric { .. } | Claim::Events(_) => None,
    }
}
