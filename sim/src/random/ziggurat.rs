//! Exponential and normal numbers by the ziggurat method (Marsaglia and Tsang, 2000), in the variant of Doornik (2005):
//! 256 layers of equal area; the layer comes from the low 8 bits of a number, the place in it from the high 52.

use std::sync::LazyLock;

use super::Stream;

const LAYERS: usize = 256;

/// Where the tail begins and the area of a layer, for 256 layers.
const EXPONENTIAL: (f64, f64) = (7.697_117_470_131_05, 0.003_949_659_822_581_557);
const NORMAL: (f64, f64) = (3.654_152_885_361_009, 0.004_928_673_233_992_336);

/// The right edges of the layers, from the lowest, and the densities there.
struct Tables {
    edges: [f64; LAYERS + 1],
    densities: [f64; LAYERS + 1],
}

static EXPONENTIAL_TABLES: LazyLock<Tables> =
    LazyLock::new(|| Tables::new(EXPONENTIAL, exponential_density, |y| -libm::log(y)));
static NORMAL_TABLES: LazyLock<Tables> =
    LazyLock::new(|| Tables::new(NORMAL, normal_density, |y| (-2.0 * libm::log(y)).sqrt()));

impl Tables {
    fn new((tail, area): (f64, f64), density: fn(f64) -> f64, inverse: fn(f64) -> f64) -> Tables {
        let mut edges = [0.0; LAYERS + 1];
        edges[0] = area / density(tail);
        edges[1] = tail;
        for layer in 2..LAYERS {
            edges[layer] = inverse(area / edges[layer - 1] + density(edges[layer - 1]));
        }
        Tables { edges, densities: edges.map(density) }
    }

    /// Whether a point at `x` in the wedge of `layer` lies under the density.
    #[cold]
    fn accepts(&self, layer: usize, x: f64, stream: &mut Stream, density: fn(f64) -> f64) -> Option<f64> {
        let (low, high) = (self.densities[layer], self.densities[layer + 1]);
        (high + (low - high) * stream.uniform() < density(x)).then_some(x)
    }
}

/// A number of the exponential distribution with mean 1.
#[inline]
pub fn exponential(stream: &mut Stream) -> f64 {
    let tables = &*EXPONENTIAL_TABLES;
    loop {
        let bits = stream.bits();
        let layer = (bits & 0xff) as usize;
        let x = open_uniform(bits >> 12) * tables.edges[layer];
        if x < tables.edges[layer + 1] {
            return x;
        }
        if layer == 0 {
            return EXPONENTIAL.0 - libm::log(open_uniform(stream.bits() >> 12));
        }
        if let Some(x) = tables.accepts(layer, x, stream, exponential_density) {
            return x;
        }
    }
}

/// A number of the standard normal distribution.
#[inline]
pub fn normal(stream: &mut Stream) -> f64 {
    let tables = &*NORMAL_TABLES;
    loop {
        let bits = stream.bits();
        let layer = (bits & 0xff) as usize;
        let signed = 2.0 * open_uniform(bits >> 12) - 1.0;
        let x = signed * tables.edges[layer];
        if x.abs() < tables.edges[layer + 1] {
            return x;
        }
        if layer == 0 {
            return normal_tail(stream, signed);
        }
        if let Some(x) = tables.accepts(layer, x, stream, normal_density) {
            return x;
        }
    }
}

/// A number beyond the last layer, on the side of `signed` (Marsaglia, 1964).
#[cold]
fn normal_tail(stream: &mut Stream, signed: f64) -> f64 {
    loop {
        let x = libm::log(open_uniform(stream.bits() >> 12)) / NORMAL.0;
        let y = libm::log(open_uniform(stream.bits() >> 12));
        if -2.0 * y >= x * x {
            return if signed < 0.0 { x - NORMAL.0 } else { NORMAL.0 - x };
        }
    }
}

/// The middle of one of 2^52 equal parts of (0, 1): the number of [1, 2) with the fraction `part`, moved down by half a
/// part less than 1. Both steps are exact.
#[inline]
fn open_uniform(part: u64) -> f64 {
    f64::from_bits(0x3ff0_0000_0000_0000 | part) - (1.0 - f64::EPSILON / 2.0)
}

fn exponential_density(x: f64) -> f64 {
    libm::exp(-x)
}

fn normal_density(x: f64) -> f64 {
    libm::exp(-0.5 * x * x)
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Exp1, StandardNormal};

    use super::*;

    const DRAWS: usize = 400_000;

    /// The largest distance between two empirical distribution functions (Kolmogorov and Smirnov).
    fn distance(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
        a.sort_unstable_by(f64::total_cmp);
        b.sort_unstable_by(f64::total_cmp);
        let below = |of: &[f64], x: f64| of.partition_point(|&value| value <= x) as f64 / of.len() as f64;
        a.iter().map(|&x| (below(&a, x) - below(&b, x)).abs()).fold(0.0, f64::max)
    }

    /// Both samples come from one distribution with a probability of 0.001 of a larger distance.
    const CRITICAL: f64 = 1.95 * 0.002_236_068;

    fn own(draw: fn(&mut Stream) -> f64) -> Vec<f64> {
        let mut stream = Stream::from_seed(11);
        (0..DRAWS).map(|_| draw(&mut stream)).collect()
    }

    fn reference(draw: impl Fn(&mut rand_xoshiro::Xoshiro256PlusPlus) -> f64) -> Vec<f64> {
        let mut generator = rand::SeedableRng::seed_from_u64(12);
        (0..DRAWS).map(|_| draw(&mut generator)).collect()
    }

    #[test]
    fn exponentials_have_the_distribution_of_an_independent_implementation() {
        assert!(distance(own(exponential), reference(|generator| Exp1.sample(generator))) < CRITICAL);
    }

    #[test]
    fn normals_have_the_distribution_of_an_independent_implementation() {
        assert!(distance(own(normal), reference(|generator| StandardNormal.sample(generator))) < CRITICAL);
    }

    #[test]
    fn tails_have_their_weight() {
        let beyond = |values: Vec<f64>, from: f64| values.into_iter().filter(|&x| x > from).count() as f64;
        // Expected 400,000 * e^-7.697 = 181.6 and 400,000 * Q(3.654) = 51.6, each within four standard deviations.
        assert!((beyond(own(exponential), EXPONENTIAL.0) - 181.6).abs() < 54.0);
        assert!((beyond(own(normal), NORMAL.0) - 51.6).abs() < 29.0);
    }

    #[test]
    fn uniforms_are_the_middles_of_equal_parts() {
        let width = f64::EPSILON;
        assert_eq!(open_uniform(0), 0.5 * width);
        assert_eq!(open_uniform(12_345), 12_345.5 * width);
        assert_eq!(open_uniform((1 << 52) - 1), 1.0 - 0.5 * width);
    }

    #[test]
    fn the_layers_close_at_the_top() {
        // The area above the last edge up to the mode is a layer's area as well.
        for (tables, (_, area)) in [(&*EXPONENTIAL_TABLES, EXPONENTIAL), (&*NORMAL_TABLES, NORMAL)] {
            let top = tables.edges[LAYERS - 1] * (1.0 - tables.densities[LAYERS - 1]);
            assert!((top / area - 1.0).abs() < 1e-6, "{}", top / area);
        }
    }
}
