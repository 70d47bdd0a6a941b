//! What a breaker is told, checked once when it is built.

mod builder;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;

use std::time::Duration;

pub use builder::SettingsBuilder;

use crate::verdict::{Class, Scope, Verdict};

/// The settings of one breaker, checked: they can only be had from a [`SettingsBuilder`].
///
/// One value can serve many breakers; where settings differ by key, keep one for each kind of key and clone it.
///
/// ```
/// use std::time::Duration;
/// use seawall::circuit_breaker::Settings;
///
/// let strict = Settings::builder().consecutive_failures(3, Duration::from_secs(10)).build()?;
/// # let _ = strict;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub(super) consecutive: Option<Consecutive>,
    pub(super) failure_rate: Option<Share>,
    pub(super) slow: Option<Slow>,
    pub(super) minimum: u64,
    pub(super) window: WindowKind,
    pub(super) open_for: u64,
    pub(super) open_at_most: u64,
    pub(super) growth: u32,
    pub(super) jitter: Share,
    pub(super) healthy_after: u64,
    pub(super) hint_at_most: u64,
    pub(super) probes: u32,
    pub(super) probe_successes: u32,
    pub(super) probe_lease: Option<u64>,
    pub(super) ramp: Option<u64>,
    pub(super) throttled: OnThrottled,
    pub(super) own_credential: bool,
    pub(super) abandoned_counts_after: u64,
    pub(super) first_target_only: bool,
}

/// So many failures, one after the other, within so many nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Consecutive {
    pub(super) count: u32,
    pub(super) within: u64,
}

/// When a call is slow, and which share of slow calls is too much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slow {
    pub(super) at_least: u64,
    pub(super) rate: Share,
    pub(super) until: SlowUntil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowKind {
    /// Ten buckets of so many nanoseconds.
    Time { bucket: u64 },
    /// The last so many calls.
    Calls(u32),
}

/// A share in thousand-millionths, so that no decision depends on how a float rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share(u32);

impl Share {
    const ONE: u32 = 1_000_000_000;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is within 0 and 1"
    )]
    fn new(share: f64) -> Self {
        // Rounded down, so that 2 of 3 reach two thirds.
        Self(((share * f64::from(Self::ONE)) as u32).min(Self::ONE))
    }

    /// Whether `part` of `whole` is this share or more.
    pub(super) fn is_reached(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(Self::ONE) >= u128::from(whole) * u128::from(self.0)
    }

    /// This share of a number.
    #[expect(clippy::cast_possible_truncation, reason = "a share of a u64 is a u64")]
    pub(super) fn of(self, whole: u64) -> u64 {
        (u128::from(whole) * u128::from(self.0) / u128::from(Self::ONE)) as u64
    }
}

/// What the breaker makes of an answer that says "you are above your limit" ([`Class::Throttled`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnThrottled {
    /// Nothing: a limit is no outage, and a token bucket pauses for it. The default.
    #[default]
    Neutral,
    /// A failure like any other.
    Failure,
    /// The breaker opens at once, until the hint is over, or for its own open time where there was no hint.
    Opens,
}

/// Up to when a call's time is taken, to tell whether it was slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlowUntil {
    /// To the head of the response.
    Head,
    /// To the first bytes that carry an answer, where the [`Outcome`](crate::call::Outcome) knows them; else as
    /// [`Head`](Self::Head). For streams: a long answer is not a slow one.
    Content,
    /// To the end of the response. The default.
    #[default]
    End,
}

/// What a vote is made of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    Success,
    Failure,
    /// One such answer is enough.
    Opens,
    /// No vote; a probe gives its slot back.
    Neutral,
}

impl Settings {
    /// The usual settings, to be changed; see the table in the [module](super).
    pub fn builder() -> SettingsBuilder {
        SettingsBuilder::new()
    }

    /// Settings for an upstream that has no substitute: slow to open, quick to come back. 10 failures in a row within
    /// 60 s, or 75 % of at least 50 calls within 60 s; open 10 s, growing to 60 s.
    ///
    /// For those calls an open breaker is a sure failure, so it must be surer that calling is hopeless. Our judgement.
    pub fn tolerant() -> SettingsBuilder {
        SettingsBuilder::new()
            .consecutive_failures(10, Duration::from_secs(60))
            .failure_rate(0.75)
            .minimum_calls(50)
            .window(Duration::from_secs(60))
            .open_for(Duration::from_secs(10))
            .open_at_most(Duration::from_secs(60))
    }

    /// Settings for an upstream that has substitutes: quick to open, since going elsewhere costs little. 3 failures in
    /// a row within 30 s, or 50 % of at least 10 calls within 10 s; open 10 s, growing to 5 min; one probe at a time, 2
    /// successes close it.
    ///
    /// A service that fails one call in ten trips this rate rule in 0.2 % of its full windows, and the usual one in
    /// fewer than 0.001 %. Our judgement.
    pub fn fast() -> SettingsBuilder {
        SettingsBuilder::new()
            .consecutive_failures(3, Duration::from_secs(30))
            .minimum_calls(10)
            .window(Duration::from_secs(10))
            .open_for(Duration::from_secs(10))
            .probes(1)
            .probe_successes(2)
    }

    /// What this verdict counts as.
    pub(super) fn vote(&self, verdict: &Verdict) -> Vote {
        match verdict.class() {
            Class::Success => Vote::Success,
            Class::Transient | Class::Stalled => Vote::Failure,
            Class::Throttled => match self.throttled {
                OnThrottled::Neutral => Vote::Neutral,
                OnThrottled::Failure => Vote::Failure,
                OnThrottled::Opens => Vote::Opens,
            },
            Class::Exhausted | Class::Denied if self.own_credential => Vote::Opens,
            // A caller's own account is no matter of others, but a model's quota is.
            Class::Exhausted if verdict.scope() != Scope::Account => Vote::Opens,
            Class::Exhausted
            | Class::Denied
            | Class::Unfit
            | Class::Invalid
            | Class::Refused
            | Class::Abandoned => Vote::Neutral,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings::builder().build().expect("the defaults are valid, as a test shows")
    }
}
