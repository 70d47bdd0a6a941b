//! How long to wait before the next attempt: pure, saturating, never beyond the cap.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config_error::ConfigError;
use crate::rng::Rng;
use crate::time;

/// How the wait grows from attempt to attempt, and how it is spread.
///
/// ```
/// use std::time::Duration;
/// use seawall::retry::{Backoff, Jitter};
///
/// let backoff = Backoff::exponential(Duration::from_millis(500)).cap(Duration::from_secs(20));
/// let even = Backoff::linear(Duration::from_secs(1)).jitter(Jitter::Share(0.1));
/// # let _ = (backoff, even);
/// ```
///
/// Settings are checked when the policy that takes it is built: a base that is zero or over the cap, a factor below 1, and a
/// jitter that is no number are errors there.
#[derive(Clone, Debug)]
pub struct Backoff {
    pub(super) base: Duration,
    pub(super) cap: Duration,
    growth: Growth,
    pub(super) jitter: Jitter,
}

#[derive(Clone)]
enum Growth {
    Fixed,
    Linear,
    Exponential(f64),
    Custom(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

/// How waits are spread, so that clients that failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// Not at all: all clients come back in step. For tests, or where something else spreads them.
    None,
    /// Anywhere from zero to the wait. The fewest calls under contention, and the default.
    Full,
    /// From half the wait to the wait. As many calls as [`Full`](Self::Full), and some 30 % slower.
    Equal,
    /// From the base to three times the last wait. Sooner done, at a fifth to a third more calls.
    Decorrelated,
    /// More or less by up to this share of the wait; 0.1 is ± 10 %.
    Share(f64),
    /// Longer by up to this time.
    UpTo(Duration),
}

impl Backoff {
    /// The longest wait where no cap is set: 20 s.
    pub const CAP: Duration = Duration::from_secs(20);

    /// `base`, then twice as long each time (see [`factor`](Self::factor)), spread by full jitter, at most 20 s.
    #[must_use]
    pub fn exponential(base: Duration) -> Self {
        Self::of(base, Growth::Exponential(2.0))
    }

    /// `base`, then longer by `base` each time.
    #[must_use]
    pub fn linear(base: Duration) -> Self {
        Self::of(base, Growth::Linear)
    }

    /// The same wait each time.
    #[must_use]
    pub fn fixed(wait: Duration) -> Self {
        Self::of(wait, Growth::Fixed)
    }

    /// The wait after this attempt, counted from 1, as a function says. `base` is what decorrelated jitter begins with.
    #[must_use]
    pub fn custom(base: Duration, wait: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self::of(base, Growth::Custom(Arc::new(wait)))
    }

    fn of(base: Duration, growth: Growth) -> Self {
        Self { base, cap: Self::CAP, growth, jitter: Jitter::Full }
    }

    /// Grows by this factor, at least 1, instead of 2. Only an exponential backoff has one.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        if let Growth::Exponential(of) = &mut self.growth {
            *of = factor;
        }
        self
    }

    /// Never longer than this, jitter included.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// Spread like this.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let error = |field: &'static str, problem: &'static str| Err(ConfigError::new(field, problem));
        if self.base.is_zero() {
            return error("base", "must not be zero");
        }
        if self.base > self.cap {
            return error("base", "must not be longer than the cap");
        }
        match self.growth {
            Growth::Exponential(factor) if !(factor >= 1.0 && factor.is_finite()) => {
                return error("factor", "must be a number of at least 1");
            }
            _ => {}
        }
        match self.jitter {
            Jitter::Share(share) if !(0.0..=1.0).contains(&share) => {
                error("jitter", "must be a share from 0 to 1")
            }
            _ => Ok(()),
        }
    }

    /// The wait after attempt `number` (from 1) before it is spread.
    pub(super) fn upper(&self, number: u32) -> Duration {
        let steps = number.saturating_sub(1);
        let wait = match &self.growth {
            Growth::Fixed => self.base,
            Growth::Linear => self.base.saturating_mul(steps.saturating_add(1)),
            Growth::Custom(wait) => wait(number),
            Growth::Exponential(factor) => {
                // Beyond this power every factor that grows at all is over every cap; infinity and overflow are the cap.
                let power = factor.powi(i32::try_from(steps).unwrap_or(i32::MAX));
                Duration::try_from_secs_f64(self.base.as_secs_f64() * power).unwrap_or(self.cap)
            }
        };
        wait.min(self.cap)
    }

    /// The wait after attempt `number`, where the one before it waited for `previous`.
    pub(super) fn delay(&self, number: u32, previous: Option<Duration>, rng: &Rng) -> Duration {
        let upper = self.upper(number);
        let wait = match self.jitter {
            Jitter::None => upper,
            Jitter::Full => between(Duration::ZERO, upper, rng),
            Jitter::Equal => between(upper / 2, upper, rng),
            Jitter::Decorrelated => {
                let previous = previous.unwrap_or(self.base).max(self.base);
                between(self.base, previous.saturating_mul(3).min(self.cap), rng)
            }
            Jitter::Share(share) => {
                let part =
                    Duration::try_from_secs_f64(upper.as_secs_f64() * share).unwrap_or(upper).min(upper);
                between(upper.saturating_sub(part), upper.saturating_add(part).min(self.cap), rng)
            }
            Jitter::UpTo(most) => {
                // At the cap there must be room to spread too, or all clients come back in step there.
                let low = upper.min(self.cap.saturating_sub(most)).max(self.base.min(upper));
                between(low, low.saturating_add(most).min(self.cap), rng)
            }
        };
        wait.min(self.cap)
    }
}

/// Anywhere from `low` to `high`, both included.
pub(super) fn between(low: Duration, high: Duration, rng: &Rng) -> Duration {
    let range = time::nanos(high.saturating_sub(low));
    low.saturating_add(Duration::from_nanos(rng.up_to(range)))
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => f.write_str("Fixed"),
            Self::Linear => f.write_str("Linear"),
            Self::Exponential(factor) => f.debug_tuple("Exponential").field(factor).finish(),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}
