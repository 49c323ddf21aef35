//! True service times, ready to be asked for.

use windtunnel_config::{Noise, Service};
use windtunnel_core::Span;

use crate::arrivals::UnitNoise;

/// How an instance of a model serves on one device, without its speed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceModel {
    /// T(B) = alpha + beta * B.
    Batch {
        /// T(B) in nanoseconds for B = 0, 1, .. up to the largest batch.
        times: Vec<f64>,
        /// Beyond that.
        beyond: (f64, f64),
        /// How T varies.
        noise: NoiseShape,
    },
    /// Continuous batching.
    Slots(SlotTimes),
}

/// How a batch's time varies around T(B).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoiseShape {
    /// Not at all.
    None,
    /// T(B) * E.
    Exponential,
    /// T(B) * exp(sigma * Z - sigma^2 / 2), which has the mean T(B).
    Lognormal {
        /// The standard deviation of the logarithm, sqrt(ln(1 + cv^2)).
        sigma: f64,
    },
}

/// Times of continuous batching, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotTimes {
    /// Per prompt.
    pub prefill_fixed: f64,
    /// Per prompt token.
    pub prefill_per_token: f64,
    /// Per decoding iteration.
    pub alpha: f64,
    /// Per decoding slot and iteration.
    pub beta: f64,
    /// Prefill done in one iteration beside decoding slots.
    pub slice: f64,
    /// Whether requests take times of their own.
    pub own: Own,
}

/// Whether requests take times of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// All take what their tokens take.
    None,
    /// Decoding takes its `exponential` times that, and the prefill more by its `normal`.
    Recorded,
}

/// What a grant asks of an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// So many nanoseconds of dedicated time.
    Time(f64),
    /// A prefill of so many nanoseconds of dedicated time, then so many tokens.
    Generation {
        /// The prefill.
        prefill: f64,
        /// Tokens, the first of which is out when the prefill ends.
        output_tokens: u32,
        /// Each of the others takes so many times as long as one of another request.
        stretch: f64,
    },
}

impl ServiceModel {
    /// The service of `service` in batches of up to `largest` inputs.
    pub fn new(service: &Service, largest: u32) -> ServiceModel {
        match *service {
            Service::Batch { alpha, beta, noise } => {
                let (alpha, beta) = (nanos(alpha), nanos(beta));
                let table = 0..=largest.min(65_536);
                ServiceModel::Batch {
                    times: table.map(|weight| alpha + beta * f64::from(weight)).collect(),
                    beyond: (alpha, beta),
                    noise: NoiseShape::new(noise),
                }
            }
            Service::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
                ServiceModel::Slots(SlotTimes {
                    prefill_fixed: nanos(prefill_fixed),
                    prefill_per_token: nanos(prefill_per_token),
                    alpha: nanos(decode_alpha),
                    beta: nanos(decode_beta),
                    slice: nanos(prefill_slice),
                    own: Own::None,
                })
            }
        }
    }

    /// The same for requests that were recorded with times of their own.
    #[must_use]
    pub fn recorded(self) -> ServiceModel {
        match self {
            ServiceModel::Slots(times) => ServiceModel::Slots(SlotTimes { own: Own::Recorded, ..times }),
            batch @ ServiceModel::Batch { .. } => batch,
        }
    }

    /// The time `work` takes that has a card of speed 1 for itself, in nanoseconds.
    pub fn alone(&self, work: Work) -> f64 {
        match (self, work) {
            (ServiceModel::Batch { .. } | ServiceModel::Slots(_), Work::Time(time)) => time,
            (ServiceModel::Batch { .. }, Work::Generation { prefill, .. }) => prefill,
            (ServiceModel::Slots(times), Work::Generation { prefill, output_tokens, stretch }) => {
                prefill + (times.alpha + times.beta) * f64::from(output_tokens.saturating_sub(1)) * stretch
            }
        }
    }

    /// The work of a grant of `weight` inputs whose first job has that noise and these sizes; `prompt_tokens` is of each
    /// input.
    #[inline]
    pub fn work(&self, weight: u32, noise: UnitNoise, prompt_tokens: u32, output_tokens: u32) -> Work {
        match self {
            ServiceModel::Batch { times, beyond: (alpha, beta), noise: shape } => {
                let time = match times.get(weight as usize) {
                    Some(time) => *time,
                    None => alpha + beta * f64::from(weight),
                };
                Work::Time(shape.varied(time, noise))
            }
            ServiceModel::Slots(times) => {
                let tokens = f64::from(prompt_tokens) * f64::from(weight);
                let prefill = times.prefill_fixed + times.prefill_per_token * tokens;
                match times.own {
                    Own::None => Work::Generation { prefill, output_tokens, stretch: 1.0 },
                    Own::Recorded => Work::Generation {
                        prefill: prefill * (1.0 + noise.normal),
                        output_tokens,
                        stretch: noise.exponential,
                    },
                }
            }
        }
    }
}

impl NoiseShape {
    fn new(noise: Noise) -> NoiseShape {
        match noise {
            Noise::None => NoiseShape::None,
            Noise::Exponential => NoiseShape::Exponential,
            Noise::Lognormal { cv } => NoiseShape::Lognormal { sigma: libm::log1p(cv * cv).sqrt() },
        }
    }

    #[inline]
    fn varied(self, time: f64, noise: UnitNoise) -> f64 {
        match self {
            NoiseShape::None => time,
            NoiseShape::Exponential => time * noise.exponential,
            NoiseShape::Lognormal { sigma } => time * libm::exp(sigma * noise.normal - 0.5 * sigma * sigma),
        }
    }
}

fn nanos(span: Span) -> f64 {
    span.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn batch(noise: Noise) -> ServiceModel {
        let service = Service::Batch { alpha: Span::from_millis(1), beta: Span::from_micros(500), noise };
        ServiceModel::new(&service, 32)
    }

    fn time(model: &ServiceModel, weight: u32, noise: UnitNoise) -> f64 {
        match model.work(weight, noise, 0, 0) {
            Work::Time(time) => time,
            Work::Generation { .. } => panic!("a batch generates nothing"),
        }
    }

    #[test]
    fn a_batch_takes_alpha_and_beta_for_each_input() {
        for (weight, expected) in [(1, 1.5e6), (32, 17e6), (100, 51e6)] {
            assert_eq!(time(&batch(Noise::None), weight, UnitNoise::NONE), expected);
        }
    }

    #[test]
    fn noise_keeps_the_mean_and_has_its_variation() {
        for (noise, cv) in [(Noise::Exponential, 1.0), (Noise::Lognormal { cv: 0.3 }, 0.3)] {
            let model = batch(noise);
            let mut stream = Stream::from_seed(3);
            let mut draw = || UnitNoise { exponential: stream.exponential(), normal: stream.normal() };
            let times: Vec<f64> = (0..200_000).map(|_| time(&model, 2, draw()) / 2e6).collect();
            let mean = times.iter().sum::<f64>() / 200_000.0;
            let spread = (times.iter().map(|time| (time - mean) * (time - mean)).sum::<f64>() / 200_000.0).sqrt();
            assert!((mean - 1.0).abs() < 0.01 && (spread - cv).abs() < 0.02, "{noise:?}: {mean} {spread}");
        }
    }

    #[test]
    fn a_prompt_is_prefilled_with_all_its_inputs() {
        let service = Service::Slots {
            prefill_fixed: Span::from_millis(5),
            prefill_per_token: Span::from_micros(200),
            decode_alpha: Span::from_millis(8),
            decode_beta: Span::from_micros(1500),
            prefill_slice: Span::from_micros(102_400),
        };
        let model = ServiceModel::new(&service, 1);
        assert_eq!(
            model.work(1, UnitNoise::NONE, 100, 7),
            Work::Generation { prefill: 25e6, output_tokens: 7, stretch: 1.0 }
        );
        assert_eq!(
            model.work(3, UnitNoise::NONE, 100, 0),
            Work::Generation { prefill: 65e6, output_tokens: 0, stretch: 1.0 }
        );
    }
}
