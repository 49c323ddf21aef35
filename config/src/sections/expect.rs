//! `[[expect]]`: what a test checks.

use crate::decode::Section;
use crate::form::{Form, Key, Scalar, Shape, listed};
use crate::scenario::{Claim, Expectation, Range};

pub(crate) static EXPECT: Form = Form::new(
    "expect",
    "One expectation: a figure in a range, lines in an order, or a line that must not occur.",
    &[
        Key::scalar("metric", Scalar::Name, "a dotted name of the report"),
        Key::scalar("at_most", Scalar::Figure, "the figure is at most this"),
        Key::scalar("at_least", Scalar::Figure, "the figure is at least this"),
        Key::scalar("equals", Scalar::Figure, "the figure is exactly this"),
        Key::new("between", Shape::Pair(&Shape::Scalar(Scalar::Figure)), "the figure is between these, both included"),
        Key::scalar("within", Scalar::Percent, "the figure is so close to `of`"),
        Key::scalar("of", Scalar::Figure, "what `within` refers to"),
        Key::new("events", Shape::List(&Shape::Scalar(Scalar::Name)), "lines of the journal that occur in this order"),
        Key::scalar("never", Scalar::Name, "a line of the journal that does not occur"),
        Key::new(
            "set",
            Shape::List(&Shape::Scalar(Scalar::Name)),
            "key=value settings under which it must hold, as with --set",
        ),
    ],
);

const RANGES: [&str; 5] = ["at_most", "at_least", "equals", "between", "within"];

/// Reads all expectations.
pub(crate) fn read(root: &Section<'_>) -> Vec<Expectation> {
    root.sections("expect").iter().filter_map(expectation).collect()
}

fn expectation(section: &Section<'_>) -> Option<Expectation> {
    let kinds = section.given(&["metric", "events", "never"]);
    let claim = match kinds.as_slice() {
        ["metric"] => Claim::Metric { name: section.text("metric")?.to_owned(), range: range(section)? },
        ["events"] => Claim::Events(section.texts("events")?.into_iter().map(|(line, _)| line.to_owned()).collect()),
        ["never"] => Claim::Never(section.text("never")?.to_owned()),
        found => {
            let found = listed(found.iter().copied());
            section.complain(&format!("must have one of metric, events and never; found {found}"));
            return None;
        }
    };
    let ranges = section.given(&RANGES);
    if !matches!(claim, Claim::Metric { .. }) && !ranges.is_empty() {
        section.wrong(ranges[0], "goes with a `metric`");
    }
    let set = if section.has("set") { section.texts("set")? } else { Vec::new() };
    let set = set.into_iter().map(|(text, _)| text.to_owned()).collect();
    Some(Expectation { line: section.line(), claim, set })
}

fn range(section: &Section<'_>) -> Option<Range> {
    let given = section.given(&RANGES);
    if section.has("of") != (given == ["within"]) && given.len() == 1 {
        section.complain("must have `within` and `of` together, such as within = \"5%\" with of = 1880");
        return None;
    }
    match given.as_slice() {
        ["at_most"] => section.figure("at_most").map(Range::AtMost),
        ["at_least"] => section.figure("at_least").map(Range::AtLeast),
        ["equals"] => section.figure("equals").map(Range::Equals),
        ["between"] => between(section),
        ["within"] => Some(Range::Within { share: section.percent("within")?, of: section.figure("of")? }),
        [] => {
            section.complain(&format!("has a metric but no range: one of {}", listed(RANGES)));
            None
        }
        several => {
            section.complain(&format!(
                "has several ranges, {}; for two bounds write between = [low, high]",
                listed(several.iter().copied())
            ));
            None
        }
    }
}

fn between(section: &Section<'_>) -> Option<Range> {
    let both = section.figures("between")?;
    let (low, high) = (*both.first()?, *both.get(1)?);
    if low > high {
        section.wrong("between", &format!("must not fall: {low} is more than {high}"));
    }
    Some(Range::Between(low, high))
}
