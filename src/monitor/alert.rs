//! Alerts: rules over a snapshot. Pure: the snapshot says the time.

mod rules;
mod watch;

use std::fmt;

pub use rules::{Rules, Timing};
pub(super) use watch::Alerts;

/// What a rule watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Rule {
    /// Too few good answers among the calls of the last five minutes.
    SuccessRate,
    /// The 99th percentile of the last five minutes is too long.
    Slow,
    /// Too many fallbacks within an hour.
    Fallbacks,
    /// Circuit breakers opened too often within an hour.
    Trips,
    /// A call costs far more, over the last five minutes, than it did before.
    CostACall,
    /// A fallback goes to a target that is far dearer than those asked first.
    DearerTarget,
    /// An upstream does not accept its credential. Told at once.
    Denied,
    /// Spending passed a mark of a budget. Told at once, for each mark; it never goes off.
    BudgetMark,
    /// The circuit breaker of a target is open. Told at once.
    TargetOut,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Severity {
    /// To be looked at.
    Warning,
    /// To be acted on.
    Critical,
}

/// An alert that goes on or off.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Alert {
    /// Which rule.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about: `calls`, a target, a breaker, a budget.
    pub subject: String,
    /// Whether it goes on. In a [`Snapshot`](super::Snapshot) it is on.
    pub on: bool,
    /// What was found: a share between 0 and 1, seconds, a number, a factor, or percent of a budget.
    pub value: f64,
    /// The limit that it is beyond, in the same unit.
    pub limit: f64,
}

impl Rule {
    /// The word for it in exports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SuccessRate => "success_rate",
            Self::Slow => "slow",
            Self::Fallbacks => "fallbacks",
            Self::Trips => "trips",
            Self::CostACall => "cost_a_call",
            Self::DearerTarget => "dearer_target",
            Self::Denied => "denied",
            Self::BudgetMark => "budget_mark",
            Self::TargetOut => "target_out",
        }
    }
}

impl Severity {
    /// The word for it in exports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// One line: `critical: success_rate of calls is 0.9 (limit 0.95)`.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (severity, rule, subject) = (self.severity.word(), self.rule.word(), &self.subject);
        if !self.on {
            return write!(f, "over: {rule} of {subject} ({severity})");
        }
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        let (value, limit) = (rounded(self.value), rounded(self.limit));
        write!(f, "{severity}: {rule} of {subject} is {value} (limit {limit})")
    }
}
