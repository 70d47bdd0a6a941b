//! The thresholds, and what a snapshot says to them.

use std::time::Duration;

use super::{Rule, Severity};
use crate::money::Usd;
use crate::monitor::snapshot::{Figures, Money, Series, Snapshot, Target, float, ratio};
use crate::monitor::{BreakerState, Latency};
use crate::verdict::Class;

/// Which time [`Rule::Slow`] watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timing {
    /// To the head of the response.
    Head,
    /// To the first content.
    Content,
    /// To the last byte.
    End,
}

/// When to alert. [`Rules::default`] holds the usual thresholds; each can be changed, or left out with `None`.
///
/// ```
/// use std::time::Duration;
/// use seawall::monitor::{Monitor, Rules, Timing};
///
/// let rules = Rules::default()
///     .success_critical(0.9)
///     .slow((Timing::End, Duration::from_secs(20)))
///     .fallbacks(None);
/// let monitor = Monitor::builder().rules(rules).on_alert(|alert| eprintln!("{alert}")).build()?;
/// # let _ = monitor;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "rules do nothing until a monitor is built with them"]
pub struct Rules {
    success_warning: Option<f64>,
    success_critical: Option<f64>,
    slow: Option<(Timing, Duration)>,
    fallbacks: Option<u64>,
    trips: Option<u64>,
    cost_growth: Option<f64>,
    cost_baseline: Option<Usd>,
    dearer: Option<f64>,
    denied: bool,
    budget_marks: bool,
    target_out: bool,
    minimum: u64,
    hold: Duration,
}

impl Default for Rules {
    /// Success rate below 99.5 % (warning) and 95 % (critical); p99 to the head above 1.2 s; 5 fallbacks an hour; more
    /// than 3 trips an hour; a call 150 % dearer than before; a fallback at least twice as dear as the first target;
    /// denied credentials, marks of budgets and targets that are out. Rates want 20 samples; an alert goes off when all
    /// has been well for a minute.
    fn default() -> Self {
        Self {
            success_warning: Some(0.995),
            success_critical: Some(0.95),
            slow: Some((Timing::Head, Duration::from_millis(1200))),
            fallbacks: Some(5),
            trips: Some(3),
            cost_growth: Some(1.5),
            cost_baseline: None,
            dearer: Some(2.0),
            denied: true,
            budget_marks: true,
            target_out: true,
            minimum: 20,
            hold: Duration::from_secs(60),
        }
    }
}

impl Rules {
    /// No alerts at all.
    pub fn none() -> Self {
        Self {
            success_warning: None,
            success_critical: None,
            slow: None,
            fallbacks: None,
            trips: None,
            cost_growth: None,
            dearer: None,
            denied: false,
            budget_marks: false,
            target_out: false,
            ..Self::default()
        }
    }

    /// Warn below this success rate, between 0 and 1. Default: 0.995.
    pub fn success_warning(mut self, rate: impl Into<Option<f64>>) -> Self {
        self.success_warning = rate.into();
        self
    }

    /// Critical below this success rate, between 0 and 1. Default: 0.95.
    pub fn success_critical(mut self, rate: impl Into<Option<f64>>) -> Self {
        self.success_critical = rate.into();
        self
    }

    /// Warn when the 99th percentile of this time is longer. Default: 1.2 s to the head.
    pub fn slow(mut self, limit: impl Into<Option<(Timing, Duration)>>) -> Self {
        self.slow = limit.into();
        self
    }

    /// Warn at so many fallbacks within an hour. Default: 5.
    pub fn fallbacks(mut self, an_hour: impl Into<Option<u64>>) -> Self {
        self.fallbacks = an_hour.into();
        self
    }

    /// Warn when breakers opened more often than this within an hour. Default: 3.
    pub fn trips(mut self, an_hour: impl Into<Option<u64>>) -> Self {
        self.trips = an_hour.into();
        self
    }

    /// Warn when a call costs more than its baseline by this share: 1.5 is 150 % more. Default: 1.5.
    pub fn cost_growth(mut self, share: impl Into<Option<f64>>) -> Self {
        self.cost_growth = share.into();
        self
    }

    /// What a call usually costs. Default: what it cost on average before the last five minutes.
    pub fn cost_baseline(mut self, a_call: Usd) -> Self {
        self.cost_baseline = Some(a_call);
        self
    }

    /// Warn when fallbacks go to a target at least so many times as dear, an attempt, as those asked first. Default: 2.
    pub fn dearer(mut self, factor: impl Into<Option<f64>>) -> Self {
        self.dearer = factor.into();
        self
    }

    /// Whether to tell of denied credentials. Default: yes.
    pub fn denied(mut self, tell: bool) -> Self {
        self.denied = tell;
        self
    }

    /// Whether to tell of marks that spending passes. Default: yes.
    pub fn budget_marks(mut self, tell: bool) -> Self {
        self.budget_marks = tell;
        self
    }

    /// Whether to tell of targets whose breaker is open. Default: yes.
    pub fn target_out(mut self, tell: bool) -> Self {
        self.target_out = tell;
        self
    }

    /// How many samples a rate or a percentile wants. Default: 20.
    pub fn minimum(mut self, samples: u64) -> Self {
        self.minimum = samples;
        self
    }

    /// How long all must have been well before an alert goes off. Default: 60 s.
    pub fn hold(mut self, time: Duration) -> Self {
        self.hold = time;
        self
    }

    pub(super) fn holds(&self) -> Duration {
        self.hold
    }

    pub(super) fn tells_denied(&self) -> bool {
        self.denied
    }

    pub(super) fn tells_marks(&self) -> bool {
        self.budget_marks
    }

    pub(super) fn tells_out(&self) -> bool {
        self.target_out
    }

    /// What the rules are about whose thresholds are shares, if one cannot be one.
    pub(in crate::monitor) fn fault(&self) -> Option<&'static str> {
        let share = |rate: Option<f64>| rate.is_none_or(|rate| (0.0..=1.0).contains(&rate));
        let positive = |factor: Option<f64>| factor.is_none_or(|factor| factor.is_finite() && factor > 0.0);
        let checks = [
            (share(self.success_warning), "rules.success_warning"),
            (share(self.success_critical), "rules.success_critical"),
            (positive(self.cost_growth), "rules.cost_growth"),
            (positive(self.dearer), "rules.dearer"),
        ];
        checks.iter().find(|(sound, _)| !sound).map(|(_, field)| *field)
    }

    /// All that the rules find, good or bad.
    pub(super) fn check(&self, snapshot: &Snapshot) -> Vec<Finding> {
        let mut found = Vec::new();
        // Who has no layer outermost has his attempts watched.
        let (subject, series) = match snapshot.calls.since_start.count() {
            0 => ("attempts", &snapshot.attempts),
            _ => ("calls", &snapshot.calls),
        };
        found.extend(self.success(subject, &series.five_minutes));
        found.extend(self.slowness(subject, &series.five_minutes));
        let fallbacks = snapshot.calls.hour.fallbacks.max(snapshot.attempts.hour.fallbacks);
        found.extend(self.fallbacks.map(|limit| count(Rule::Fallbacks, subject, fallbacks, limit, false)));
        let trips = snapshot.calls.hour.trips;
        found.extend(self.trips.map(|limit| count(Rule::Trips, "circuit breakers", trips, limit, true)));
        found.extend(self.cost(subject, series));
        found.extend(self.dearer_targets(&snapshot.targets));
        found.extend(snapshot.targets.iter().filter(|_| self.denied).map(denied_of));
        let out = snapshot.breakers.iter().filter(|_| self.target_out);
        found.extend(out.map(|breaker| out_of(&breaker.name, &breaker.key, breaker.state)));
        found
    }

    fn success(&self, subject: &str, figures: &Figures) -> Vec<Finding> {
        let limits = [(self.success_warning, Severity::Warning), (self.success_critical, Severity::Critical)];
        let blameless = figures.outcomes.of(Class::Invalid) + figures.outcomes.of(Class::Abandoned);
        let enough = figures.count() - blameless >= self.minimum.max(1);
        let rate = figures.success_rate().unwrap_or(1.0);
        let found = limits.into_iter().filter_map(|(limit, severity)| Some((limit?, severity)));
        let finding = |(limit, severity)| Finding {
            rule: Rule::SuccessRate,
            severity,
            subject: subject.into(),
            value: rate,
            limit,
            bad: enough && rate < limit,
            // A tenth of the way from the limit to perfection.
            well: !enough || rate >= limit + (1.0 - limit) * 0.1,
        };
        found.map(finding).collect()
    }

    fn slowness(&self, subject: &str, figures: &Figures) -> Option<Finding> {
        let (timing, limit) = self.slow?;
        let Latency { count, p99, .. } = match timing {
            Timing::Head => figures.to_head,
            Timing::Content => figures.to_content,
            Timing::End => figures.to_end,
        };
        let enough = count >= self.minimum.max(1);
        Some(Finding {
            rule: Rule::Slow,
            severity: Severity::Warning,
            subject: subject.into(),
            value: p99.as_secs_f64(),
            limit: limit.as_secs_f64(),
            bad: enough && p99 > limit,
            well: !enough || p99 <= limit.mul_f64(0.9),
        })
    }

    fn cost(&self, subject: &str, series: &Series) -> Option<Finding> {
        let (growth, now) = (self.cost_growth?, &series.five_minutes);
        let before = |all: u64, late: u64| all - late;
        let calls = before(series.since_start.count(), now.count());
        let spent = before(series.since_start.money.spent.as_nanos(), now.money.spent.as_nanos());
        let baseline = match self.cost_baseline {
            Some(usual) => Some(float(usual.as_nanos())),
            None if calls >= self.minimum.max(1) => ratio(spent, calls),
            None => None,
        };
        let value = ratio(now.money.spent.as_nanos(), now.count());
        let known = value.zip(baseline).filter(|(_, baseline)| *baseline > 0.0);
        let enough = now.count() >= self.minimum.max(1) && known.is_some();
        let factor = known.map_or(0.0, |(value, baseline)| value / baseline);
        let limit = 1.0 + growth;
        Some(Finding {
            rule: Rule::CostACall,
            severity: Severity::Warning,
            subject: subject.into(),
            value: factor,
            limit,
            bad: enough && factor > limit,
            well: !enough || factor <= limit * 0.9,
        })
    }

    fn dearer_targets(&self, targets: &[Target]) -> Vec<Finding> {
        let Some(factor) = self.dearer else { return Vec::new() };
        let each = |money: &Money| ratio(money.spent.as_nanos(), money.charged);
        let first = targets.iter().filter(|target| target.series.hour.fallbacks == 0);
        let first = first.map(|target| target.series.hour.money).fold((0, 0), |(spent, charged), money| {
            (money.spent.as_nanos().saturating_add(spent), money.charged + charged)
        });
        let Some(first) = ratio(first.0, first.1).filter(|cost| *cost > 0.0) else { return Vec::new() };
        let later = targets.iter().filter(|target| target.series.hour.fallbacks > 0);
        let finding = |target: &Target| {
            let value = each(&target.series.hour.money)? / first;
            Some(Finding {
                rule: Rule::DearerTarget,
                severity: Severity::Warning,
                subject: name(target),
                value,
                limit: factor,
                bad: value >= factor,
                well: value < factor * 0.9,
            })
        };
        later.filter_map(finding).collect()
    }
}

/// What a rule finds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) rule: Rule,
    pub(super) severity: Severity,
    pub(super) subject: String,
    pub(super) value: f64,
    pub(super) limit: f64,
    /// Reason enough to go on.
    pub(super) bad: bool,
    /// Reason enough to go off. Between the two an alert stays as it is.
    pub(super) well: bool,
}

fn count(rule: Rule, subject: &str, value: u64, limit: u64, beyond: bool) -> Finding {
    let bad = if beyond { value > limit } else { value >= limit };
    Finding {
        rule,
        severity: Severity::Warning,
        subject: subject.into(),
        value: float(value),
        limit: float(limit),
        bad,
        well: !bad,
    }
}

fn name(target: &Target) -> String {
    format!("{}/{}", target.upstream, target.model)
}

fn denied_of(target: &Target) -> Finding {
    denied(&target.upstream, &target.model, target.series.minute.outcomes.of(Class::Denied))
}

/// So many attempts at this target were denied within the last minute.
pub(super) fn denied(upstream: &str, model: &str, times: u64) -> Finding {
    Finding {
        severity: Severity::Critical,
        subject: format!("{upstream}/{model}"),
        ..count(Rule::Denied, "", times, 0, true)
    }
}

/// The breaker of this name and key is in this state.
pub(super) fn out_of(name: &str, key: &str, state: BreakerState) -> Finding {
    let subject = if key.is_empty() { name.into() } else { format!("{name} of {key}") };
    let open = u64::from(state == BreakerState::Open);
    Finding {
        severity: Severity::Critical,
        subject,
        // Half-open is neither: it stays as it is.
        well: state == BreakerState::Closed,
        ..count(Rule::TargetOut, "", open, 0, true)
    }
}
