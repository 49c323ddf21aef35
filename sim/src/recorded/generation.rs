//! What was a generation's own of the time it took beside others.
//!
//! The equations of continuous batching say how far a prefill and the tokens of an instance would have come meanwhile, given who
//! prefilled and who decoded beside it, which the recorded moments tell. That over what the request had to do is its own.

use std::collections::{BTreeMap, VecDeque};

use windtunnel_core::InstanceId;

use super::residuals::{Own, Turn};
use crate::cards::SlotTimes;

/// A generation under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Prefill that would have been done meanwhile, in nanoseconds.
    prefilled: f64,
    /// The tokens its instance had made when its first one was out.
    from: f64,
}

/// The generations of one instance.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    open: BTreeMap<usize, Open>,
    /// Those that prefill, the first one being served.
    prompts: VecDeque<usize>,
    decoding: u32,
    /// Tokens that each decoding slot would have made.
    count: f64,
    /// Dedicated time of the device up to which that is so.
    until: f64,
}

/// Those of every instance.
pub type AllGenerations = BTreeMap<InstanceId, Generations>;

impl Generations {
    /// The device has had so much dedicated time in all.
    pub fn pass(&mut self, dedicated: f64, times: &SlotTimes) {
        let by = dedicated - self.until;
        self.until = dedicated;
        let slice = if self.prompts.is_empty() { 0.0 } else { times.slice };
        let period = times.alpha + times.beta * f64::from(self.decoding) + slice;
        if let Some(prompt) = self.prompts.front().and_then(|first| self.open.get_mut(first)) {
            let alone = self.decoding == 0 || times.slice <= 0.0;
            prompt.prefilled += if alone { by } else { by * times.slice / period };
        }
        if self.decoding > 0 && period > 0.0 {
            self.count += by / period;
        }
    }

    /// The grant of this number begins, or its first token is out.
    pub fn turn(&mut self, turn: Turn, grant: usize) {
        match turn {
            Turn::Begins => {
                self.open.insert(grant, Open { prefilled: 0.0, from: 0.0 });
                self.prompts.push_back(grant);
            }
            Turn::Decodes => self.decodes(grant),
            Turn::Ends | Turn::EndsAtOnce => {}
        }
    }

    fn decodes(&mut self, grant: usize) {
        if let Some(open) = self.open.get_mut(&grant).filter(|_| self.prompts.contains(&grant)) {
            open.from = self.count;
            self.prompts.retain(|one| *one != grant);
            self.decoding += 1;
        }
    }

    /// It ends: what was its own, if it had to do so much prefill, in nanoseconds, and as many tokens.
    pub fn end(&mut self, grant: usize, prefill: f64, output_tokens: u32) -> Option<Own> {
        let open = self.open.remove(&grant)?;
        let decoded = !self.prompts.contains(&grant);
        self.prompts.retain(|one| *one != grant);
        self.decoding -= u32::from(decoded);
        let tokens = f64::from(output_tokens.saturating_sub(1));
        if tokens > 0.0 && !decoded {
            return None;
        }
        Some(Own {
            time: if tokens > 0.0 { (self.count - open.from) / tokens } else { 1.0 },
            prefill: if prefill > 0.0 { open.prefilled / prefill } else { 1.0 },
        })
    }
}
