//! Believed service times of an instance that is alone on its device. Integers, exact in nanoseconds or rounded up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// Service times of an instance that is alone on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServiceTimes {
    /// T(B) = alpha + beta * B for a batch of B inputs.
    Batch {
        /// Time per batch.
        alpha: Span,
        /// Time per input.
        beta: Span,
    },
    /// Continuous batching: prompts prefill one at a time, decoding slots advance together, one token each per `decode_alpha + decode_beta * b`.
    Slots {
        /// Time per prompt.
        prefill_fixed: Span,
        /// Time per prompt token.
        prefill_per_token: Span,
        /// Time per decoding iteration.
        decode_alpha: Span,
        /// Time per decoding slot and iteration.
        decode_beta: Span,
        /// Prefill done in one iteration beside decoding slots.
        prefill_slice: Span,
    },
}

impl ServiceTimes {
    /// T(B) of a batch of `weight` inputs, rounded to nothing: exact in nanoseconds. For slots: the prefill of one prompt of one token and one decoding iteration.
    pub fn batch(self, weight: u64) -> Span {
        match self {
            ServiceTimes::Batch { alpha, beta } => alpha.plus(beta.times(weight)),
            ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice: _ } => {
                prefill_fixed.plus(prefill_per_token).plus(decode_alpha).plus(decode_beta)
            }
        }
    }

    /// The service of one generation beside `others` decoding slots: prefill of `prompt` tokens, then `output - 1` iterations.
    /// The first token is out when the prefill ends.
    pub fn generation(self, prompt: u64, output: u64, others: u64) -> Span {
        match self {
            ServiceTimes::Batch { alpha, beta } => alpha.plus(beta),
            ServiceTimes::Slots { prefill_fixed, prefill_per_token, decode_alpha, decode_beta, prefill_slice } => {
                let work = prefill_fixed.plus(prefill_per_token.times(prompt));
                let prefill = slowed_prefill(work, prefill_slice, decode_alpha.plus(decode_beta.times(others)), others);
                let iteration = decode_alpha.plus(decode_beta.times(others.saturating_add(1)));
                prefill.plus(iteration.times(output.saturating_sub(1)))
            }
        }
    }
}

/// Prefill `work` at rate c / (alpha + beta * b + c) beside b decoding slots, rounded up; alone at full rate.
fn slowed_prefill(work: Span, slice: Span, iteration: Span, decoding: u64) -> Span {
    if decoding == 0 || slice.is_zero() {
        return work;
    }
    let whole = u128::from(slice.plus(iteration).as_nanos());
    let wide = (u128::from(work.as_nanos()) * whole).div_ceil(u128::from(slice.as_nanos()));
    Span::from_nanos(u64::try_from(wide).unwrap_or(u64::MAX))
}
