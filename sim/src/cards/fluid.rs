//! An instance with continuous batching, as a fluid: a few events for each generation instead of one for each token.
//!
//! With b decoding slots, a = alpha + beta * b and the slice c, in dedicated time:
//! * nobody prefills: each decoding slot makes 1/a tokens a nanosecond;
//! * a prompt prefills and b = 0: its prefill advances at 1;
//! * both: the prefill advances at c / (a + c) and each decoding slot makes 1 / (a + c) tokens a nanosecond.
//!
//! Prompts prefill one at a time in the order they started. The first token is out when the prefill ends and the other
//! O - 1 follow; without output a grant ends with its prefill. All decoding slots make tokens at one pace, so one count of
//! tokens serves them all: a slot ends when the count reaches what it was at its start plus O - 1.

use std::collections::VecDeque;

use windtunnel_core::{Attempt, Sent, Time};

use super::{card::Done, service::SlotTimes};

/// Beyond this many tokens the common count is set back, so that it stays exact to far below a nanosecond.
const RECOUNT: f64 = 1_048_576.0;

/// Generations under way.
#[derive(Clone, Debug)]
pub struct Fluid {
    times: SlotTimes,
    /// The first one prefills.
    prompts: VecDeque<Prompt>,
    /// The one that ends first is last.
    decoding: Vec<Decoding>,
    /// Tokens that each slot has made since some time in the past.
    count: f64,
}

#[derive(Clone, Copy, Debug)]
struct Prompt {
    attempt: Attempt,
    /// Prefill left, in nanoseconds of dedicated time.
    left: f64,
    output_tokens: u32,
    stretch: f64,
}

#[derive(Clone, Copy, Debug)]
struct Decoding {
    attempt: Attempt,
    /// The count at which it ends.
    ends: f64,
    first_token: Time,
    output_tokens: u32,
}

impl Fluid {
    /// An idle instance.
    pub fn new(times: SlotTimes) -> Fluid {
        Fluid { times, prompts: VecDeque::new(), decoding: Vec::new(), count: 0.0 }
    }

    /// Begins a generation, whose tokens but the first count `stretch` times.
    pub fn begin(&mut self, attempt: Attempt, prefill: f64, output_tokens: u32, stretch: f64) {
        self.prompts.push_back(Prompt { attempt, left: prefill, output_tokens, stretch });
    }

    /// Whether a generation is under way.
    #[inline]
    pub fn is_busy(&self) -> bool {
        !self.prompts.is_empty() || !self.decoding.is_empty()
    }

    /// Dedicated time until a prefill or a generation ends.
    pub fn rest(&self) -> f64 {
        self.prefill_rest().min(self.decode_rest())
    }

    fn prefill_rest(&self) -> f64 {
        self.prompts.front().map_or(f64::INFINITY, |prompt| prompt.left / self.prefill_pace())
    }

    fn decode_rest(&self) -> f64 {
        self.decoding.last().map_or(f64::INFINITY, |next| (next.ends - self.count) * self.period())
    }

    /// Nanoseconds a token takes each decoding slot.
    fn period(&self) -> f64 {
        let slice = if self.prompts.is_empty() { 0.0 } else { self.times.slice };
        self.times.alpha + self.times.beta * self.decoding.len() as f64 + slice
    }

    /// Prefill done in a nanosecond. Without a slice, which is where a prefill takes no time, it is that of an idle
    /// instance.
    fn prefill_pace(&self) -> f64 {
        if self.decoding.is_empty() || self.times.slice <= 0.0 { 1.0 } else { self.times.slice / self.period() }
    }

    /// Dedicated time passed, no more than until the next end.
    pub fn advance(&mut self, by: f64) {
        let (pace, period) = (self.prefill_pace(), self.period());
        if let Some(prompt) = self.prompts.front_mut() {
            prompt.left -= by * pace;
        }
        if !self.decoding.is_empty() && period > 0.0 {
            self.count += by / period;
        }
    }

    /// Takes out a generation that ends within `slack`, the earliest end first; prefills that end before are over as of
    /// `now`.
    pub fn take_due(&mut self, now: Time, slack: f64) -> Option<Done> {
        loop {
            if self.decode_rest() <= slack {
                let done = self.decoding.pop()?;
                self.recount();
                let first_token = Some(done.first_token);
                return Some(Done { attempt: done.attempt, first_token, output_tokens: done.output_tokens });
            }
            if self.prefill_rest() > slack {
                return None;
            }
            let Prompt { attempt, output_tokens, stretch, left: _ } = self.prompts.pop_front()?;
            if output_tokens <= 1 {
                return Some(Done { attempt, first_token: (output_tokens == 1).then_some(now), output_tokens });
            }
            let ends = self.count + f64::from(output_tokens - 1) * stretch;
            let place = self.decoding.partition_point(|other| other.ends > ends);
            self.decoding.insert(place, Decoding { attempt, ends, first_token: now, output_tokens });
        }
    }

    fn recount(&mut self) {
        if self.decoding.is_empty() {
            self.count = 0.0;
        } else if self.count > RECOUNT {
            self.decoding.iter_mut().for_each(|one| one.ends -= self.count);
            self.count = 0.0;
        }
    }

    /// The generations under way, by attempt.
    pub fn attempts(&self) -> Vec<Attempt> {
        let prompts = self.prompts.iter().map(|prompt| prompt.attempt);
        let mut all: Vec<Attempt> = prompts.chain(self.decoding.iter().map(|one| one.attempt)).collect();
        all.sort_unstable();
        all
    }

    /// Breaks a generation off; whether its client has had a token, or `None` if it was not under way.
    pub fn abort(&mut self, attempt: Attempt) -> Option<Sent> {
        if let Some(place) = self.prompts.iter().position(|prompt| prompt.attempt == attempt) {
            self.prompts.remove(place);
            return Some(Sent::Nothing);
        }
        let place = self.decoding.iter().position(|one| one.attempt == attempt)?;
        self.decoding.remove(place);
        self.recount();
        Some(Sent::Something)
    }
}
