//! All figures at one instant.

use std::time::Duration;

use crate::money::Usd;
use crate::monitor::gauges::Gauge;
use crate::monitor::{BreakerState, words};
use crate::refusal::RefusalKind;
use crate::verdict::Class;

/// All figures of a [`Monitor`](super::Monitor) at one instant.
///
/// `{}` prints a table to be read in a terminal; [`prometheus`](Self::prometheus) writes what Prometheus scrapes. With
/// the feature `serde` it can be serialised, and [`json`](Self::json) writes it.
///
/// ```
/// use seawall::monitor::Monitor;
///
/// let snapshot = Monitor::new().snapshot();
/// assert_eq!(snapshot.calls.hour.count(), 0);
/// assert_eq!(snapshot.calls.hour.success_rate(), None, "of nothing there is no rate");
/// println!("{snapshot}");
/// let page = snapshot.prometheus();
/// # let _ = page;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// How long the monitor has been there.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub uptime: Duration,
    /// What callers asked, as they saw it: what passed [`Monitor::layer`](super::Monitor::layer).
    pub calls: Series,
    /// All attempts at upstreams: what passed [`Monitor::attempts`](super::Monitor::attempts).
    pub attempts: Series,
    /// The same by target, in the order in which they came.
    pub targets: Vec<Target>,
    /// Calls under way: begun, and their responses not at their end.
    pub calls_in_flight: u64,
    /// Attempts under way.
    pub attempts_in_flight: u64,
    /// What the layers told as events, by layer.
    pub layers: Vec<LayerEvents>,
    /// Circuit breakers that have moved.
    pub breakers: Vec<Breaker>,
    /// Budgets that passed a mark.
    pub budgets: Vec<Budget>,
    /// Handles given to [`Monitor::watch`](super::Monitor::watch).
    pub watched: Vec<Watching>,
    /// Alerts that are on.
    pub alerts: Vec<super::Alert>,
}

/// Figures over four spans.
///
/// A span ends now. It begins where an interval began, so that it is never shorter than its name says, and longer by at
/// most 10 s (of a minute), 60 s (of five) and 5 min (of an hour): [`Figures::over`] is its true length.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Series {
    /// The last minute.
    pub minute: Figures,
    /// The last five minutes.
    pub five_minutes: Figures,
    /// The last hour.
    pub hour: Figures,
    /// Since the monitor was made.
    pub since_start: Figures,
}

/// One target: an upstream, and the model asked for there.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Target {
    /// The upstream; `default` where no fallback named one.
    pub upstream: String,
    /// The model; `unknown` where the request names none, `other` for names that are neither declared nor proven.
    pub model: String,
    /// Its figures.
    pub series: Series,
}

/// What happened in one span.
///
/// The sum of `outcomes` is the number of calls (or attempts) that came to their end in it, always.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Figures {
    /// How long the span is.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub over: Duration,
    /// How they ended.
    pub outcomes: Outcomes,
    /// Those that ended in a refusal of ours, by its kind: the same number as `outcomes.refused`, plus the timeouts,
    /// whose class is stalled.
    pub refusals: Refusals,
    /// From the beginning to the response's head; of those that had one.
    pub to_head: Latency,
    /// To the first content; of those that had some.
    pub to_content: Latency,
    /// To the last byte; of those whose response came to its end, well or not.
    pub to_end: Latency,
    /// The tokens that upstreams reported.
    pub tokens: Tokens,
    /// Further attempts at the same target. Of attempts and targets: those that were repeated tries; of calls: as the
    /// retry layers told.
    pub retries: u64,
    /// Goings on to another target. Of attempts and targets: first tries at a later target of a chain; of calls: as the
    /// fallback layers told.
    pub fallbacks: u64,
    /// How often a circuit breaker opened.
    pub trips: u64,
    /// Money, as the cost guards told.
    pub money: Money,
}

/// How calls or attempts ended, by [`Class`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes(pub(super) [u64; words::CLASSES]);

/// Refusals by [`RefusalKind`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusals(pub(super) [u64; words::KINDS]);

/// How long something took. A percentile is never told too short. It is those of `HdrHistogram` with three significant
/// digits: above the true one by at most 0.1 %, or a microsecond. Where times are spread so widely that an interval of the
/// span has more than some hundred different ones, it can be above by up to 3.2 %, or 31 µs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Latency {
    /// How many were measured. Without any all the others are zero.
    pub count: u64,
    /// All of them together.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub sum: Duration,
    /// Half took no longer.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub p50: Duration,
    /// 90 % took no longer.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub p90: Duration,
    /// 95 % took no longer.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub p95: Duration,
    /// 99 % took no longer.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub p99: Duration,
    /// The longest.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub max: Duration,
}

/// Tokens, as upstreams reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Tokens {
    /// All input.
    pub input: u64,
    /// All output.
    pub output: u64,
    /// Input read from a cache; part of `input`.
    pub cached: u64,
}

/// Money, as cost guards told by [`Event::Spent`](super::Event::Spent).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Money {
    /// How many attempts cost something.
    pub charged: u64,
    /// What they cost.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::dollars"))]
    pub spent: Usd,
    /// What had been reserved for them.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::dollars"))]
    pub reserved: Usd,
    /// The part of `spent` that went to retries and to later targets.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::dollars"))]
    pub extra: Usd,
}

/// What one layer told since the start.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LayerEvents {
    /// The layer's name.
    pub name: String,
    /// What it refused, by kind.
    pub refusals: Refusals,
    /// What it would have refused, if it did more than observe.
    pub would_refuse: u64,
    /// Attempts that it admitted after a wait.
    pub waits: u64,
    /// How long they waited, together.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))]
    pub waited: Duration,
    /// Callers that left it: while they waited, or after the call had begun.
    pub abandoned: u64,
    /// Failures that it did not repeat.
    pub gave_up: u64,
    /// Chains in which no target was left.
    pub no_target_left: u64,
    /// Attempts for which it knew no price.
    pub unpriced: u64,
    /// Attempts that it let pass without a reservation.
    pub unreserved: u64,
}

/// A circuit breaker that has moved.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Breaker {
    /// The name of its layer.
    pub name: String,
    /// The key that it is the breaker of; empty if its layer has one for all.
    pub key: String,
    /// The state it went to last.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::state"))]
    pub state: BreakerState,
    /// How often it opened.
    pub trips: u64,
}

/// A budget that passed a mark.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Budget {
    /// The name of the budget.
    pub name: String,
    /// The last mark it passed, in percent.
    pub percent: u8,
    /// What was spent when it did.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::dollars"))]
    pub spent: Usd,
    /// Its limit.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::json::dollars"))]
    pub limit: Usd,
    /// How many marks were passed, in all its accounts and windows.
    pub marks: u64,
}

/// A watched handle.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Watching {
    /// The name that it was given.
    pub name: String,
    /// What it showed.
    pub gauges: Vec<Gauge>,
}

impl LayerEvents {
    /// Of a layer that told nothing.
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            refusals: Refusals::default(),
            would_refuse: 0,
            waits: 0,
            waited: Duration::ZERO,
            abandoned: 0,
            gave_up: 0,
            no_target_left: 0,
            unpriced: 0,
            unreserved: 0,
        }
    }
}

impl Outcomes {
    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those of one class.
    #[must_use]
    pub fn of(&self, class: Class) -> u64 {
        self.0[words::class_index(class)]
    }

    /// Each class with its number, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (Class, u64)> + '_ {
        words::ALL_CLASSES.iter().zip(&self.0).map(|(&(class, _), &count)| (class, count))
    }
}

impl Refusals {
    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those of one kind.
    #[must_use]
    pub fn of(&self, kind: RefusalKind) -> u64 {
        self.0[kind.number()]
    }

    /// Each kind with its number, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (RefusalKind, u64)> + '_ {
        RefusalKind::ALL.into_iter().zip(self.0)
    }
}

impl Figures {
    /// How many came to their end.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.outcomes.total()
    }

    /// Good answers among all that were to be answered: between 0 and 1. What the caller is to blame for (invalid
    /// requests, abandoned calls) is left out. `None` if nothing is left.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        let blameless = self.outcomes.of(Class::Invalid) + self.outcomes.of(Class::Abandoned);
        ratio(self.outcomes.of(Class::Success), self.count() - blameless)
    }

    /// How many came to their end, a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.rate(self.count())
    }

    /// Tokens in, a second.
    #[must_use]
    pub fn input_per_second(&self) -> f64 {
        self.rate(self.tokens.input)
    }

    /// Tokens out, a second.
    #[must_use]
    pub fn output_per_second(&self) -> f64 {
        self.rate(self.tokens.output)
    }

    /// Cached tokens in, a second.
    #[must_use]
    pub fn cached_per_second(&self) -> f64 {
        self.rate(self.tokens.cached)
    }

    /// What one cost on average, in dollars.
    #[must_use]
    pub fn cost_each(&self) -> Option<f64> {
        ratio(self.money.spent.as_nanos(), self.count()).map(|nanos| nanos / 1e9)
    }

    fn rate(&self, count: u64) -> f64 {
        if self.over.is_zero() { 0.0 } else { float(count) / self.over.as_secs_f64() }
    }
}

/// The share, or `None` of nothing.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

#[expect(clippy::cast_precision_loss, reason = "figures to be looked at; all sums are integers")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

impl Snapshot {
    /// Attempts a call, over the last hour. `None` without calls.
    #[must_use]
    pub fn attempts_a_call(&self) -> Option<f64> {
        ratio(self.attempts.hour.count(), self.calls.hour.count())
    }

    /// The target of these names.
    #[must_use]
    pub fn target(&self, upstream: &str, model: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.upstream == upstream && target.model == model)
    }
}
