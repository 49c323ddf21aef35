//! The histogram against sorted samples and against another implementation.

use rand_distr::{Distribution, Exp, LogNormal};
use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
use windtunnel_reports::metrics::{Histogram, Quantile};

const SAMPLES: usize = 400_000;

/// Relative errors of the usual quantiles.
fn worst_error(draw: impl Fn(&mut Xoshiro256PlusPlus) -> f64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut values: Vec<u64> = (0..SAMPLES).map(|_| draw(&mut rng) as u64).collect();
    let mut ours = Histogram::default();
    let mut theirs = hdrhistogram::Histogram::<u64>::new(4).unwrap();
    for value in &values {
        ours.record(*value);
        theirs.record(*value).unwrap();
    }
    values.sort_unstable();
    let quantiles = [Quantile::P50, Quantile::P90, Quantile::P95, Quantile::P99, Quantile::P999, Quantile::ppm(1_000)];
    let errors = quantiles.map(|p| {
        let exact = values[p.rank(SAMPLES as u64) as usize - 1] as f64;
        let other = theirs.value_at_quantile(p.share()) as f64;
        let got = ours.quantile(p).unwrap();
        assert!((got / other - 1.0).abs() < 0.0025, "{got} is far from hdrhistogram's {other} at {}", p.share());
        (got / exact - 1.0).abs()
    });
    errors.into_iter().fold(0.0, f64::max)
}

#[test]
fn quantiles_of_an_exponential_are_within_two_thousandths() {
    let times = Exp::new(1e-7).unwrap();
    let error = worst_error(|rng| times.sample(rng));
    assert!(error < 0.002, "{error}");
}

#[test]
fn quantiles_of_a_lognormal_are_within_two_thousandths() {
    let times = LogNormal::new(16.0, 1.5).unwrap();
    let error = worst_error(|rng| times.sample(rng));
    assert!(error < 0.002, "{error}");
}

#[test]
fn the_mean_is_exact() {
    let mut histogram = Histogram::default();
    (1..=1_000_000u64).for_each(|value| histogram.record(value * 3_001));
    assert_eq!(histogram.sum(), 3_001 * 1_000_000 * 1_000_001 / 2);
    assert_eq!(histogram.mean(), Some(3_001.0 * 1_000_001.0 / 2.0));
}
