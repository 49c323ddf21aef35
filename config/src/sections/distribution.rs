//! Distributions of sizes and of times.

use windtunnel_core::Span;

use crate::decode::Section;
use crate::form::{Form, Interval, Key, Scalar, Shape};
use crate::scenario::Distribution;

/// The largest size or number of seconds in a distribution.
pub(crate) const MOST: f64 = 1e9;

const SIZE: Scalar = Scalar::Number(Interval::Closed(0.0, MOST));
const SIZE_ABOVE: Scalar = Scalar::Number(Interval::Above(0.0, MOST));
const CV: Key =
    Key::scalar("cv", Scalar::Number(Interval::Closed(0.0, 100.0)), "standard deviation over mean").required();
const EMPIRICAL: &str = "one of the numbers in the first numeric column of a CSV file, each as likely";

/// A size: tokens, inputs.
pub(crate) const SIZES: Shape = Shape::Either(&[Shape::Scalar(SIZE), Shape::Table(&SIZE_FORM)]);
/// A time.
pub(crate) const TIMES: Shape = Shape::Either(&[Shape::Scalar(Scalar::Span), Shape::Table(&TIME_FORM)]);

static SIZE_FORM: Form = Form::one_of(
    "size_distribution",
    "How a size is distributed.",
    &[
        Key::new("uniform", Shape::Pair(&Shape::Scalar(SIZE)), "uniform between two numbers"),
        Key::scalar("exponential", SIZE_ABOVE, "exponential with this mean"),
        Key::new("lognormal", Shape::Table(&SIZE_LOGNORMAL), "lognormal"),
        Key::new("gamma", Shape::Table(&SIZE_GAMMA), "gamma"),
        Key::scalar("empirical", Scalar::Name, EMPIRICAL),
    ],
    "such as { exponential = 100 }; a plain number is always that",
);

static TIME_FORM: Form = Form::one_of(
    "time_distribution",
    "How a time is distributed.",
    &[
        Key::new("uniform", Shape::Pair(&Shape::Scalar(Scalar::Span)), "uniform between two times"),
        Key::scalar("exponential", Scalar::SpanAboveZero, "exponential with this mean"),
        Key::new("lognormal", Shape::Table(&TIME_LOGNORMAL), "lognormal"),
        Key::new("gamma", Shape::Table(&TIME_GAMMA), "gamma"),
        Key::scalar("empirical", Scalar::Name, EMPIRICAL),
    ],
    "such as { exponential = \"2s\" }; a plain time is always that",
);

static SIZE_LOGNORMAL: Form = Form::new(
    "size_lognormal",
    "A lognormal distribution by its median or its mean.",
    &[Key::scalar("median", SIZE_ABOVE, "the median"), Key::scalar("mean", SIZE_ABOVE, "the mean"), CV],
);

static TIME_LOGNORMAL: Form = Form::new(
    "time_lognormal",
    "A lognormal distribution by its median or its mean.",
    &[
        Key::scalar("median", Scalar::SpanAboveZero, "the median"),
        Key::scalar("mean", Scalar::SpanAboveZero, "the mean"),
        CV,
    ],
);

static SIZE_GAMMA: Form =
    Form::new("size_gamma", "A gamma distribution.", &[Key::scalar("mean", SIZE_ABOVE, "the mean").required(), CV]);

static TIME_GAMMA: Form = Form::new(
    "time_gamma",
    "A gamma distribution.",
    &[Key::scalar("mean", Scalar::SpanAboveZero, "the mean").required(), CV],
);

/// How the numbers of a distribution are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Plain,
    Time,
}

impl Unit {
    fn one(self, section: &Section<'_>, key: &str) -> Option<f64> {
        match self {
            Unit::Plain => section.number(key),
            Unit::Time => section.span(key).map(seconds),
        }
    }

    fn two(self, section: &Section<'_>, key: &str) -> Option<(f64, f64)> {
        let both = match self {
            Unit::Plain => section.numbers(key)?,
            Unit::Time => section.spans(key)?.into_iter().map(seconds).collect(),
        };
        Some((*both.first()?, *both.get(1)?))
    }
}

fn seconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}

/// Reads a distribution of sizes.
pub(crate) fn sizes(section: &Section<'_>, key: &str) -> Option<Distribution> {
    read(section, key, Unit::Plain)
}

/// Reads a distribution of times, in seconds.
pub(crate) fn times(section: &Section<'_>, key: &str) -> Option<Distribution> {
    read(section, key, Unit::Time)
}

fn read(section: &Section<'_>, key: &str, unit: Unit) -> Option<Distribution> {
    match section.section(key) {
        Some(inner) => distribution(&inner, unit),
        None => unit.one(section, key).map(Distribution::Constant),
    }
}

fn distribution(section: &Section<'_>, unit: Unit) -> Option<Distribution> {
    if let Some((low, high)) = unit.two(section, "uniform") {
        if low > high {
            section.wrong("uniform", &format!("must not fall: {low} is more than {high}"));
        }
        return Some(Distribution::Uniform { low, high });
    }
    if let Some(mean) = unit.one(section, "exponential") {
        return Some(Distribution::Exponential { mean });
    }
    if let Some(inner) = section.section("lognormal") {
        return lognormal(&inner, unit);
    }
    if let Some(inner) = section.section("gamma") {
        return gamma(&inner, unit);
    }
    let path = section.path("empirical")?;
    match section.context.empiricals.values(&path) {
        Ok(values) => Some(Distribution::Empirical(values.to_vec())),
        Err(wrong) => {
            section.wrong("empirical", &wrong);
            None
        }
    }
}

/// The median of a lognormal distribution is its mean over the square root of 1 + cv^2.
fn lognormal(section: &Section<'_>, unit: Unit) -> Option<Distribution> {
    let cv = section.number("cv")?;
    let median = match (unit.one(section, "median"), unit.one(section, "mean")) {
        (Some(median), None) => median,
        (None, Some(mean)) => mean / (1.0 + cv * cv).sqrt(),
        (Some(_), Some(_)) | (None, None) => {
            section.complain("must have one of `median` and `mean`");
            return None;
        }
    };
    Some(if cv == 0.0 { Distribution::Constant(median) } else { Distribution::Lognormal { median, cv } })
}

fn gamma(section: &Section<'_>, unit: Unit) -> Option<Distribution> {
    let (mean, cv) = (unit.one(section, "mean")?, section.number("cv")?);
    check_cv(section, cv);
    Some(if cv == 0.0 { Distribution::Constant(mean) } else { Distribution::Gamma { mean, cv } })
}

/// Complains about a coefficient of variation of a gamma distribution that no generator can draw.
pub(crate) fn check_cv(section: &Section<'_>, cv: f64) {
    if cv > 0.0 && cv < 0.001 {
        section.wrong("cv", &format!("must be 0 or at least 0.001, found {cv}"));
    }
}
