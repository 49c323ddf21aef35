//! Work of one instance in dedicated time, as the simulator's equations have it.
//!
//! With b decoding slots, a = alpha + beta * b and the slice c:
//! * nobody prefills: each decoding slot makes 1/a tokens a nanosecond;
//! * a prompt prefills and b = 0: its prefill advances at 1;
//! * both: the prefill advances at c / (a + c) and each decoding slot makes 1 / (a + c) tokens a nanosecond.
//!
//! Prompts prefill one at a time in the order they came. The first token is out when the prefill ends; the others follow,
//! each with an event of its own, since somebody reads the stream. Plain work advances at 1, whatever there is beside it.

use std::collections::VecDeque;

use tokio::{sync::mpsc::UnboundedSender, time::Instant};

/// Where the tokens of a piece of work go: when each was out. It is dropped when the work is over.
pub type Tokens = UnboundedSender<Instant>;

/// Service times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlotTimes {
    /// Of an iteration.
    pub alpha: f64,
    /// Of a slot in an iteration.
    pub beta: f64,
    /// Of prefill in an iteration beside decoding slots.
    pub slice: f64,
}

/// Work under way on an instance.
#[derive(Debug, Default)]
pub struct Fluid {
    times: SlotTimes,
    /// The first one prefills.
    prompts: VecDeque<Prompt>,
    decoding: Vec<Decoding>,
    plain: Vec<Plain>,
    /// Tokens that each slot has made since nobody decoded.
    count: f64,
}

#[derive(Debug)]
struct Prompt {
    left: f64,
    output: u32,
    tokens: Tokens,
}

#[derive(Debug)]
struct Decoding {
    /// The count at which the next token is out.
    next: f64,
    left: u32,
    tokens: Tokens,
}

#[derive(Debug)]
struct Plain {
    left: f64,
    tokens: Tokens,
}

impl Fluid {
    /// An idle instance.
    pub fn new(times: SlotTimes) -> Fluid {
        Fluid { times, ..Fluid::default() }
    }

    /// Begins a generation whose prefill takes `prefill` nanoseconds alone.
    pub fn generate(&mut self, prefill: f64, output: u32, tokens: Tokens) {
        self.prompts.push_back(Prompt { left: prefill, output, tokens });
    }

    /// Begins work of `takes` nanoseconds.
    pub fn work(&mut self, takes: f64, tokens: Tokens) {
        self.plain.push(Plain { left: takes, tokens });
    }

    /// Whether anything is under way.
    pub fn is_busy(&self) -> bool {
        !self.prompts.is_empty() || !self.decoding.is_empty() || !self.plain.is_empty()
    }

    /// Nanoseconds until the next token or end.
    pub fn rest(&self) -> f64 {
        let plain = self.plain.iter().map(|one| one.left).fold(f64::INFINITY, f64::min);
        self.prefill_rest().min(self.token_rest()).min(plain)
    }

    fn prefill_rest(&self) -> f64 {
        self.prompts.front().map_or(f64::INFINITY, |prompt| prompt.left / self.prefill_pace())
    }

    fn token_rest(&self) -> f64 {
        let next = self.decoding.iter().map(|one| one.next).fold(f64::INFINITY, f64::min);
        if next.is_finite() { (next - self.count) * self.period() } else { f64::INFINITY }
    }

    /// Nanoseconds a token takes each decoding slot.
    fn period(&self) -> f64 {
        let slice = if self.prompts.is_empty() { 0.0 } else { self.times.slice };
        self.times.alpha + self.times.beta * self.decoding.len() as f64 + slice
    }

    fn prefill_pace(&self) -> f64 {
        if self.decoding.is_empty() || self.times.slice <= 0.0 { 1.0 } else { self.times.slice / self.period() }
    }

    /// Time passed, no more than [`Fluid::rest`].
    pub fn advance(&mut self, by: f64) {
        let (pace, period) = (self.prefill_pace(), self.period());
        if let Some(prompt) = self.prompts.front_mut() {
            prompt.left -= by * pace;
        }
        if !self.decoding.is_empty() && period > 0.0 {
            self.count += by / period;
        }
        self.plain.iter_mut().for_each(|one| one.left -= by);
    }

    /// Lets out what is due within `slack`; whether there was anything.
    pub fn let_out(&mut self, now: Instant, slack: f64) -> bool {
        let before = self.plain.len();
        self.plain.retain(|one| one.left > slack);
        let mut some = self.plain.len() < before;
        if self.token_rest() <= slack {
            self.let_out_tokens(now, slack);
            some = true;
        }
        if self.prefill_rest() <= slack
            && let Some(prompt) = self.prompts.pop_front()
        {
            self.prefilled(now, prompt);
            some = true;
        }
        some
    }

    fn let_out_tokens(&mut self, now: Instant, slack: f64) {
        let (count, period) = (self.count, self.period());
        for one in &mut self.decoding {
            if (one.next - count) * period <= slack {
                tell(&one.tokens, now);
                one.left -= 1;
                one.next += 1.0;
            }
        }
        self.decoding.retain(|one| one.left > 0);
        self.recount();
    }

    fn prefilled(&mut self, now: Instant, prompt: Prompt) {
        let Prompt { output, tokens, left: _ } = prompt;
        if output > 0 {
            tell(&tokens, now);
        }
        if output > 1 {
            self.decoding.push(Decoding { next: self.count + 1.0, left: output - 1, tokens });
        }
    }

    /// Nobody listens to some of it any more.
    pub fn forget_abandoned(&mut self) {
        self.prompts.retain(|one| !one.tokens.is_closed());
        self.decoding.retain(|one| !one.tokens.is_closed());
        self.plain.retain(|one| !one.tokens.is_closed());
        self.recount();
    }

    fn recount(&mut self) {
        if self.decoding.is_empty() {
            self.count = 0.0;
        }
    }
}

/// One who does not listen any more is forgotten soon.
fn tell(tokens: &Tokens, now: Instant) {
    let _gone = tokens.send(now);
}
