//! The numbers of the simulator's service from measured points.
//!
//! **Slots.** A prompt of P tokens prefills in `prefill_fixed + prefill_per_token * P`; b generations side by side each
//! make a token in `decode_alpha + decode_beta * b`. **Batch.** B inputs take `alpha + beta * B`. All of them are straight
//! lines, fitted by least squares over relative errors, because a point that takes ten times as long is not ten times as
//! true; and none of their numbers is below zero, because no work takes less time for being more.

/// A straight line; both numbers are at least zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// At zero, in milliseconds.
    pub fixed: f64,
    /// For each, in milliseconds.
    pub each: f64,
}

/// What was measured of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// How many.
    pub size: f64,
    /// How long that took, in milliseconds.
    pub millis: f64,
}

/// The line through `points`: one point says nothing of what is fixed, so everything is per piece then.
pub fn line(points: &[Point]) -> Line {
    let points: Vec<Point> = points.iter().copied().filter(|point| point.millis > 0.0 && point.size > 0.0).collect();
    let sum =
        |of: &dyn Fn(&Point) -> f64| points.iter().map(|point| of(point) / (point.millis * point.millis)).sum::<f64>();
    let (weight, size, square) = (sum(&|_| 1.0), sum(&|point| point.size), sum(&|point| point.size * point.size));
    let (time, both) = (sum(&|point| point.millis), sum(&|point| point.size * point.millis));
    if square <= 0.0 {
        return Line::default();
    }
    let through_zero = Line { fixed: 0.0, each: both / square };
    let determinant = weight * square - size * size;
    if determinant <= weight * square * 1e-9 {
        return through_zero;
    }
    let (fixed, each) = ((time * square - size * both) / determinant, (weight * both - size * time) / determinant);
    if fixed < 0.0 {
        through_zero
    } else if each < 0.0 {
        Line { fixed: time / weight, each: 0.0 }
    } else {
        Line { fixed, each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<Point> {
        pairs.iter().map(|&(size, millis)| Point { size, millis }).collect()
    }

    #[test]
    fn a_line_comes_back() {
        let found = line(&points(&[(1.0, 7.0), (2.0, 9.0), (4.0, 13.0), (8.0, 21.0)]));
        assert!((found.fixed - 5.0).abs() < 1e-9 && (found.each - 2.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn no_number_is_below_zero() {
        let falling = line(&points(&[(1.0, 10.0), (2.0, 9.0), (4.0, 8.0)]));
        assert!(falling.each == 0.0 && (8.0..10.0).contains(&falling.fixed), "{falling:?}");
        let steep = line(&points(&[(1.0, 1.0), (2.0, 10.0), (4.0, 30.0)]));
        assert!(steep.fixed == 0.0 && steep.each > 0.0, "{steep:?}");
    }

    #[test]
    fn little_that_is_known_is_no_reason_to_break() {
        assert_eq!(line(&[]), Line::default());
        assert_eq!(line(&points(&[(0.0, 3.0), (2.0, 0.0)])), Line::default());
        assert_eq!(line(&points(&[(4.0, 8.0)])), Line { fixed: 0.0, each: 2.0 });
        assert_eq!(line(&points(&[(4.0, 8.0), (4.0, 8.0)])), Line { fixed: 0.0, each: 2.0 });
    }
}
