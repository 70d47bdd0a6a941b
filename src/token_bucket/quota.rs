//! How much in how long.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::config_error::ConfigError;
use crate::token_bucket::bucket::{Rate, TICKS};

/// So many units in so long, and how many at once.
///
/// ```
/// use std::num::NonZeroU64;
/// use seawall::token_bucket::Quota;
///
/// const SIXTY: NonZeroU64 = NonZeroU64::new(60).unwrap();
/// const QUOTA: Quota = Quota::per_minute(SIXTY);
/// assert_eq!(format!("{QUOTA:?}"), "Quota(60 per 60s: 1/s)");
/// ```
///
/// A unit flows in every `period / amount`, rounded up to 1/64 of a nanosecond: the rate is never above what was asked
/// for, and less than 0.1 % below it from one a day up to 3.8 · 10⁹ a minute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    amount: NonZeroU64,
    period: Duration,
    burst: Option<NonZeroU64>,
    strict: bool,
}

/// A bucket may take this long to fill. Longer ones could not be told apart from one that never fills.
const LONGEST_FILL: u64 = 365 * 24 * 3600 * 1_000_000_000 * TICKS;
/// Shares are counted in millionths.
pub(super) const WHOLE: u32 = 1_000_000;

impl Quota {
    /// `amount` units a second.
    #[must_use]
    pub const fn per_second(amount: NonZeroU64) -> Self {
        Self::new(amount, Duration::from_secs(1))
    }

    /// `amount` units a minute.
    #[must_use]
    pub const fn per_minute(amount: NonZeroU64) -> Self {
        Self::new(amount, Duration::from_secs(60))
    }

    /// `amount` units an hour.
    #[must_use]
    pub const fn per_hour(amount: NonZeroU64) -> Self {
        Self::new(amount, Duration::from_secs(3_600))
    }

    /// `amount` units a day.
    #[must_use]
    pub const fn per_day(amount: NonZeroU64) -> Self {
        Self::new(amount, Duration::from_secs(86_400))
    }

    /// One unit each time that `interval` has passed; `None` if it is zero.
    #[must_use]
    pub const fn one_every(interval: Duration) -> Option<Self> {
        if interval.is_zero() { None } else { Some(Self::new(NonZeroU64::MIN, interval)) }
    }

    const fn new(amount: NonZeroU64, period: Duration) -> Self {
        Self { amount, period, burst: None, strict: false }
    }

    /// At most this many at once, after a time of rest. It is also the largest cost of a single request.
    ///
    /// Default: for requests what flows in within 10 s, for everything else within a minute, but never more than the
    /// quota's own amount, and at least 1.
    #[must_use]
    pub const fn burst(mut self, burst: NonZeroU64) -> Self {
        self.burst = Some(burst);
        self
    }

    /// At most `amount` in *any* window of the period's length, and not only on average: for an upstream that counts in
    /// a sliding window.
    ///
    /// The burst is 1 where none was given, and the rate is lowered to `amount - burst + 1` a period: a dimension whose
    /// requests cost more than 1 unit needs a [`burst`](Self::burst) of the largest cost.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// How many units flow in within the [`period`](Self::period).
    #[must_use]
    pub const fn amount(&self) -> NonZeroU64 {
        self.amount
    }

    /// The time in which the [`amount`](Self::amount) flows in.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    pub(super) const fn has_burst(&self) -> bool {
        self.burst.is_some()
    }

    pub(super) const fn is_strict(&self) -> bool {
        self.strict
    }

    /// The share of this quota that `headroom` (in millionths) leaves to use, as the bucket counts. `worth` is the time
    /// whose inflow is the default burst.
    pub(super) fn rate(&self, headroom: u32, worth: Duration) -> Result<Rate, ConfigError> {
        let period = self.period.as_nanos();
        let share = |units: u64| (u128::from(units) * u128::from(headroom) / u128::from(WHOLE)).max(1);
        let burst = match self.burst {
            // The largest cost of a request, not a share of anything.
            Some(burst) if self.strict => u128::from(burst.get()),
            Some(burst) => share(burst.get()),
            None if self.strict => 1,
            None => {
                let inflow = share(self.amount.get()) * worth.min(self.period).as_nanos() / period;
                inflow.max(1)
            }
        };
        // `amount · headroom - (burst - 1)` units a period, in millionths of a unit.
        let mut micros = u128::from(self.amount.get()) * u128::from(headroom);
        if self.strict {
            micros = micros.saturating_sub((burst - 1) * u128::from(WHOLE));
            if micros == 0 {
                return Err(ConfigError::new("burst", "must be below the amount of a strict quota"));
            }
        }
        let interval = (period * u128::from(TICKS) * u128::from(WHOLE)).div_ceil(micros);
        if interval < u128::from(TICKS) {
            return Err(ConfigError::new("amount", "must not be faster than one unit a nanosecond"));
        }
        if interval.saturating_mul(burst) > u128::from(LONGEST_FILL) {
            return Err(ConfigError::new("burst", "must flow in within a year"));
        }
        // Both fit: their product is within a year of ticks.
        let narrow = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        Ok(Rate { interval: narrow(interval), burst: narrow(burst) })
    }

    /// The rate by which the upstream's own limit is kept, if it is one for this quota's period.
    pub(super) fn learned(
        &self,
        limit: u64,
        window: Duration,
        headroom: u32,
        worth: Duration,
    ) -> Option<Rate> {
        let near = window >= self.period / 10 * 9 && window <= self.period / 10 * 11;
        let amount = NonZeroU64::new(limit).filter(|_| near)?;
        let burst = self.burst.map(|burst| burst.min(amount));
        Self { amount, burst, ..*self }.rate(headroom, worth).ok()
    }

    /// The nearest quota that can be built: at most one unit a nanosecond, and a bucket that fills within a year.
    pub(super) fn nearest(mut self, worth: Duration) -> Self {
        if self.rate(WHOLE, worth).is_err() {
            let fastest = u64::try_from(self.period.as_nanos()).ok().and_then(NonZeroU64::new);
            self.amount = self.amount.min(fastest.unwrap_or(NonZeroU64::MAX));
            self.period = self.period.min(Duration::from_nanos(LONGEST_FILL / TICKS));
            let interval =
                (self.period.as_nanos() * u128::from(TICKS)).div_ceil(u128::from(self.amount.get()));
            let most =
                u64::try_from(u128::from(LONGEST_FILL) / interval.max(1)).ok().and_then(NonZeroU64::new);
            let most = most.unwrap_or(NonZeroU64::MIN);
            self.burst = self.burst.map(|burst| burst.min(most));
            if self.rate(WHOLE, worth).is_err() {
                // A strict quota that its burst leaves no rate.
                self.burst = Some(NonZeroU64::MIN);
            }
        }
        self
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quota({self}: ")?;
        #[expect(clippy::cast_precision_loss, reason = "for the eye")]
        let rate = self.amount.get() as f64 / self.period.as_secs_f64();
        let (rate, unit) = if rate >= 0.1 { (rate, "s") } else { (rate * 3_600.0, "h") };
        write!(f, "{}/{unit}", round(rate))?;
        if let Some(burst) = self.burst {
            write!(f, ", burst {burst}")?;
        }
        f.write_str(if self.strict { ", strict)" } else { ")" })
    }
}

/// `60 per 60s`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {:?}", self.amount, self.period)
    }
}

fn round(rate: f64) -> f64 {
    (rate * 1_000.0).round() / 1_000.0
}
