//! Poisson probabilities as lists.

use statrs::function::gamma::ln_gamma;

/// Probabilities below this are left out.
const NEGLIGIBLE: f64 = 1e-18;

/// The probabilities of 0, 1, 2, .. events with this mean, as far as they matter. Built from the most likely number
/// outwards, so that large means do not underflow.
pub(super) fn poisson(mean: f64) -> Vec<f64> {
    let mode = mean.floor() as usize;
    let peak = (mode as f64 * ln_or_zero(mean) - mean - ln_gamma(mode as f64 + 1.0)).exp();
    let mut weights = vec![0.0; mode + 1];
    weights[mode] = peak;
    for n in (0..mode).rev() {
        weights[n] = weights[n + 1] * (n as f64 + 1.0) / mean;
    }
    let mut weight = peak;
    for n in mode + 1.. {
        weight *= mean / n as f64;
        if weight < NEGLIGIBLE {
            break;
        }
        weights.push(weight);
    }
    weights
}

/// The probabilities of 0, 1, 2, .. Poisson events with rate `rate` in an exponential time with mean `mean`, as far as
/// they matter: geometric.
pub(super) fn geometric(rate: f64, mean: f64) -> Vec<f64> {
    let ratio = rate * mean / (1.0 + rate * mean);
    let mut weights = Vec::new();
    let mut weight = 1.0 - ratio;
    while weight >= NEGLIGIBLE {
        weights.push(weight);
        weight *= ratio;
    }
    weights
}

/// Running sums.
pub(super) fn cumulated(weights: &[f64]) -> Vec<f64> {
    weights
        .iter()
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect()
}

fn ln_or_zero(value: f64) -> f64 {
    if value > 0.0 { value.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_have_the_mean_for_small_and_large_means() {
        for mean in [0.0, 0.3, 1.0, 17.5, 2000.0] {
            let weights = poisson(mean);
            let sum: f64 = weights.iter().sum();
            let first: f64 = weights.iter().enumerate().map(|(n, weight)| n as f64 * weight).sum();
            assert!((sum - 1.0).abs() < 1e-11, "{mean}: {sum}");
            assert!((first - mean).abs() <= 1e-11 * mean, "{mean}: {first}");
        }
        assert!((poisson(0.3)[2] - 0.09 / 2.0 * (-0.3_f64).exp()).abs() < 1e-15);
    }

    #[test]
    fn events_in_an_exponential_time_are_geometric() {
        let weights = geometric(3.0, 0.5);
        assert!((weights[2] - 0.4 * 0.36).abs() < 1e-15);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
}
