//! The settings as they are written down, and their check.

use std::time::Duration;

use super::{Consecutive, OnThrottled, Settings, Share, Slow, SlowUntil, WindowKind};
use crate::circuit_breaker::window::BUCKETS;
use crate::config_error::ConfigError;
use crate::time;

/// Settings as they are written down; [`build`](Self::build) checks them.
///
/// A duration of [`Duration::MAX`] means never.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct SettingsBuilder {
    consecutive: Option<(u32, Duration)>,
    failure_rate: Option<f64>,
    slow: Option<(Duration, f64)>,
    slow_until: SlowUntil,
    minimum: u32,
    window: Span,
    open_for: Duration,
    open_at_most: Option<Duration>,
    growth: u32,
    jitter: f64,
    healthy_after: Duration,
    hint_at_most: Duration,
    probes: u32,
    probe_successes: u32,
    probe_lease: Option<Duration>,
    ramp: Option<Duration>,
    throttled: OnThrottled,
    own_credential: bool,
    abandoned_counts_after: Duration,
    first_target_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Span {
    Time(Duration),
    Calls(u32),
}

/// Most failures in a row, calls in a window and probes at once: what one breaker may remember.
const MOST_CONSECUTIVE: u32 = 1_000;
const MOST_CALLS: u32 = 1_000_000;
const MOST_PROBES: u32 = 1_000;

impl SettingsBuilder {
    pub(super) fn new() -> Self {
        Self {
            consecutive: Some((5, Duration::from_secs(60))),
            failure_rate: Some(0.5),
            slow: None,
            slow_until: SlowUntil::End,
            minimum: 20,
            window: Span::Time(Duration::from_secs(30)),
            open_for: Duration::from_secs(30),
            open_at_most: None,
            growth: 2,
            jitter: 0.1,
            healthy_after: Duration::from_secs(300),
            hint_at_most: Duration::from_secs(24 * 3600),
            probes: 3,
            probe_successes: 3,
            probe_lease: None,
            ramp: None,
            throttled: OnThrottled::Neutral,
            own_credential: true,
            abandoned_counts_after: Duration::from_secs(60),
            first_target_only: false,
        }
    }

    /// Opens after `count` failures one after the other, all within `within` (default 5 within 60 s). A success ends
    /// the row; answers that are no vote do not. At most 1000.
    pub fn consecutive_failures(mut self, count: u32, within: Duration) -> Self {
        self.consecutive = Some((count, within));
        self
    }

    /// After how many failures in a row it opens, and within which time.
    #[cfg(feature = "serde")]
    pub(crate) fn in_a_row(&self) -> Option<(u32, Duration)> {
        self.consecutive
    }

    /// Never opens for failures in a row.
    pub fn without_consecutive_failures(mut self) -> Self {
        self.consecutive = None;
        self
    }

    /// Opens when this share of the calls in the window failed (default 0.5), once there are
    /// [`minimum_calls`](Self::minimum_calls). Above 0, at most 1.
    pub fn failure_rate(mut self, share: f64) -> Self {
        self.failure_rate = Some(share);
        self
    }

    /// Never opens for a share of failures.
    pub fn without_failure_rate(mut self) -> Self {
        self.failure_rate = None;
        self
    }

    /// Opens when this share of the calls in the window took `at_least` so long, once there are
    /// [`minimum_calls`](Self::minimum_calls) (default off). A probe that slow is a failed probe.
    pub fn slow_call_rate(mut self, at_least: Duration, share: f64) -> Self {
        self.slow = Some((at_least, share));
        self
    }

    /// Up to when a call's time is taken for [`slow_call_rate`](Self::slow_call_rate) (default: the end of the
    /// response). It begins when the attempt was sent, where an [`Outcome`](crate::call::Outcome) says so, else when
    /// the inner service first let us wait.
    pub fn slow_until(mut self, until: SlowUntil) -> Self {
        self.slow_until = until;
        self
    }

    /// How many calls the window must hold before a rate decides (default 20).
    pub fn minimum_calls(mut self, calls: u32) -> Self {
        self.minimum = calls;
        self
    }

    /// Rates look at the calls of this last time (default 30 s). It slides by tenths. At least a millisecond.
    pub fn window(mut self, last: Duration) -> Self {
        self.window = Span::Time(last);
        self
    }

    /// Rates look at the last so many calls, however old. At most a million; a quarter of a byte each.
    pub fn count_window(mut self, calls: u32) -> Self {
        self.window = Span::Calls(calls);
        self
    }

    /// How long the breaker stays open the first time (default 30 s).
    pub fn open_for(mut self, time: Duration) -> Self {
        self.open_for = time;
        self
    }

    /// The longest open time, before jitter and hints (default 5 min, or [`open_for`](Self::open_for) if that is
    /// longer).
    pub fn open_at_most(mut self, time: Duration) -> Self {
        self.open_at_most = Some(time);
        self
    }

    /// By what the open time is multiplied each time the breaker opens again (default 2); 1 keeps it constant.
    pub fn open_growth(mut self, factor: u32) -> Self {
        self.growth = factor;
        self
    }

    /// The open time is spread evenly by this share in both directions (default 0.1: 27 to 33 s), so that many breakers
    /// that opened together do not probe together. From 0 to 1. A hint is only ever lengthened.
    ///
    /// Of 1000 breakers opened together for 30 s, up to 350 probe within the same 100 ms without jitter, 27 at 0.1 and
    /// 10 at 0.5.
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// After this time closed the open time is back at its base (default 5 min).
    pub fn healthy_after(mut self, time: Duration) -> Self {
        self.healthy_after = time;
        self
    }

    /// A hint counts as no longer than this (default 24 h): what an upstream says must not shut it out for good.
    pub fn hint_at_most(mut self, time: Duration) -> Self {
        self.hint_at_most = time;
        self
    }

    /// How many probes may be out at once while half-open (default 3). At most 1000.
    pub fn probes(mut self, at_once: u32) -> Self {
        self.probes = at_once;
        self
    }

    /// How many probes must succeed to close the breaker (default 3).
    pub fn probe_successes(mut self, count: u32) -> Self {
        self.probe_successes = count;
        self
    }

    /// After this time without an answer a probe's slot is given to another, and its answer no longer counts (default:
    /// the breaker's own open time, without jitter or hint).
    pub fn probe_lease(mut self, time: Duration) -> Self {
        self.probe_lease = Some(time);
        self
    }

    /// After closing, admits a share of the calls that grows over this time by tenths, from one in ten (default off:
    /// all at once).
    pub fn ramp(mut self, time: Duration) -> Self {
        self.ramp = Some(time);
        self
    }

    /// What an answer "above your limit" counts as (default: nothing).
    pub fn throttled(mut self, on_throttled: OnThrottled) -> Self {
        self.throttled = on_throttled;
        self
    }

    /// Whether the credential is the upstream's own, the same for all callers (default true). Then one answer that it
    /// is denied, or that its account is exhausted, opens the breaker at once. Say false where callers bring their own:
    /// such an answer then concerns nobody else and is no vote.
    pub fn own_credential(mut self, own: bool) -> Self {
        self.own_credential = own;
        self
    }

    /// A call that its caller gave up counts as a failure if no head had come after this time (default 60 s, as a
    /// timeout *outside* the breaker looks like a caller who leaves). `Duration::MAX`: never.
    pub fn abandoned_counts_after(mut self, time: Duration) -> Self {
        self.abandoned_counts_after = time;
        self
    }

    /// Does not count a failure of a request that another target has failed already in the same way (default false):
    /// a request that breaks every server must not open the breakers of all. Needs a fallback above that says so in
    /// [`Call::failed_elsewhere`](crate::call::Call::failed_elsewhere).
    pub fn first_target_only(mut self, yes: bool) -> Self {
        self.first_target_only = yes;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Names the first setting that cannot work.
    pub fn build(self) -> Result<Settings, ConfigError> {
        let (window, minimum) = self.check_window()?;
        let open_for = positive("open_for", self.open_for)?;
        Ok(Settings {
            consecutive: self.check_consecutive()?,
            failure_rate: self.failure_rate.map(|rate| share("failure_rate", rate)).transpose()?,
            slow: self.check_slow()?,
            minimum,
            window,
            open_for,
            open_at_most: self.check_open_at_most(open_for)?,
            growth: within("open_growth", self.growth, 1_000_000)?,
            jitter: self.check_jitter()?,
            healthy_after: time::nanos(self.healthy_after),
            hint_at_most: positive("hint_at_most", self.hint_at_most)?,
            probes: within("probes", self.probes, MOST_PROBES)?,
            probe_successes: within("probe_successes", self.probe_successes, u32::MAX)?,
            probe_lease: self.probe_lease.map(|lease| positive("probe_lease", lease)).transpose()?,
            ramp: self.ramp.map(|ramp| positive("ramp", ramp)).transpose()?,
            throttled: self.throttled,
            own_credential: self.own_credential,
            abandoned_counts_after: time::nanos(self.abandoned_counts_after),
            first_target_only: self.first_target_only,
        })
    }

    fn check_consecutive(&self) -> Result<Option<Consecutive>, ConfigError> {
        let Some((count, span)) = self.consecutive else { return Ok(None) };
        let count = within("consecutive_failures", count, MOST_CONSECUTIVE)?;
        let within = positive("consecutive_failures", span)?;
        Ok(Some(Consecutive { count, within }))
    }

    fn check_slow(&self) -> Result<Option<Slow>, ConfigError> {
        let Some((at_least, rate)) = self.slow else { return Ok(None) };
        let at_least = positive("slow_call_rate", at_least)?;
        let rate = share("slow_call_rate", rate)?;
        Ok(Some(Slow { at_least, rate, until: self.slow_until }))
    }

    fn check_window(&self) -> Result<(WindowKind, u64), ConfigError> {
        let minimum = within("minimum_calls", self.minimum, u32::MAX)?;
        let window = match self.window {
            Span::Time(last) if last < Duration::from_millis(1) => {
                return Err(ConfigError::new("window", "must be at least a millisecond"));
            }
            Span::Time(last) => WindowKind::Time { bucket: time::nanos(last) / BUCKETS as u64 },
            Span::Calls(calls) => WindowKind::Calls(within("count_window", calls, MOST_CALLS)?),
        };
        let has_rate = self.failure_rate.is_some() || self.slow.is_some();
        if let (WindowKind::Calls(calls), true) = (window, has_rate)
            && minimum > calls
        {
            let problem = format!("is {minimum}, but the window never holds more than {calls} calls");
            return Err(ConfigError::new("minimum_calls", problem));
        }
        Ok((window, u64::from(minimum)))
    }

    fn check_open_at_most(&self, open_for: u64) -> Result<u64, ConfigError> {
        match self.open_at_most.map(time::nanos) {
            None => Ok(time::nanos(Duration::from_secs(300)).max(open_for)),
            Some(most) if most < open_for => {
                Err(ConfigError::new("open_at_most", "must not be less than open_for"))
            }
            Some(most) => Ok(most),
        }
    }

    fn check_jitter(&self) -> Result<Share, ConfigError> {
        if (0.0..=1.0).contains(&self.jitter) {
            Ok(Share::new(self.jitter))
        } else {
            Err(ConfigError::new("jitter", "must be from 0 to 1"))
        }
    }
}

impl Default for SettingsBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// A share above 0 and up to 1; a comparison with NaN is false.
fn share(field: &'static str, value: f64) -> Result<Share, ConfigError> {
    let share = if value > 0.0 && value <= 1.0 { Share::new(value) } else { Share(0) };
    if share.0 == 0 {
        return Err(ConfigError::new(field, "must be above 0 and at most 1"));
    }
    Ok(share)
}

fn positive(field: &'static str, time: Duration) -> Result<u64, ConfigError> {
    if time.is_zero() {
        return Err(ConfigError::new(field, "must not be a time of zero"));
    }
    Ok(time::nanos(time))
}

fn within(field: &'static str, number: u32, most: u32) -> Result<u32, ConfigError> {
    if number == 0 {
        return Err(ConfigError::new(field, "must not be zero"));
    }
    if number > most {
        return Err(ConfigError::new(field, format!("must not be above {most}")));
    }
    Ok(number)
}
