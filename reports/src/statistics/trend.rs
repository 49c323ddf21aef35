//! A straight line through points, and how sure its slope is.

/// The slope of the least-squares line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Units of y per unit of x.
    pub slope: f64,
    /// Its standard error, as if the deviations were independent.
    pub error: f64,
    /// Degrees of freedom: points less two.
    pub freedom: usize,
}

/// The least-squares line through at least three points at different places.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 3 {
        return None;
    }
    let (mean_x, mean_y) = (mean(points.iter().map(|point| point.0)), mean(points.iter().map(|point| point.1)));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    let rest: f64 = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
    let freedom = n - 2;
    Some(Trend { slope, error: (rest / freedom as f64 / spread).sqrt(), freedom })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len();
    values.sum::<f64>() / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_is_found_without_error() {
        let points: Vec<(f64, f64)> = (0..10).map(|x| (f64::from(x), 3.0 + 0.5 * f64::from(x))).collect();
        let trend = trend(&points).unwrap();
        assert!((trend.slope - 0.5).abs() < 1e-12 && trend.error < 1e-12);
    }

    /// Anscombe 1973, first set: slope 0.500, standard error 0.118.
    #[test]
    fn the_error_is_that_of_the_textbook() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let trend = trend(&points).unwrap();
        assert!((trend.slope - 0.500).abs() < 1e-3 && (trend.error - 0.1179).abs() < 1e-4, "{trend:?}");
    }

    #[test]
    fn too_few_points_have_no_slope() {
        assert_eq!(trend(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(trend(&[(1.0, 1.0); 5]), None);
    }
}
