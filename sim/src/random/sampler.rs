//! Distributions of scenario files, ready to be drawn from.

use windtunnel_config::Distribution;
use windtunnel_core::Span;

use super::Stream;

/// A distribution with everything worked out that does not depend on the draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampler {
    /// Always this; draws nothing.
    Constant(f64),
    /// `low + width * U`.
    Uniform {
        /// The least value.
        low: f64,
        /// From the least value to the most.
        width: f64,
    },
    /// `mean * E`.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// `median * exp(sigma * Z)`.
    Lognormal {
        /// Its median.
        median: f64,
        /// The standard deviation of its logarithm.
        sigma: f64,
    },
    /// Gamma, by Marsaglia and Tsang (2000).
    Gamma(Gamma),
    /// One of these, each as likely.
    Empirical(Vec<f64>),
}

/// A gamma distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gamma {
    /// Shape, above 0.
    shape: f64,
    /// Mean / shape.
    scale: f64,
}

impl Sampler {
    /// Draws from `distribution`.
    pub fn new(distribution: &Distribution) -> Sampler {
        match *distribution {
            Distribution::Constant(value) => Sampler::Constant(value),
            Distribution::Uniform { low, high } => Sampler::Uniform { low, width: high - low },
            Distribution::Exponential { mean } => Sampler::Exponential { mean },
            Distribution::Lognormal { median, cv } => Sampler::Lognormal { median, sigma: libm::log1p(cv * cv).sqrt() },
            Distribution::Gamma { mean, cv } => Sampler::gamma(mean, cv),
            Distribution::Empirical(ref values) => Sampler::Empirical(values.clone()),
        }
    }

    /// Gamma with that mean and coefficient of variation; a coefficient of 0 is the constant.
    pub fn gamma(mean: f64, cv: f64) -> Sampler {
        let square = cv * cv;
        if square > 0.0 && mean > 0.0 {
            Sampler::Gamma(Gamma { shape: 1.0 / square, scale: mean * square })
        } else {
            Sampler::Constant(mean)
        }
    }

    /// One value.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Sampler::Constant(value) => *value,
            Sampler::Uniform { low, width } => low + width * stream.uniform(),
            Sampler::Exponential { mean } => mean * stream.exponential(),
            Sampler::Lognormal { median, sigma } => median * libm::exp(sigma * stream.normal()),
            Sampler::Gamma(gamma) => gamma.draw(stream),
            Sampler::Empirical(values) => values.get(stream.below(values.len())).copied().unwrap_or(0.0),
        }
    }

    /// One value in seconds as a span, rounded to the nearest nanosecond; a negative one is no time.
    #[inline]
    pub fn draw_span(&self, stream: &mut Stream) -> Span {
        Span::from_nanos((self.draw(stream) * 1e9 + 0.5) as u64)
    }
}

impl Gamma {
    fn draw(self, stream: &mut Stream) -> f64 {
        if self.shape >= 1.0 {
            return self.scale * unit_gamma(self.shape, stream);
        }
        // A gamma of a shape a below 1 is one of shape a + 1 times U^(1/a) (the same paper, section 6).
        let larger = unit_gamma(self.shape + 1.0, stream);
        self.scale * larger * libm::pow(1.0 - stream.uniform(), 1.0 / self.shape)
    }
}

/// Gamma of a shape of at least 1 and scale 1.
fn unit_gamma(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let u = 1.0 - stream.uniform();
        let square = x * x;
        if u < 1.0 - 0.0331 * square * square || libm::log(u) < 0.5 * square + d * (1.0 - v + libm::log(v)) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;

    fn moments(sampler: &Sampler) -> (f64, f64) {
        let mut stream = Stream::from_seed(5);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let value = sampler.draw(&mut stream);
            sum += value;
            squares += value * value;
        }
        let mean = sum / DRAWS as f64;
        (mean, (squares / DRAWS as f64 - mean * mean).sqrt() / mean)
    }

    #[test]
    fn every_distribution_has_its_mean_and_variation() {
        // The mean of a lognormal is median * sqrt(1 + cv^2).
        let cases = [
            (Distribution::Constant(7.0), 7.0, 0.0),
            (Distribution::Uniform { low: 1.0, high: 3.0 }, 2.0, 0.288_675),
            (Distribution::Exponential { mean: 5.0 }, 5.0, 1.0),
            (Distribution::Lognormal { median: 400.0, cv: 0.75 }, 500.0, 0.75),
            (Distribution::Gamma { mean: 3.0, cv: 0.5 }, 3.0, 0.5),
            (Distribution::Gamma { mean: 3.0, cv: 2.0 }, 3.0, 2.0),
            (Distribution::Empirical(vec![1.0, 2.0, 6.0]), 3.0, 0.720_082),
        ];
        for (distribution, mean, cv) in cases {
            let (measured_mean, measured_cv) = moments(&Sampler::new(&distribution));
            assert!((measured_mean / mean - 1.0).abs() < 0.015, "{distribution:?}: mean {measured_mean}");
            assert!((measured_cv - cv).abs() < 0.03 * (1.0 + cv), "{distribution:?}: cv {measured_cv}");
        }
    }

    #[test]
    fn a_constant_leaves_its_stream_alone() {
        let mut stream = Stream::from_seed(5);
        Sampler::new(&Distribution::Constant(3.4)).draw(&mut stream);
        Sampler::gamma(2.0, 0.0).draw(&mut stream);
        assert_eq!(stream.bits(), Stream::from_seed(5).bits());
    }

    #[test]
    fn spans_are_rounded_to_the_nearest() {
        let mut stream = Stream::from_seed(5);
        assert_eq!(Sampler::Constant(0.000_000_001_6).draw_span(&mut stream), Span::from_nanos(2));
    }
}
