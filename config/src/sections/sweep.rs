//! `[[sweep]]`: what a sweep varies, and what a knee search looks for.

use crate::decode::Section;
use crate::form::{Form, Interval, Key, Scalar, Shape};
use crate::scenario::{Sweep, SweepUnit, SweepValues, Target, Workload};
use crate::source::Node;

pub(crate) static SWEEP: Form = Form::new(
    "sweep",
    "One axis of a grid.",
    &[
        Key::scalar("key", Scalar::Name, "the dotted key it varies, as in `--set`").required(),
        Key::new(
            "values",
            Shape::Either(&[Shape::List(&Shape::Scalar(Scalar::Anything)), Shape::Table(&STEPS)]),
            "the values it takes",
        )
        .required(),
        Key::new("target", Shape::Table(&TARGET), "what a knee search looks for"),
    ],
);

static STEPS: Form = Form::new(
    "steps",
    "Equal steps, both ends included.",
    &[
        Key::scalar("from", Scalar::Number(Interval::Finite), "the first value").required(),
        Key::scalar("to", Scalar::Number(Interval::Finite), "the last value").required(),
        Key::scalar("steps", Scalar::Count(2, 10_000), "how many values").required(),
        Key::scalar(
            "of",
            Scalar::Word(&["one", "capacity"]),
            "what the values are multiples of: the workload's analytic capacity, or one",
        )
        .or("\"one\""),
    ],
);

static TARGET: Form = Form::new(
    "target",
    "A bound on a figure of the report.",
    &[
        Key::scalar("metric", Scalar::Name, "a dotted name of the report").required(),
        Key::scalar("at_most", Scalar::Figure, "the most it may be").required(),
    ],
);

/// Reads the axes and the target, which belongs to all of them.
pub(crate) fn read(root: &Section<'_>, workloads: &[Workload]) -> (Vec<Sweep>, Option<Target>) {
    let (mut sweeps, mut target) = (Vec::new(), None);
    for section in root.sections("sweep") {
        sweeps.extend(sweep(&section, workloads));
        if let Some(inner) = section.section("target") {
            if target.is_some() {
                inner.complain("is the second one; a search has one target");
            }
            target = target.or_else(|| read_target(&inner));
        }
    }
    (sweeps, target)
}

fn read_target(section: &Section<'_>) -> Option<Target> {
    Some(Target { metric: section.text("metric")?.to_owned(), at_most: section.figure("at_most")? })
}

fn sweep(section: &Section<'_>, workloads: &[Workload]) -> Option<Sweep> {
    let key = section.text("key")?;
    let values = match section.section("values") {
        Some(steps) => steps_of(&steps, section, key, workloads)?,
        None => SweepValues::List(section.node("values")?.as_list()?.iter().map(Node::to_toml).collect()),
    };
    Some(Sweep { key: key.to_owned(), values })
}

fn steps_of(steps: &Section<'_>, sweep: &Section<'_>, key: &str, workloads: &[Workload]) -> Option<SweepValues> {
    let of = steps.choice("of", [SweepUnit::One, SweepUnit::Capacity]).unwrap_or(SweepUnit::One);
    let rate_of = |workload: &Workload| format!("workload.{}.arrivals.rate", workload.name);
    if of == SweepUnit::Capacity && !workloads.iter().any(|workload| rate_of(workload) == key) {
        let message = "must be the rate of a workload, such as \"workload.chat.arrivals.rate\", when its values are of = \"capacity\"";
        sweep.wrong("key", message);
    }
    Some(SweepValues::Steps {
        from: steps.number("from")?,
        to: steps.number("to")?,
        steps: steps.count32("steps")?,
        of,
    })
}
