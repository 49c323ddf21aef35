//! Numbers with units a person can read.

use crate::report::Figure;

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds.
    Seconds,
    /// A rate or a count.
    Number,
    /// A share of one.
    Share,
    /// Bytes.
    Bytes,
}

const MISSING: &str = "-";

/// The number alone.
pub(super) fn plain(figure: Option<Figure>, unit: Unit) -> String {
    figure.map_or_else(|| MISSING.to_owned(), |figure| value(figure.mean, unit))
}

/// The number with its interval, where it has one: `7.56 +- 0.02 ms`.
pub(super) fn with_interval(figure: Option<Figure>, unit: Unit) -> String {
    let Some(figure) = figure else { return MISSING.to_owned() };
    let Some(half) = figure.half() else { return value(figure.mean, unit) };
    let (scale, name) = scale(figure.mean, unit);
    let decimals = decimals(figure.mean / scale).max(decimals_for(half / scale)).min(6);
    let (mean, half) = (figure.mean / scale, half / scale);
    format!("{mean:.decimals$} +- {half:.decimals$}{name}")
}

/// A number with its unit.
pub(super) fn value(number: f64, unit: Unit) -> String {
    if !number.is_finite() {
        return "never".to_owned();
    }
    let (scale, name) = scale(number, unit);
    let scaled = number / scale;
    let decimals = decimals(scaled);
    format!("{scaled:.decimals$}{name}")
}

fn scale(number: f64, unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Number => (1.0, ""),
        Unit::Share => (0.01, "%"),
        Unit::Seconds if number == 0.0 => (1.0, " s"),
        Unit::Seconds if number.abs() < 1e-3 => (1e-6, " us"),
        Unit::Seconds if number.abs() < 1.0 => (1e-3, " ms"),
        Unit::Seconds => (1.0, " s"),
        Unit::Bytes if number < 1024.0 * 1024.0 * 1024.0 => (1024.0 * 1024.0, " MiB"),
        Unit::Bytes => (1024.0 * 1024.0 * 1024.0, " GiB"),
    }
}

/// Three digits where that takes decimals, none where the number is whole.
fn decimals(scaled: f64) -> usize {
    match scaled.abs() {
        whole if whole == whole.round() && whole < 1e6 => 0,
        small if small < 10.0 => 2,
        middle if middle < 1000.0 => 1,
        _ => 0,
    }
}

/// As many decimals as show the first two digits of an interval.
fn decimals_for(half: f64) -> usize {
    if half <= 0.0 || half >= 10.0 {
        return 0;
    }
    (1.0 - half.log10().floor()).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_size() {
        for (number, unit, text) in [
            (0.0, Unit::Seconds, "0 s"),
            (0.000_042_37, Unit::Seconds, "42.4 us"),
            (0.007_563, Unit::Seconds, "7.56 ms"),
            (1.5, Unit::Seconds, "1.50 s"),
            (f64::INFINITY, Unit::Seconds, "never"),
            (1882.35, Unit::Number, "1882"),
            (6.066, Unit::Number, "6.07"),
            (0.1234, Unit::Share, "12.3%"),
            (0.0, Unit::Share, "0%"),
            (9_126_805_504.0, Unit::Bytes, "8.50 GiB"),
        ] {
            assert_eq!(value(number, unit), text);
        }
    }

    #[test]
    fn an_interval_shares_the_unit_of_its_middle() {
        let figure = Figure { mean: 0.007_563, low: Some(0.007_543), high: Some(0.007_583), n: 10 };
        assert_eq!(with_interval(Some(figure), Unit::Seconds), "7.563 +- 0.020 ms");
        assert_eq!(with_interval(Some(Figure::bare(2.0, 1)), Unit::Number), "2");
        assert_eq!(with_interval(None, Unit::Number), "-");
    }
}
