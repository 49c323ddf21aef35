//! From values to pixels, and which values get a tick.

use super::data::{Axis, Spacing, Unit};

/// An axis with its range, laid along pixels.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    unit: Unit,
    spacing: Spacing,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// Linear axes begin at zero unless all values are above this share of the largest.
const FAR_FROM_ZERO: f64 = 0.6;

/// Ticks of a linear axis, about.
const TICKS: f64 = 7.0;

impl Scale {
    /// An axis that shows all `values` (those that its spacing can), its ends on ticks.
    pub(super) fn covering(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        let shown = |value: &f64| value.is_finite() && (axis.spacing == Spacing::Linear || *value > 0.0);
        let (low, high) = values
            .filter(shown)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match axis.spacing {
            Spacing::Linear => linear_ends(low, high),
            Spacing::Logarithmic => logarithmic_ends(low, high),
        };
        Scale { unit: axis.unit, spacing: axis.spacing, low, high, from: 0.0, to: 1.0 }
    }

    /// The same, from one pixel to another.
    pub(super) fn along(self, from: f64, to: f64) -> Scale {
        Scale { from, to, ..self }
    }

    /// The same with its ends at the values themselves instead of on ticks.
    pub(super) fn ending_at(self, low: f64, high: f64) -> Scale {
        if low < high { Scale { low, high, ..self } } else { self }
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// The pixel of a value; values beyond the ends are drawn at them.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = match self.spacing {
            Spacing::Linear => (value - self.low) / (self.high - self.low),
            Spacing::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + (self.to - self.from) * share
    }

    pub(super) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Ticks with their labels, ascending.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let ticks = match self.spacing {
            Spacing::Linear => linear_ticks(self.low, self.high),
            Spacing::Logarithmic => logarithmic_ticks(self.low, self.high),
        };
        let label = |tick: f64| match self.spacing {
            Spacing::Linear => written(tick, self.unit, self.high),
            Spacing::Logarithmic => written(tick, self.unit, tick),
        };
        ticks.into_iter().map(|tick| (tick, label(tick))).collect()
    }
}

/// A value in words, with as many digits as it needs and at most three.
pub(super) fn written(value: f64, unit: Unit, like: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    match unit {
        Unit::Number => match like.abs() {
            size if size >= 1e6 => format!("{}M", digits(value / 1e6)),
            size if size >= 1e3 => format!("{}k", digits(value / 1e3)),
            _ => digits(value),
        },
        Unit::Seconds => match like.abs() {
            size if size >= 1.0 => format!("{} s", digits(value)),
            size if size >= 1e-3 => format!("{} ms", digits(value * 1e3)),
            _ => format!("{} \u{b5}s", digits(value * 1e6)),
        },
        Unit::Share => format!("{}%", digits(value * 100.0)),
    }
}

fn digits(value: f64) -> String {
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn linear_ends(low: f64, high: f64) -> (f64, f64) {
    if low > high {
        return (0.0, 1.0);
    }
    let low = if low > FAR_FROM_ZERO * high { low } else { low.min(0.0) };
    if low == high {
        return if low == 0.0 { (0.0, 1.0) } else { (low.min(0.0), high.max(0.0)) };
    }
    let step = step_for(high - low);
    ((low / step).floor() * step, (high / step).ceil() * step)
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let step = step_for(high - low);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// 1, 2 or 5 times a power of ten.
fn step_for(range: f64) -> f64 {
    let rough = range / TICKS;
    let power = 10.0_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999).unwrap_or(10.0);
    factor * power
}

/// The next of 1, 2, 5 times a power of ten outside of the values.
fn logarithmic_ends(low: f64, high: f64) -> (f64, f64) {
    if low > high {
        return (1.0, 10.0);
    }
    let below = handy(low).into_iter().rev().find(|value| *value <= low * 1.001);
    let above = handy(high).into_iter().find(|value| *value >= high * 0.999);
    let (below, above) = (below.unwrap_or(low), above.unwrap_or(high));
    if below < above { (below, above) } else { (below / 2.0, above * 2.0) }
}

/// 1, 2, 5 times powers of ten around a value.
fn handy(value: f64) -> Vec<f64> {
    let power = value.log10().floor() as i32;
    (power - 1..=power + 1).flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10.0_f64.powi(power))).collect()
}

/// Powers of ten, with 2 and 5 times them where there is room.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if high / low <= 2e3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all = (first..=last).flat_map(|power| factors.iter().map(move |factor| factor * 10.0_f64.powi(power)));
    all.filter(|tick| (low * 0.999..=high * 1.001).contains(tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: Unit, spacing: Spacing, low: f64, high: f64) -> Vec<String> {
        let axis = Axis { label: String::new(), unit, spacing };
        Scale::covering(&axis, [low, high].into_iter()).ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_axes_end_on_ticks_and_write_one_unit() {
        assert_eq!(labels(Unit::Number, Spacing::Linear, 200.0, 2380.0), ["0", "0.5k", "1k", "1.5k", "2k", "2.5k"]);
        assert_eq!(
            labels(Unit::Seconds, Spacing::Linear, 0.0, 0.0021),
            ["0", "0.5 ms", "1 ms", "1.5 ms", "2 ms", "2.5 ms"]
        );
        assert_eq!(labels(Unit::Share, Spacing::Linear, 0.0, 1.0), ["0", "20%", "40%", "60%", "80%", "100%"]);
        assert_eq!(labels(Unit::Number, Spacing::Linear, 960.0, 1000.0), ["0.96k", "0.97k", "0.98k", "0.99k", "1k"]);
    }

    #[test]
    fn logarithmic_axes_write_each_tick_in_its_unit() {
        let few = ["2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms"];
        assert_eq!(labels(Unit::Seconds, Spacing::Logarithmic, 0.0023, 0.08), few);
        let decades = ["100 \u{b5}s", "1 ms", "10 ms", "100 ms", "1 s"];
        assert_eq!(labels(Unit::Seconds, Spacing::Logarithmic, 0.0001, 1.0), decades);
    }

    #[test]
    fn an_axis_without_values_still_has_a_range() {
        assert_eq!(labels(Unit::Number, Spacing::Linear, f64::NAN, f64::NAN).len(), 6);
        assert_eq!(labels(Unit::Number, Spacing::Linear, 0.0, 0.0).len(), 6);
        assert!(labels(Unit::Number, Spacing::Logarithmic, 0.0, -1.0).len() >= 2);
        assert!(labels(Unit::Number, Spacing::Logarithmic, 5.0, 5.0).len() >= 2);
    }

    #[test]
    fn values_beyond_the_ends_are_drawn_at_them() {
        let axis = Axis { label: String::new(), unit: Unit::Number, spacing: Spacing::Logarithmic };
        let scale = Scale::covering(&axis, [1.0, 100.0].into_iter()).along(400.0, 0.0);
        assert_eq!((scale.at(10.0), scale.at(0.0), scale.at(f64::INFINITY)), (200.0, 400.0, 0.0));
    }
}
