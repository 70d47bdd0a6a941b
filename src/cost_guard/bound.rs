//! The most that a call can use.

use crate::call::{Call, Estimate};

/// How the input's tokens are bounded before they are counted by the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// By its bytes: a tokenizer that works on bytes makes no more tokens than there are bytes, whatever the text. Holds
    /// for certain, and is three to five times what English uses; the difference comes back at settlement.
    #[default]
    Bytes,
    /// By the estimate and so many percent more. Reserves less, and can be exceeded: base64 has almost three times the tokens
    /// that a flat rule of four bytes a token gives.
    Estimate(u16),
}

/// The bounds on one call, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// How the tokens of a call are bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizing {
    pub(crate) bound: Bound,
    /// Tokens that the upstream adds of its own: roles, separators, its instructions for tools.
    pub(crate) framing: u64,
    /// Tokens for all that the input only refers to.
    pub(crate) reference: Option<u64>,
    /// Input tokens of a call of which nothing is known.
    pub(crate) unknown_input: Option<u64>,
    /// No answer is longer.
    pub(crate) output_cap: Option<u64>,
    /// Output tokens where neither the call nor the price table says how long an answer can be.
    pub(crate) unknown_output: u64,
}

impl Default for Sizing {
    fn default() -> Self {
        Self {
            bound: Bound::Bytes,
            framing: 512,
            reference: None,
            unknown_input: None,
            output_cap: None,
            unknown_output: 32_768,
        }
    }
}

impl Sizing {
    /// The most tokens that this call can use, or `None` where its input has no bound.
    #[inline]
    pub(crate) fn tokens(&self, call: Option<&Call>, model_cap: Option<u64>) -> Option<Tokens> {
        let input = match call.and_then(|call| call.estimate) {
            Some(estimate) => self.input(&estimate)?,
            None => self.unknown_input?,
        };
        // Zero is no length that an answer could have: some clients say "no limit" so.
        let asked = call.and_then(|call| call.output_bound).filter(|&tokens| tokens > 0);
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let output = least(least(asked, model_cap), self.output_cap).unwrap_or(self.unknown_output);
        let choices = call.and_then(|call| call.choices).unwrap_or(1).max(1);
        Some(Tokens { input, output: output.saturating_mul(u64::from(choices)) })
    }

    #[inline]
    fn input(&self, estimate: &Estimate) -> Option<u64> {
        let tokens = match self.bound {
            // An own type may know its tokens alone.
            Bound::Bytes => estimate.input_bytes.max(estimate.input_tokens),
            Bound::Estimate(margin) => {
                let more = u128::from(estimate.input_tokens) * u128::from(margin);
                let more = u64::try_from(more.div_ceil(100)).unwrap_or(u64::MAX);
                estimate.input_tokens.saturating_add(more)
            }
        };
        let referred = if estimate.by_reference { self.reference? } else { 0 };
        Some(tokens.saturating_add(self.framing).saturating_add(referred))
    }
}
