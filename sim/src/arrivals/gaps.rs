//! Times between the requests of an open workload.

use windtunnel_config::Arrivals;
use windtunnel_core::Span;

use crate::random::{Purpose, Sampler, Seed, Stream};

/// A process that says how long after the last request the next one comes, in nanoseconds at a scale of 1.
#[derive(Clone, Debug)]
pub enum Gaps {
    /// Independent exponential gaps.
    Poisson {
        /// Their mean.
        mean: f64,
        /// Where they come from.
        stream: Stream,
    },
    /// Independent gaps of another distribution.
    Renewal {
        /// Their distribution.
        gap: Sampler,
        /// Where they come from.
        stream: Stream,
    },
    /// Equal gaps; the first is a random part of one.
    Constant {
        /// A gap.
        gap: f64,
        /// The next one.
        next: f64,
    },
    /// A Poisson process whose rate changes.
    Modulated(Modulated),
}

/// A Markov-modulated Poisson process that goes through its states in a circle.
#[derive(Clone, Debug)]
pub struct Modulated {
    /// Requests per nanosecond in each state.
    rates: Vec<f64>,
    /// Mean stay in each state, in nanoseconds.
    means: Vec<f64>,
    state: usize,
    /// What is left of the stay in this state.
    left: f64,
    gaps: Stream,
    states: Stream,
}

impl Gaps {
    /// The process of `arrivals`, or `None` where the moments are given or depend on the end of earlier requests, or where
    /// nothing ever comes.
    pub fn new(arrivals: &Arrivals, seed: Seed) -> Option<Gaps> {
        let mut stream = seed.stream(Purpose::Gaps);
        match *arrivals {
            Arrivals::Poisson { rate } if rate > 0.0 => Some(Gaps::Poisson { mean: 1e9 / rate, stream }),
            Arrivals::Gamma { rate, cv } if rate > 0.0 => {
                Some(Gaps::Renewal { gap: Sampler::gamma(1e9 / rate, cv), stream })
            }
            Arrivals::Constant { rate } if rate > 0.0 => {
                Some(Gaps::Constant { gap: 1e9 / rate, next: 1e9 / rate * stream.uniform() })
            }
            Arrivals::Mmpp { ref rates, ref means } => Modulated::new(rates, means, seed).map(Gaps::Modulated),
            Arrivals::Poisson { .. }
            | Arrivals::Gamma { .. }
            | Arrivals::Constant { .. }
            | Arrivals::Clients { .. }
            | Arrivals::Trace(_)
            | Arrivals::At(_) => None,
        }
    }

    /// The next gap.
    #[inline]
    pub fn draw(&mut self) -> f64 {
        match self {
            Gaps::Poisson { mean, stream } => *mean * stream.exponential(),
            other => other.draw_other(),
        }
    }

    fn draw_other(&mut self) -> f64 {
        match self {
            Gaps::Poisson { mean, stream } => *mean * stream.exponential(),
            Gaps::Renewal { gap, stream } => gap.draw(stream),
            Gaps::Constant { gap, next } => std::mem::replace(next, *gap),
            Gaps::Modulated(modulated) => modulated.draw(),
        }
    }
}

impl Modulated {
    /// `None` unless requests come in some state that is entered. The first state is drawn in proportion to the means, so
    /// that the process is stationary from its start.
    fn new(rates: &[f64], means: &[Span], seed: Seed) -> Option<Modulated> {
        let rates: Vec<f64> = rates.iter().map(|rate| rate / 1e9).collect();
        let means: Vec<f64> = means.iter().map(|mean| mean.as_nanos() as f64).collect();
        if !rates.iter().zip(&means).any(|(&rate, &mean)| rate > 0.0 && mean > 0.0) {
            return None;
        }
        let mut states = seed.stream(Purpose::States);
        let state = drawn_in_proportion(&means, &mut states);
        let left = means[state] * states.exponential();
        Some(Modulated { rates, means, state, left, gaps: seed.stream(Purpose::Gaps), states })
    }

    /// A unit of exponential exposure is used up at the rate of each state in turn: one draw of the gaps per request,
    /// whatever the states do meanwhile.
    fn draw(&mut self) -> f64 {
        let mut exposure = self.gaps.exponential();
        let mut gap = 0.0;
        loop {
            let rate = self.rates[self.state];
            if exposure < self.left * rate {
                let stay = exposure / rate;
                self.left -= stay;
                return gap + stay;
            }
            exposure -= self.left * rate;
            gap += self.left;
            self.state = (self.state + 1) % self.rates.len();
            self.left = self.means[self.state] * self.states.exponential();
        }
    }
}

fn drawn_in_proportion(weights: &[f64], stream: &mut Stream) -> usize {
    let mut point = stream.uniform() * weights.iter().sum::<f64>();
    for (place, weight) in weights.iter().enumerate() {
        if point < *weight {
            return place;
        }
        point -= weight;
    }
    weights.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(replication: u32) -> Seed {
        Seed::of_workload(1, replication, "w")
    }

    #[test]
    fn constant_gaps_begin_at_a_random_phase() {
        let mut gaps = Gaps::new(&Arrivals::Constant { rate: 4.0 }, seed(0)).unwrap();
        let phase = gaps.draw();
        assert!((0.0..250e6).contains(&phase));
        assert_eq!([gaps.draw(), gaps.draw()], [250e6, 250e6]);
        assert_ne!(Gaps::new(&Arrivals::Constant { rate: 4.0 }, seed(1)).unwrap().draw(), phase);
    }

    #[test]
    fn a_modulated_process_has_its_long_run_rate() {
        // (5 * 5 s + 200 * 0.5 s) / 5.5 s = 22.73/s; 2000 cycles.
        let arrivals =
            Arrivals::Mmpp { rates: vec![5.0, 200.0], means: vec![Span::from_secs(5), Span::from_millis(500)] };
        let mut gaps = Gaps::new(&arrivals, seed(0)).unwrap();
        let mut now = 0.0;
        let mut count = 0;
        while now < 11_000e9 {
            now += gaps.draw();
            count += 1;
        }
        let rate = f64::from(count) / 11_000.0;
        assert!((rate / (125.0 / 5.5) - 1.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn a_state_without_requests_is_only_waited_through() {
        let arrivals = Arrivals::Mmpp { rates: vec![0.0, 100.0], means: vec![Span::from_secs(1), Span::from_secs(1)] };
        let mut gaps = Gaps::new(&arrivals, seed(0)).unwrap();
        let total: f64 = (0..10_000).map(|_| gaps.draw()).sum();
        assert!((total / 200e9 - 1.0).abs() < 0.3, "{total}");
    }

    #[test]
    fn nothing_comes_where_no_rate_is_positive() {
        let silent = Arrivals::Mmpp { rates: vec![0.0], means: vec![Span::from_secs(1)] };
        assert!(Gaps::new(&silent, seed(0)).is_none());
        assert!(Gaps::new(&Arrivals::Poisson { rate: 0.0 }, seed(0)).is_none());
    }
}
