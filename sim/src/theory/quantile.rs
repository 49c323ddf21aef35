//! Quantiles of a known distribution function.

/// The least time t with `below(t) >= p`, to a relative precision of 1e-13, by doubling from `scale` and halving. The
/// function must not fall and must reach p.
pub(super) fn quantile(p: f64, scale: f64, below: impl Fn(f64) -> f64) -> f64 {
    if below(0.0) >= p {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, scale);
    while below(high) < p {
        low = high;
        high *= 2.0;
    }
    while high - low > 1e-13 * high {
        let middle = 0.5 * (low + high);
        if below(middle) >= p {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_come_out_exactly_and_smooth_parts_precisely() {
        let exponential = |t: f64| 1.0 - 0.4 * (-t).exp();
        assert_eq!(quantile(0.5, 1.0, exponential), 0.0);
        assert!((quantile(0.99, 1e-3, exponential) - 40.0_f64.ln()).abs() < 1e-11);
        let step = |t: f64| if t >= 1.5 { 1.0 } else { 0.2 };
        assert!((quantile(0.9, 1.0, step) - 1.5).abs() < 1e-12);
    }
}
