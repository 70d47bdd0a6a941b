//! How long a phase may take.

use std::time::Duration;

use crate::call::Call;

/// How long a phase may take: always the same, or longer for a larger call.
///
/// ```
/// use std::time::Duration;
/// use seawall::call::{Call, Estimate};
/// use seawall::timeout::Limit;
///
/// let limit = Limit::by_size(Duration::from_secs(30), Duration::from_millis(500)).at_most(Duration::from_secs(120));
/// let mut call = Call::default();
/// call.estimate = Some(Estimate::new(20_000, 80_000));
/// assert_eq!(limit.of(Some(&call)), Duration::from_secs(40));
/// assert_eq!(limit.of(None), Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    base: Duration,
    per_1k_tokens: Duration,
    most: Duration,
}

impl Limit {
    /// Always the same; `Duration::MAX` means never.
    #[must_use]
    pub const fn fixed(limit: Duration) -> Self {
        Self { base: limit, per_1k_tokens: Duration::ZERO, most: Duration::MAX }
    }

    /// `base`, and so much more for every 1 000 tokens of the call: its estimated input and the output that it allows,
    /// as far as they are known.
    #[must_use]
    pub const fn by_size(base: Duration, per_1k_tokens: Duration) -> Self {
        Self { base, per_1k_tokens, most: Duration::MAX }
    }

    /// Never more than this.
    #[must_use]
    pub const fn at_most(mut self, most: Duration) -> Self {
        self.most = most;
        self
    }

    /// The limit for a call of which this is known.
    #[must_use]
    pub fn of(&self, call: Option<&Call>) -> Duration {
        self.of_tokens(tokens_of(call))
    }

    /// The limit of a call of so many tokens.
    pub(crate) fn of_tokens(&self, tokens: u64) -> Duration {
        // Nanoseconds of the growth, in 128 bits: 2^64 tokens times 2^94 ns would not fit, and saturates.
        let growth = self.per_1k_tokens.as_nanos().saturating_mul(u128::from(tokens)) / 1_000;
        let growth = u64::try_from(growth).map_or(Duration::MAX, Duration::from_nanos);
        self.base.saturating_add(growth).min(self.most)
    }

    /// The longest that this limit can be, where that is bounded without knowing the call.
    pub(super) fn longest(&self) -> Duration {
        if self.per_1k_tokens.is_zero() { self.base.min(self.most) } else { self.most }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.base.min(self.most).is_zero()
    }
}

/// The tokens that go in by estimate, and those that may come out.
#[inline]
pub(crate) fn tokens_of(call: Option<&Call>) -> u64 {
    let Some(call) = call else { return 0 };
    let input = call.estimate.map_or(0, |estimate| estimate.input_tokens);
    input.saturating_add(call.output_bound.unwrap_or(0))
}

impl From<Duration> for Limit {
    fn from(limit: Duration) -> Self {
        Self::fixed(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Estimate;

    fn call(input: u64, output: Option<u64>) -> Call {
        Call { estimate: Some(Estimate::new(input, input)), output_bound: output, ..Call::default() }
    }

    #[test]
    fn a_larger_call_gets_longer_up_to_the_most() {
        let limit = Limit::by_size(Duration::from_secs(30), Duration::from_millis(500))
            .at_most(Duration::from_secs(120));
        assert_eq!(limit.of(None), Duration::from_secs(30));
        assert_eq!(limit.of(Some(&call(2_000, Some(2_000)))), Duration::from_secs(32));
        assert_eq!(limit.of(Some(&call(1, None))), Duration::from_micros(30_000_500));
        assert_eq!(limit.of(Some(&call(10_000_000, None))), Duration::from_secs(120));
    }

    #[test]
    fn absurd_sizes_saturate() {
        let limit = Limit::by_size(Duration::MAX, Duration::MAX);
        assert_eq!(limit.of(Some(&call(u64::MAX, Some(u64::MAX)))), Duration::MAX);
        assert_eq!(Limit::fixed(Duration::MAX).of(None), Duration::MAX);
    }
}
