//! Times and numbers as traces write them, into integers.

use jiff::civil::DateTime;

/// A time of day on some day, and whether the zone it is meant in was stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Nanoseconds since 1970 of a stamp with a zone.
    Zoned(i128),
    /// Nanoseconds since 1970 if the stamp is meant in UTC.
    Naive(i128),
}

/// Seconds with any number of decimals, into nanoseconds; decimals after the ninth are rounded.
pub fn seconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() > 18 || !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = (0..9).fold(0, |nanos, place| nanos * 10 + digit(fraction, place));
    let up = i128::from(digit(fraction, 9) >= 5);
    Some(whole * 1_000_000_000 + nanos + up)
}

fn digit(text: &str, place: usize) -> i128 {
    text.as_bytes().get(place).map_or(0, |byte| i128::from(byte - b'0'))
}

/// A whole number that may be written with decimals of zero, as in `472.0`.
pub fn tokens(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte == b'0') {
        return None;
    }
    whole.parse().ok()
}

/// `2023-11-16 18:17:03.9799600`, with 0 to 9 decimals, a `T` for the blank, and a zone such as `Z` or `+00:00` or none.
pub fn stamp(text: &str) -> Option<Stamp> {
    let zone_at = text.get(10..)?.find(['Z', 'z', '+', '-']).map(|at| at + 10);
    let (civil, zone) = text.split_at(zone_at.unwrap_or(text.len()));
    if civil.len() < "2023-11-16 18:17:03".len() {
        return None;
    }
    let local: DateTime = civil.trim_end().parse().ok()?;
    let nanos = local.duration_since(DateTime::new(1970, 1, 1, 0, 0, 0, 0).ok()?).as_nanos();
    if zone.is_empty() { Some(Stamp::Naive(nanos)) } else { Some(Stamp::Zoned(nanos - offset(zone)?)) }
}

/// Nanoseconds east of UTC of `Z`, `+01`, `-0130`, `+01:30`.
fn offset(zone: &str) -> Option<i128> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.get(1..)?.split(':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !matches!(digits.len(), 2 | 4) {
        return None;
    }
    let hours: i128 = digits.get(..2)?.parse().ok()?;
    let minutes: i128 = digits.get(2..4).map_or(Some(0), |minutes| minutes.parse().ok())?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        assert_eq!(seconds("12"), Some(12_000_000_000));
        assert_eq!(seconds("0.000000001"), Some(1));
        assert_eq!(seconds(".5"), Some(500_000_000));
        assert_eq!(seconds("1.30000000000000004"), Some(1_300_000_000));
        assert_eq!(seconds("1.9999999995"), Some(2_000_000_000));
        for nonsense in ["", ".", "-1", "1e3", "1,5", "nan", "1.2.3", "9999999999999999999"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn tokens_are_whole_numbers() {
        assert_eq!(tokens("472.0"), Some(472));
        assert_eq!(tokens("0"), Some(0));
        for nonsense in ["472.5", "-1", "", "many", "4294967296"] {
            assert_eq!(tokens(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn stamps_have_any_number_of_decimals_and_maybe_a_zone() {
        let day = 19_677 * 86_400 * 1_000_000_000_i128;
        let time = day + (18 * 3600 + 17 * 60 + 3) * 1_000_000_000;
        assert_eq!(stamp("2023-11-16 18:17:03.9799600"), Some(Stamp::Naive(time + 979_960_000)));
        assert_eq!(stamp("2023-11-16T18:17:03"), Some(Stamp::Naive(time)));
        assert_eq!(stamp("2023-11-16 18:17:03.123456789+00:00"), Some(Stamp::Zoned(time + 123_456_789)));
        assert_eq!(stamp("2023-11-16 18:17:03Z"), Some(Stamp::Zoned(time)));
        assert_eq!(stamp("2023-11-16 18:17:03.5-0130"), Some(Stamp::Zoned(time + 5_400_500_000_000)));
        for nonsense in ["2023-02-30 00:00:00", "2023-11-16", "18:17:03", "2023-11-16 18:17:03+1", "", "ä€ä€ä€ä€"]
        {
            assert_eq!(stamp(nonsense), None, "{nonsense}");
        }
    }
}
