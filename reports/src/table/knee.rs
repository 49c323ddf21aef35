//! A knee in words.

use std::fmt::Write;

use super::{
    columns::wrapped,
    units::{Unit, value},
};
use crate::knee::{Bracket, Confirmation, KneeReport, Limit, Shape, TargetKnee};

/// Whether the number of cards is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cards {
    Counted,
    /// Somebody else's endpoint has them.
    Unknown,
}

/// The readings of one knee.
pub(super) fn words(knee: &KneeReport, cards: Cards) -> String {
    let system = match (cards, knee.devices) {
        (Cards::Unknown, _) => "the endpoint".to_owned(),
        (Cards::Counted, 1) => "1 card".to_owned(),
        (Cards::Counted, several) => format!("{several} cards"),
    };
    let mut text = format!("knee of {system}{}\n", settings(knee));
    if let Some(capacity) = knee.capacity {
        reading(&mut text, "capacity", &format!("{}/s", rate(capacity)));
    }
    if let Some(target) = &knee.at_target {
        reading(&mut text, "at the target", &at_target(target));
    }
    if let Some(saturation) = &knee.saturation {
        reading(
            &mut text,
            "saturation",
            &format!("{}: throughput falls 2% short of offered", bracket(&saturation.rate)),
        );
    }
    if let Some(power) = &knee.power {
        reading(&mut text, "power point", &format!("{}: most throughput per mean latency", bracket(&power.rate)));
    }
    if let Some(kneedle) = &knee.kneedle {
        let [from, to] = kneedle.over.map(rate);
        let words =
            format!("{}/s on the range from {from} to {to}/s; another range gives another knee", rate(kneedle.rate));
        reading(&mut text, "kneedle", &words);
    }
    text
}

fn reading(text: &mut String, name: &str, words: &str) {
    text.push_str(&wrapped(words, &format!("  {name:<14} "), &" ".repeat(17)));
}

fn settings(knee: &KneeReport) -> String {
    let mut text = String::new();
    for (key, value) in &knee.set {
        let _ = write!(text, ", {key} = {value}");
    }
    text
}

fn rate(rate: f64) -> String {
    value(rate, Unit::Number)
}

fn bracket(bracket: &Bracket) -> String {
    match (bracket.low, bracket.high) {
        (Some(low), Some(high)) if low < high => format!("between {} and {}/s", rate(low), rate(high)),
        (Some(low), None) => format!("above {}/s", rate(low)),
        (None, Some(high)) => format!("below {}/s", rate(high)),
        (Some(_), Some(_)) | (None, None) => {
            bracket.mean.map_or_else(|| "not within what was looked at".to_owned(), |mean| format!("{}/s", rate(mean)))
        }
    }
}

fn at_target(target: &TargetKnee) -> String {
    let limit = match target.limit {
        Limit::AtMost(limit) => format!("at most {}", of_metric(&target.metric, limit)),
        Limit::AtLeast(limit) => format!("at least {}", of_metric(&target.metric, limit)),
    };
    let shape = match target.shape {
        Shape::Smooth => ", smooth",
        Shape::Cliff => ", a cliff",
        Shape::NotBracketed => ", not bracketed",
    };
    let mut words = format!("{} keeps {} {limit}{shape}", bracket(&target.rate), target.metric);
    words.push_str(match target.confirmation {
        Confirmation::Confirmed => "; confirmed with fresh seeds",
        Confirmation::Widened => "; widened after a run with fresh seeds",
        Confirmation::Contradicted => "; contradicted by a run with fresh seeds",
        Confirmation::Nothing => "",
    });
    if let Some(undecided) = target.undecided {
        let _ = write!(words, "; {}/s could not be decided", rate(undecided));
    }
    words
}

/// A limit in the unit of its metric, as far as its name tells.
fn of_metric(metric: &str, limit: f64) -> String {
    const COUNTS: [&str; 16] = [
        "offered",
        "completed",
        "rejected",
        "timed_out",
        "failed",
        "cancelled",
        "unfinished",
        "offered_rate",
        "throughput",
        "goodput",
        "loads",
        "evictions",
        "mean_batch",
        "mean_batch_seen",
        "in_system",
        "queue",
    ];
    const SHARES: [&str; 3] = ["waiting_share", "busy", "capacity_fraction"];
    let last = metric.rsplit('.').next().unwrap_or(metric);
    let unit = match last {
        _ if COUNTS.contains(&last) => Unit::Number,
        _ if SHARES.contains(&last) => Unit::Share,
        "memory_peak" => Unit::Bytes,
        _ => Unit::Seconds,
    };
    value(limit, unit)
}
