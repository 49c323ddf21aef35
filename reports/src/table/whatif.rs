//! The table of what other settings would have done.

use super::{
    columns::Columns,
    units::{Unit, value, with_interval},
};
use crate::{
    Figure,
    whatif::{Change, ClassChange, Difference, Figures, Shift},
};

/// The change as text: first how far the simulation is from the recording, then what changes.
pub fn whatif_table(change: &Change) -> String {
    let mut text = String::from("simulated again as recorded, of requests completed in both\n");
    let mut columns = Columns::new(&["class", "requests", "figure", "recorded", "simulated", "error"]);
    change.classes.iter().for_each(|class| fidelity(&mut columns, class));
    text.push_str(&columns.text());
    text.push_str("\nunder the other settings, of requests completed in both simulations\n");
    let mut columns =
        Columns::new(&["class", "completed", "figure", "as recorded", "changed", "difference", "verdict"]);
    change.classes.iter().for_each(|class| changes(&mut columns, class));
    text.push_str(&columns.text());
    text
}

/// The figures with their names.
fn rows(figures: &Figures) -> [(&'static str, Option<f64>); 4] {
    [
        ("wait p50", figures.wait_p50),
        ("wait p99", figures.wait_p99),
        ("latency p50", figures.latency_p50),
        ("latency p99", figures.latency_p99),
    ]
}

fn seconds(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| value(number, Unit::Seconds))
}

fn fidelity(columns: &mut Columns, class: &ClassChange) {
    let own = &class.fidelity;
    let pairs = rows(&own.recorded).into_iter().zip(rows(&own.simulated));
    for (at, ((figure, recorded), (_, simulated))) in pairs.enumerate() {
        let (name, count) = if at == 0 { (class.class, own.requests.to_string()) } else { ("", String::new()) };
        let cells = [figure.to_owned(), seconds(recorded), seconds(simulated), error(recorded, simulated)];
        columns.row(name, std::iter::once(count).chain(cells).collect());
    }
}

/// By how much the second is off the first.
fn error(recorded: Option<f64>, simulated: Option<f64>) -> String {
    match (recorded, simulated) {
        (Some(recorded), Some(simulated)) if recorded == simulated => "0%".to_owned(),
        (Some(recorded), Some(simulated)) if recorded > 0.0 => format!("{:+.2}%", 100.0 * (simulated / recorded - 1.0)),
        (Some(recorded), Some(simulated)) => value(simulated - recorded, Unit::Seconds),
        (_, _) => "-".to_owned(),
    }
}

fn changes(columns: &mut Columns, class: &ClassChange) {
    let own = &class.difference;
    let by = [own.wait_p50, own.wait_p99, own.latency_p50, own.latency_p99];
    let pairs = rows(&class.again).into_iter().zip(rows(&class.changed)).zip(by);
    for (at, (((figure, again), (_, changed)), by)) in pairs.enumerate() {
        let completed = format!("{} -> {}", class.completed_again, class.completed_changed);
        let (name, completed) = if at == 0 { (class.class, completed) } else { ("", String::new()) };
        let cells = [figure.to_owned(), seconds(again), seconds(changed), quantile(by), String::new()];
        columns.row(name, std::iter::once(completed).chain(cells).collect());
    }
    for (figure, shift, verdict) in
        [("wait, mean", &class.wait, ""), ("latency, mean", &class.latency, class.verdict.words())]
    {
        let cells = ["", figure, "", "", &mean(shift), verdict];
        columns.row("", cells.into_iter().map(str::to_owned).collect());
    }
}

/// The difference of a quantile with the ends of its interval, which lies not evenly around it.
fn quantile(difference: Difference) -> String {
    let by = seconds(difference.by);
    match (difference.low, difference.high) {
        (Some(low), Some(high)) => format!("{by} ({} to {})", value(low, Unit::Seconds), value(high, Unit::Seconds)),
        (_, _) => by,
    }
}

/// The mean difference with its interval over blocks.
fn mean(shift: &Shift) -> String {
    let Some(mean) = shift.mean else { return "-".to_owned() };
    match (shift.low, shift.high) {
        (Some(low), Some(high)) => {
            let middle = (low + high) / 2.0;
            let figure = Figure { mean: middle, low: Some(low), high: Some(high), n: shift.blocks as u32 };
            with_interval(Some(figure), Unit::Seconds)
        }
        (_, _) => value(mean, Unit::Seconds),
    }
}
