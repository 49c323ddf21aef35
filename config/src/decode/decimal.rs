//! Decimal numbers as they are written, without a detour through binary fractions.

/// A non-negative decimal number: `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    exponent: i32,
}

/// Why a decimal has no whole number of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotWhole {
    /// A part of a unit is left.
    Fraction,
    /// More than 64 bits hold.
    TooLarge,
}

impl Decimal {
    /// Reads `12`, `0.5`, `1_000.25`, `2e-3`. `None` for anything else, and beyond 38 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (number, power) = match text.split_once(['e', 'E']) {
            Some((number, power)) => (number, power.parse::<i16>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = append(append(0, whole)?, fraction)?;
        let places = fraction.bytes().filter(u8::is_ascii_digit).count();
        Some(Decimal { digits, exponent: i32::from(power) - i32::try_from(places).ok()? })
    }

    /// How many units it is, `scale` units being one.
    pub fn times(self, scale: u64) -> Result<u64, NotWhole> {
        let (quotient, rest) = self.divided(scale)?;
        if rest == 0 { Ok(quotient) } else { Err(NotWhole::Fraction) }
    }

    /// The same, a part of a unit counted as a whole one.
    pub fn times_up(self, scale: u64) -> Result<u64, NotWhole> {
        let (quotient, rest) = self.divided(scale)?;
        quotient.checked_add(u64::from(rest != 0)).ok_or(NotWhole::TooLarge)
    }

    fn divided(self, scale: u64) -> Result<(u64, u128), NotWhole> {
        let Some(scaled) = self.digits.checked_mul(u128::from(scale)) else { return Err(NotWhole::TooLarge) };
        if scaled == 0 {
            return Ok((0, 0));
        }
        let power = 10u128.checked_pow(self.exponent.unsigned_abs());
        let (quotient, rest) = match (self.exponent < 0, power) {
            (true, Some(power)) => (scaled / power, scaled % power),
            (true, None) => (0, scaled),
            (false, Some(power)) => (scaled.checked_mul(power).ok_or(NotWhole::TooLarge)?, 0),
            (false, None) => return Err(NotWhole::TooLarge),
        };
        u64::try_from(quotient).map(|quotient| (quotient, rest)).map_err(|_| NotWhole::TooLarge)
    }
}

/// `digits` written on behind `number`; underscores only between digits.
fn append(number: u128, digits: &str) -> Option<u128> {
    if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    digits
        .chars()
        .filter(|&one| one != '_')
        .try_fold(number, |sum, one| sum.checked_mul(10)?.checked_add(u128::from(one.to_digit(10)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_where_binary_fractions_are_not() {
        let tenth = Decimal::parse("0.1").unwrap();
        assert_eq!(tenth.times(1_000_000), Ok(100_000));
        assert_eq!(Decimal::parse("0.000001").unwrap().times(1_000_000), Ok(1));
        assert_eq!(Decimal::parse("0.0000001").unwrap().times(1_000_000), Err(NotWhole::Fraction));
        assert_eq!(Decimal::parse("0.3000000000").unwrap().times(10), Ok(3));
        assert_eq!(Decimal::parse("5e-1").unwrap().times(10), Ok(5));
        assert_eq!(Decimal::parse("1_000.5").unwrap().times(2), Ok(2001));
        assert_eq!(Decimal::parse("1e30").unwrap().times(1), Err(NotWhole::TooLarge));
        assert_eq!(Decimal::parse("0e9999").unwrap().times(1), Ok(0));
        assert_eq!(Decimal::parse("1.1").unwrap().times_up(1), Ok(2));
    }

    #[test]
    fn what_is_no_plain_decimal_is_refused() {
        for text in ["", ".", "1.", ".5", "-1", "1e", "0x1", "nan", "inf", "1 ", "1__0", "_1", "1.2.3", "1e99999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
