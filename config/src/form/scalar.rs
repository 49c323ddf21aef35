//! Single values: what each kind takes, and what it gives.

use std::net::{Ipv4Addr, SocketAddr};

use windtunnel_core::{Bytes, Ppm, Span};

use super::nearest::did_you_mean;
use crate::decode::units;
use crate::scenario::Warmup;
use crate::source::{Node, Value};

/// A kind of single value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar {
    /// Any text.
    Text,
    /// A text that is not empty.
    Name,
    /// `true` or `false`.
    Flag,
    /// A length of time.
    Span,
    /// A length of time above zero.
    SpanAboveZero,
    /// A length of time, or a word for none.
    SpanOr(&'static str),
    /// A number of bytes.
    Size,
    /// Bytes per second.
    Bandwidth,
    /// A ratio in (0, 1] with six decimals at most.
    Share,
    /// A ratio above 0 with six decimals at most.
    Factor,
    /// `auto`, a time or a share of the run.
    Warmup,
    /// A share in percent.
    Percent,
    /// A value of the report: a number, or a text with a unit.
    Figure,
    /// A whole number in a range, both ends included.
    Count(u64, u64),
    /// The same, or a word.
    CountOr(u64, u64, &'static str),
    /// A number.
    Number(Interval),
    /// An address of this machine, with a port.
    Address,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Anything.
    Anything,
}

/// The numbers allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Interval {
    /// From the first to the second, both included.
    Closed(f64, f64),
    /// Above the first, up to the second.
    Above(f64, f64),
    /// Any finite number.
    Finite,
}

/// Why a value is not taken; the end of a sentence that begins with the key.
pub(crate) type Wrong = String;

impl Scalar {
    /// Whether `node` is of a type this kind is written in.
    pub fn takes_type_of(self, node: &Node) -> bool {
        match node.value {
            Value::Text(_) => !matches!(self, Scalar::Number(_) | Scalar::Count(..) | Scalar::Flag),
            Value::Integer { .. } | Value::Float { .. } => matches!(
                self,
                Scalar::Number(_)
                    | Scalar::Count(..)
                    | Scalar::CountOr(..)
                    | Scalar::Share
                    | Scalar::Factor
                    | Scalar::Figure
            ),
            Value::Flag(_) => matches!(self, Scalar::Flag),
            Value::Moment(_) | Value::List(_) | Value::Table(_) => false,
        }
    }

    /// Whether the value is allowed.
    pub fn check(self, node: &Node) -> Result<(), Wrong> {
        match self {
            Scalar::Text => text(node).map(drop),
            Scalar::Name => name(node).map(drop),
            Scalar::Flag => flag(node).map(drop),
            Scalar::Span => span(node).map(drop),
            Scalar::SpanAboveZero => match span(node)? {
                Span::ZERO => Err(format!("must be above zero, found {}", node.found())),
                _more => Ok(()),
            },
            Scalar::SpanOr(word) => span_or(node, word).map(drop),
            Scalar::Size => size(node).map(drop),
            Scalar::Bandwidth => units::bandwidth(text(node)?).map(drop),
            Scalar::Share => match ratio(node)? {
                parts if parts.get() > 0 && parts <= Ppm::ONE => Ok(()),
                _outside => Err(format!("must be above 0 and at most 1, found {}", node.found())),
            },
            Scalar::Factor => match ratio(node)? {
                parts if parts.get() > 0 => Ok(()),
                _zero => Err(format!("must be above 0, found {}", node.found())),
            },
            Scalar::Warmup => warmup(node).map(drop),
            Scalar::Percent => units::percent(text(node)?).map(drop),
            Scalar::Figure => figure(node).map(drop),
            Scalar::Count(low, high) => count(node, low, high).map(drop),
            Scalar::CountOr(low, high, word) => count_or(node, low, high, word).map(drop),
            Scalar::Number(interval) => number(node, interval).map(drop),
            Scalar::Address => address(node).map(drop),
            Scalar::Word(words) => word(node, words).map(drop),
            Scalar::Anything => Ok(()),
        }
    }
}

pub(crate) fn text(node: &Node) -> Result<&str, Wrong> {
    node.as_text().ok_or_else(|| format!("must be a text in quotes, found {}", node.found()))
}

pub(crate) fn name(node: &Node) -> Result<&str, Wrong> {
    match text(node)? {
        name if name.trim().is_empty() => Err("must not be empty".to_owned()),
        name => Ok(name),
    }
}

pub(crate) fn flag(node: &Node) -> Result<bool, Wrong> {
    match node.value {
        Value::Flag(flag) => Ok(flag),
        Value::Text(_)
        | Value::Integer { .. }
        | Value::Float { .. }
        | Value::Moment(_)
        | Value::List(_)
        | Value::Table(_) => Err(format!("must be true or false, found {}", node.found())),
    }
}

pub(crate) fn span(node: &Node) -> Result<Span, Wrong> {
    with_unit(node, units::TIME, "s", units::span)
}

pub(crate) fn size(node: &Node) -> Result<Bytes, Wrong> {
    with_unit(node, units::SIZE, "GiB", units::size)
}

/// A text with a unit; a bare number gets told what to write.
fn with_unit<T>(node: &Node, wanted: &str, unit: &str, read: fn(&str) -> Result<T, Wrong>) -> Result<T, Wrong> {
    match &node.value {
        Value::Text(text) => read(text),
        Value::Integer { text, .. } | Value::Float { text, .. } => {
            Err(format!("needs a unit: write \"{text}{unit}\", not {text}"))
        }
        Value::Flag(_) | Value::Moment(_) | Value::List(_) | Value::Table(_) => {
            Err(format!("must be {wanted}, found {}", node.found()))
        }
    }
}

pub(crate) fn span_or(node: &Node, word: &str) -> Result<Option<Span>, Wrong> {
    if node.as_text() == Some(word) {
        return Ok(None);
    }
    span(node).map(Some).map_err(|wrong| format!("{wrong}; or {word:?}"))
}

pub(crate) fn ratio(node: &Node) -> Result<Ppm, Wrong> {
    match &node.value {
        Value::Integer { text, .. } | Value::Float { text, .. } => units::ppm(text),
        Value::Text(_) | Value::Flag(_) | Value::Moment(_) | Value::List(_) | Value::Table(_) => {
            Err(format!("must be a number such as 0.5, found {}", node.found()))
        }
    }
}

pub(crate) fn warmup(node: &Node) -> Result<Warmup, Wrong> {
    match node.as_text() {
        Some("auto") => Ok(Warmup::Auto),
        Some(text) if text.ends_with('%') => match units::percent(text)? {
            share if share < 1.0 => Ok(Warmup::Share(share)),
            _all => Err(format!("must be less than the whole run, found {text:?}")),
        },
        Some(_) | None => {
            span(node).map(Warmup::Fixed).map_err(|wrong| format!("{wrong}; or \"auto\", or a share such as \"5%\""))
        }
    }
}

pub(crate) fn figure(node: &Node) -> Result<f64, Wrong> {
    match node.as_text() {
        Some(text) => units::figure(text),
        None => number(node, Interval::Finite),
    }
}

pub(crate) fn percent(node: &Node) -> Result<f64, Wrong> {
    units::percent(text(node)?)
}

pub(crate) fn count(node: &Node, low: u64, high: u64) -> Result<u64, Wrong> {
    let wrong = || format!("must be a whole number {}, found {}", range(low, high), node.found());
    match node.value {
        Value::Integer { value, .. } => {
            u64::try_from(value).ok().filter(|count| (low..=high).contains(count)).ok_or_else(wrong)
        }
        Value::Text(_) | Value::Float { .. } | Value::Flag(_) | Value::Moment(_) | Value::List(_) | Value::Table(_) => {
            Err(wrong())
        }
    }
}

pub(crate) fn count_or(node: &Node, low: u64, high: u64, word: &str) -> Result<Option<u64>, Wrong> {
    if node.as_text() == Some(word) {
        return Ok(None);
    }
    count(node, low, high).map(Some).map_err(|wrong| format!("{wrong}; or {word:?}"))
}

pub(crate) fn number(node: &Node, interval: Interval) -> Result<f64, Wrong> {
    let value = match node.value {
        Value::Integer { value, .. } => value as f64,
        Value::Float { value, .. } => value,
        Value::Text(_) | Value::Flag(_) | Value::Moment(_) | Value::List(_) | Value::Table(_) => {
            return Err(format!("must be a number, found {}", node.found()));
        }
    };
    let inside = match interval {
        Interval::Closed(low, high) => (low..=high).contains(&value),
        Interval::Above(low, high) => value > low && value <= high,
        Interval::Finite => value.is_finite(),
    };
    if inside { Ok(value) } else { Err(format!("must be {}, found {}", interval.words(), node.found())) }
}

const ADDRESS: &str = "an address with a port such as \"127.0.0.1:8080\" or \"[::1]:8080\"";

pub(crate) fn address(node: &Node) -> Result<SocketAddr, Wrong> {
    let text = text(node)?;
    // A name would have to be looked up; this one is the same everywhere.
    let port = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let named = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    named.or_else(|| text.parse().ok()).ok_or_else(|| format!("must be {ADDRESS}, found {text:?}"))
}

/// The place of the word in `words`.
pub(crate) fn word(node: &Node, words: &'static [&'static str]) -> Result<usize, Wrong> {
    let quoted = || words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    let wrong = || format!("must be one of {}; found {}", quoted(), node.found());
    let found = node.as_text().ok_or_else(wrong)?;
    words.iter().position(|word| *word == found).ok_or_else(|| match did_you_mean(found, words.iter().copied()) {
        Some(hint) => format!("{}; {hint}", wrong()),
        None => wrong(),
    })
}

impl Scalar {
    /// What it takes, in words.
    pub fn words(self) -> String {
        match self {
            Scalar::Text | Scalar::Name => "a text in quotes".to_owned(),
            Scalar::Flag => "true or false".to_owned(),
            Scalar::Span => units::TIME.to_owned(),
            Scalar::SpanAboveZero => format!("{} above zero", units::TIME),
            Scalar::SpanOr(word) => format!("{} or {word:?}", units::TIME),
            Scalar::Size => units::SIZE.to_owned(),
            Scalar::Bandwidth => "a size per second such as \"3GiB/s\"".to_owned(),
            Scalar::Share => "a number above 0 and at most 1, with six decimals at most".to_owned(),
            Scalar::Factor => "a number above 0, with six decimals at most".to_owned(),
            Scalar::Warmup => "\"auto\", a time such as \"10s\" or a share such as \"5%\"".to_owned(),
            Scalar::Percent => units::PERCENT.to_owned(),
            Scalar::Figure => "a number or a text with a unit such as \"50ms\" or \"5%\"".to_owned(),
            Scalar::Count(low, high) => format!("a whole number {}", range(low, high)),
            Scalar::CountOr(low, high, word) => format!("a whole number {} or {word:?}", range(low, high)),
            Scalar::Number(interval) => interval.words(),
            Scalar::Address => ADDRESS.to_owned(),
            Scalar::Word(words) => words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or "),
            Scalar::Anything => "any value".to_owned(),
        }
    }
}

fn range(low: u64, high: u64) -> String {
    if high == u64::MAX { format!("from {low}") } else { format!("from {low} to {high}") }
}

impl Interval {
    fn words(self) -> String {
        match self {
            Interval::Closed(low, high) => format!("a number from {low} to {high}"),
            Interval::Above(low, high) => format!("a number above {low} and at most {high}"),
            Interval::Finite => "a finite number".to_owned(),
        }
    }
}
