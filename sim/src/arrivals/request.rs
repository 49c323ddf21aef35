//! A request and how its content is drawn.

use windtunnel_config::{Distribution, Noise, Scenario, Service, Workload};
use windtunnel_core::{ModelId, Span, Time, Wanted};

use crate::random::{Purpose, Sampler, Seed, Stream};

/// The client of a request that nobody waits for.
pub const NO_CLIENT: u32 = u32::MAX;

/// A request with everything random about it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Request {
    /// When it is sent.
    pub at: Time,
    /// After how long its client gives up; [`Span::MAX`]: never.
    pub patience: Span,
    /// What varies its service times.
    pub noise: UnitNoise,
    /// The place of its workload.
    pub workload: u32,
    /// Which client of a closed loop sends it, or [`NO_CLIENT`].
    pub client: u32,
    /// Inputs, at least 1.
    pub inputs: u32,
    /// Prompt tokens of each input.
    pub prompt_tokens: u32,
    /// Output tokens.
    pub output_tokens: u32,
}

/// Draws that service times are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnitNoise {
    /// Of the exponential distribution with mean 1.
    pub exponential: f64,
    /// Of the standard normal distribution.
    pub normal: f64,
}

/// Which kinds of noise the models know that may serve a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoiseKinds {
    exponential: bool,
    normal: bool,
}

/// What the requests of a workload are like.
#[derive(Clone, Debug)]
pub struct Content {
    workload: u32,
    inputs: Size,
    prompt_tokens: Size,
    output_tokens: Size,
    patience: Option<Sampler>,
    noise: NoiseKinds,
    /// What every request is like but for its noise, where nothing else is drawn.
    usual: Option<Request>,
}

/// A size of a request.
#[derive(Clone, Debug)]
enum Size {
    Constant(u32),
    Drawn(Sampler),
}

/// The streams that the content of requests comes from.
#[derive(Clone, Debug)]
pub struct ContentStreams {
    inputs: Stream,
    prompt_tokens: Stream,
    output_tokens: Stream,
    patience: Stream,
    exponential: Stream,
    normal: Stream,
}

/// Sizes that are given instead of drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenSizes {
    /// Inputs.
    pub inputs: Option<u32>,
    /// Prompt tokens of each input.
    pub prompt_tokens: Option<u32>,
    /// Output tokens.
    pub output_tokens: Option<u32>,
}

impl UnitNoise {
    /// That of requests whose models have none.
    pub const NONE: UnitNoise = UnitNoise { exponential: 1.0, normal: 0.0 };

    /// The noise of a later step of the same job: the first step has the job's own, every other one a draw that depends on
    /// nothing but that and its number.
    #[inline]
    pub fn of_step(self, step: u32) -> UnitNoise {
        if step == 0 { self } else { self.of_later_step(step) }
    }

    fn of_later_step(self, step: u32) -> UnitNoise {
        let key = self.exponential.to_bits() ^ self.normal.to_bits().rotate_left(32);
        let mut stream = Stream::from_seed(key.wrapping_add(u64::from(step)));
        UnitNoise { exponential: stream.exponential(), normal: stream.normal() }
    }
}

impl NoiseKinds {
    /// The noise of the models that may serve what `workload` asks for.
    pub fn of(scenario: &Scenario, workload: &Workload) -> NoiseKinds {
        let mut kinds = NoiseKinds::default();
        match workload.wanted {
            Wanted::Model(model) => kinds.include(scenario, model),
            Wanted::Family(family) => {
                let variants = scenario.configuration.families.get(family.index()).map(|family| &family.variants[..]);
                variants.unwrap_or_default().iter().for_each(|variant| kinds.include(scenario, variant.model));
            }
        }
        kinds
    }

    #[inline]
    fn draw(self, streams: &mut ContentStreams) -> UnitNoise {
        let mut noise = UnitNoise::NONE;
        if self.exponential {
            noise.exponential = streams.exponential.exponential();
        }
        if self.normal {
            noise.normal = streams.normal.normal();
        }
        noise
    }

    fn include(&mut self, scenario: &Scenario, model: ModelId) {
        for service in scenario.services.get(model.index()).into_iter().flatten().flatten() {
            match service {
                Service::Batch { noise: Noise::Exponential, .. } => self.exponential = true,
                Service::Batch { noise: Noise::Lognormal { .. }, .. } => self.normal = true,
                Service::Batch { noise: Noise::None, .. } | Service::Slots { .. } => {}
            }
        }
    }
}

impl Content {
    /// The content of the requests of `workload`, which stands at `place`.
    pub fn new(workload: &Workload, place: u32, noise: NoiseKinds) -> Content {
        let mut content = Content {
            workload: place,
            inputs: Size::new(&workload.inputs),
            prompt_tokens: Size::new(&workload.prompt_tokens),
            output_tokens: Size::new(&workload.output_tokens),
            patience: workload.patience.as_ref().map(Sampler::new),
            noise,
            usual: None,
        };
        content.usual = content.without_draws();
        content
    }

    fn without_draws(&self) -> Option<Request> {
        let (Size::Constant(inputs), Size::Constant(prompt_tokens), Size::Constant(output_tokens), None) =
            (&self.inputs, &self.prompt_tokens, &self.output_tokens, &self.patience)
        else {
            return None;
        };
        Some(Request {
            at: Time::ZERO,
            patience: Span::MAX,
            noise: UnitNoise::NONE,
            workload: self.workload,
            client: NO_CLIENT,
            inputs: (*inputs).max(1),
            prompt_tokens: *prompt_tokens,
            output_tokens: *output_tokens,
        })
    }

    /// The next request of these streams, sent at `at`.
    pub fn request(&self, streams: &mut ContentStreams, at: Time, client: u32) -> Request {
        self.drawn(streams, at, client, None)
    }

    /// The same, written over another. A size that is given takes no draw.
    #[inline(always)]
    pub fn write(
        &self,
        request: &mut Request,
        streams: &mut ContentStreams,
        at: Time,
        client: u32,
        given: Option<GivenSizes>,
    ) {
        match &self.usual {
            Some(usual) if given.is_none() => {
                // The draw first, since it is a call: then what is written goes straight from one place to the other.
                let noise = self.noise.draw(streams);
                *request = Request { at, client, noise, ..*usual };
            }
            Some(_) | None => *request = self.drawn(streams, at, client, given),
        }
    }

    fn drawn(&self, streams: &mut ContentStreams, at: Time, client: u32, given: Option<GivenSizes>) -> Request {
        let given = given.unwrap_or_default();
        Request {
            at,
            patience: match &self.patience {
                Some(patience) => patience.draw_span(&mut streams.patience),
                None => Span::MAX,
            },
            noise: self.noise.draw(streams),
            workload: self.workload,
            client,
            inputs: self.inputs.draw(given.inputs, &mut streams.inputs).max(1),
            prompt_tokens: self.prompt_tokens.draw(given.prompt_tokens, &mut streams.prompt_tokens),
            output_tokens: self.output_tokens.draw(given.output_tokens, &mut streams.output_tokens),
        }
    }
}

impl Size {
    fn new(distribution: &Distribution) -> Size {
        match Sampler::new(distribution) {
            Sampler::Constant(value) => Size::Constant(rounded(value)),
            drawn => Size::Drawn(drawn),
        }
    }

    #[inline]
    fn draw(&self, given: Option<u32>, stream: &mut Stream) -> u32 {
        match (given, self) {
            (Some(size), _) => size,
            (None, Size::Constant(size)) => *size,
            (None, Size::Drawn(sampler)) => rounded(sampler.draw(stream)),
        }
    }
}

/// To the nearest whole number from 0 to 2^32 - 1.
fn rounded(size: f64) -> u32 {
    (size + 0.5) as u32
}

impl ContentStreams {
    /// The streams of a workload or client.
    pub fn new(seed: Seed) -> ContentStreams {
        ContentStreams {
            inputs: seed.stream(Purpose::Inputs),
            prompt_tokens: seed.stream(Purpose::PromptTokens),
            output_tokens: seed.stream(Purpose::OutputTokens),
            patience: seed.stream(Purpose::Patience),
            exponential: seed.stream(Purpose::ExponentialNoise),
            normal: seed.stream(Purpose::NormalNoise),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_job_have_noises_of_their_own_that_never_change() {
        let noise = UnitNoise { exponential: 0.3, normal: -1.2 };
        assert_eq!(noise.of_step(0), noise);
        assert_ne!(noise.of_step(1), noise.of_step(2));
        assert_eq!(noise.of_step(2), noise.of_step(2));
    }

    #[test]
    fn sizes_are_rounded_to_the_nearest() {
        let mut stream = Stream::from_seed(5);
        for (value, size) in [(3.5, 4), (3.49, 3), (-3.0, 0)] {
            assert_eq!(Size::new(&Distribution::Constant(value)).draw(None, &mut stream), size);
            let same = Distribution::Empirical(vec![value]);
            assert_eq!(Size::new(&same).draw(None, &mut stream), size);
        }
        assert_eq!(Size::new(&Distribution::Constant(1.0)).draw(Some(7), &mut stream), 7);
    }

    #[test]
    fn a_request_fits_a_cache_line() {
        assert!(size_of::<Option<Request>>() <= 64);
    }
}
