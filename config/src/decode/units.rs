//! Texts with a unit: times, sizes, shares. What is wrong is said as the end of a sentence that names the key.

use windtunnel_core::{Bytes, Ppm, Span};

use super::decimal::{Decimal, NotWhole};

const TIMES: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// What a time is written like.
pub(crate) const TIME: &str = "a time such as \"600s\", \"2ms\", \"1.5us\" or \"5m\"";
/// What a size is written like.
pub(crate) const SIZE: &str = "a size such as \"16GiB\", \"512MiB\" or \"8.5GB\"";
/// What a share of something is written like.
pub(crate) const PERCENT: &str = "a share such as \"5%\"";

/// Reads `600s`, `1.5us`.
/// A span as files write it, such as `1.5s` or `200ms`.
///
/// # Errors
/// What is wrong with the text and what would be right.
pub fn parse_span(text: &str) -> Result<Span, String> {
    span(text)
}

pub(crate) fn span(text: &str) -> Result<Span, String> {
    let (number, unit) = split(text, TIME)?;
    let scale = scale(&TIMES, unit).ok_or_else(|| no_unit("time", unit, &TIMES))?;
    match number.times(scale) {
        Ok(nanos) => Ok(Span::from_nanos(nanos)),
        Err(NotWhole::Fraction) => Err(format!("is {text:?}, a fraction of a nanosecond; times are whole nanoseconds")),
        Err(NotWhole::TooLarge) => Err(format!("is {text:?}, longer than 584 years")),
    }
}

/// Reads `16GiB`, `8.5GB`; a part of a byte counts as one.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let (number, unit) = split(text, SIZE)?;
    let scale = scale(&SIZES, unit).ok_or_else(|| no_unit("size", unit, &SIZES))?;
    number.times_up(scale).map(Bytes::new).map_err(|_| format!("is {text:?}, more than 64 bits can count"))
}

/// Reads `3GiB/s` into bytes per second.
pub(crate) fn bandwidth(text: &str) -> Result<Bytes, String> {
    match text.strip_suffix("/s") {
        Some(text) => size(text),
        None => Err(format!("must be a size per second such as \"3GiB/s\", found {text:?}")),
    }
}

/// Reads `5%` into 0.05.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let wrong = || format!("must be {PERCENT}, found {text:?}");
    let number = text.strip_suffix('%').ok_or_else(wrong)?;
    let exact = Decimal::parse(number).ok_or_else(wrong)?;
    match exact.times(10_000) {
        Ok(parts) => Ok(parts as f64 / 1e6),
        Err(_) => Err(format!("is {text:?}; a share has at most four decimals in percent")),
    }
}

/// Reads the decimal text of a number into parts per million.
pub(crate) fn ppm(text: &str) -> Result<Ppm, String> {
    let wrong = || format!("must be a decimal number such as 0.5, found {text}");
    let parts = match Decimal::parse(text).ok_or_else(wrong)?.times(1_000_000) {
        Ok(parts) => parts,
        Err(NotWhole::Fraction) => return Err(format!("is {text}; at most six decimals are possible")),
        Err(NotWhole::TooLarge) => return Err(format!("is {text}; at most 4294 is possible")),
    };
    u32::try_from(parts).map(Ppm::new).map_err(|_| format!("is {text}; at most 4294 is possible"))
}

/// Reads a time, a share or a size into the report's unit: seconds, a ratio, bytes.
pub(crate) fn figure(text: &str) -> Result<f64, String> {
    if text.ends_with('%') {
        return percent(text);
    }
    let unit = text.trim_start_matches(|one: char| one.is_ascii_digit() || matches!(one, '.' | '_' | '+' | '-'));
    if scale(&TIMES, unit).is_some() {
        return span(text).map(|span| span.as_nanos() as f64 / 1e9);
    }
    if scale(&SIZES, unit).is_some() {
        return size(text).map(|size| size.get() as f64);
    }
    Err(format!("must be a number, {TIME}, {PERCENT} or {SIZE}, found {text:?}"))
}

fn split<'a>(text: &'a str, wanted: &str) -> Result<(Decimal, &'a str), String> {
    let at = text.find(|one: char| !one.is_ascii_digit() && !matches!(one, '.' | '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    match Decimal::parse(number) {
        Some(number) => Ok((number, unit)),
        None => Err(format!("must be {wanted}, found {text:?}")),
    }
}

fn scale(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale)
}

fn no_unit(what: &str, unit: &str, units: &[(&str, u64)]) -> String {
    let names = units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if unit.is_empty() {
        format!("needs a unit; a {what} is counted in {names}")
    } else {
        format!("has the unit {unit:?}; a {what} is counted in {names}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_nanoseconds() {
        for (text, nanos) in [
            ("600s", 600_000_000_000),
            ("2ms", 2_000_000),
            ("1.5us", 1_500),
            ("100ns", 100),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0s", 0),
            ("0.1s", 100_000_000),
            ("0.000000001s", 1),
        ] {
            assert_eq!(span(text), Ok(Span::from_nanos(nanos)), "{text}");
        }
        for text in ["0.1ns", "1.0000000001s", "5", "s", "-1s", "1 s", "1sec", "600000h00", "9999999h"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_that_is_printed_reads_back() {
        for nanos in [0, 1, 999, 1_000, 1_500_000, 4_200_000_001, 3_600_000_000_000, u64::MAX] {
            let span_there = Span::from_nanos(nanos);
            assert_eq!(span(&span_there.to_string()), Ok(span_there));
        }
    }

    #[test]
    fn sizes_know_both_kinds_of_prefixes() {
        assert_eq!(size("16GiB"), Ok(Bytes::from_mib(16 << 10)));
        assert_eq!(size("8.5GiB"), Ok(Bytes::new(9_126_805_504)));
        assert_eq!(size("1GB"), Ok(Bytes::new(1_000_000_000)));
        assert_eq!(size("0.1KiB"), Ok(Bytes::new(103)));
        assert_eq!(size(&Bytes::from_mib(512).to_string()), Ok(Bytes::from_mib(512)));
        assert_eq!(bandwidth("3GiB/s"), Ok(Bytes::from_mib(3 << 10)));
        assert!(size("16").is_err() && size("16gib").is_err() && bandwidth("3GiB").is_err());
    }

    #[test]
    fn figures_come_in_the_units_of_the_report() {
        assert_eq!(figure("50ms"), Ok(0.05));
        assert_eq!(figure("5%"), Ok(0.05));
        assert_eq!(figure("1KiB"), Ok(1024.0));
        assert!(figure("fast").is_err());
    }

    #[test]
    fn shares_have_six_decimals() {
        assert_eq!(ppm("0.1"), Ok(Ppm::new(100_000)));
        assert_eq!(ppm("1"), Ok(Ppm::ONE));
        assert!(ppm("0.1234567").unwrap_err().contains("six decimals"));
        assert!(ppm("5000").is_err() && ppm("-1").is_err() && ppm("nan").is_err());
    }
}
