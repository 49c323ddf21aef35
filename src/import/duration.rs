//! Lengths of time as Go writes them (`1h30m`, `1.5s`), and as they are written here: one number and one unit.

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds; `None` if that is no length of time of at most a few centuries.
pub fn read(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0_u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(scaled(number, *size)?)?;
        rest = after;
    }
    Some(sum)
}

/// A decimal number times a size; digits beyond it are cut off.
fn scaled(number: &str, size: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole.checked_mul(size)?;
    let mut place = size;
    for digit in part.chars() {
        place /= 10;
        sum = sum.checked_add(u64::from(digit.to_digit(10)?).checked_mul(place)?)?;
    }
    Some(sum)
}

/// In the largest unit in which it is whole.
pub fn written(nanoseconds: u64) -> String {
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let largest =
        [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
            .into_iter()
            .find(|(_, size)| nanoseconds.is_multiple_of(*size));
    let (unit, size) = largest.unwrap_or(("ns", 1));
    format!("{}{unit}", nanoseconds / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_rewritten_in_one_unit() {
        for (go, here) in [
            ("5m", "5m"),
            ("1h30m", "90m"),
            ("1.5s", "1500ms"),
            ("500ms", "500ms"),
            ("0s", "0s"),
            ("0", "0s"),
            ("2m0s", "2m"),
        ] {
            assert_eq!(read(go).map(written).as_deref(), Some(here), "{go}");
        }
        for wrong in ["", "5", "5 m", "-3s", "s", ".s", "3sec", "99999999999999h", "1..5s"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
