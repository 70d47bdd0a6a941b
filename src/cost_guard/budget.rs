//! What may be spent, in which window, by whom.

use std::borrow::Cow;

use crate::call::{Call, Key};
use crate::config_error::ConfigError;
use crate::cost_guard::window::Window;
use crate::money::Usd;

/// Which calls share one account of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BudgetKey {
    /// All calls share one.
    #[default]
    All,
    /// One for each upstream.
    Upstream,
    /// One for each model asked for.
    Model,
    /// One for each tenant. A call without one belongs to the tenant without a name.
    Tenant,
}

impl BudgetKey {
    pub(crate) const fn class(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Upstream => Some("upstream"),
            Self::Model => Some("model"),
            Self::Tenant => Some("tenant"),
        }
    }
}

/// Which calls a budget counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counts {
    /// Every call.
    #[default]
    Everything,
    /// Only further attempts: those of a retry, and those of a fallback at another target than the first.
    Extra,
}

/// A limit, for a window, an account a key.
///
/// ```
/// use std::time::Duration;
/// use seawall::cost_guard::{Budget, BudgetKey, Usd, Window};
///
/// // Ten dollars a day for all, one an hour for each tenant, and for retries half a dollar a day.
/// let all = Budget::new(Usd::dollars(10), Window::DAY);
/// let tenant = Budget::new(Usd::dollars(1), Window::rolling(Duration::from_secs(3_600)).unwrap()).by(BudgetKey::Tenant);
/// let retries = Budget::new(Usd::cents(50), Window::DAY).extra_only();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Budget {
    pub(crate) name: Cow<'static, str>,
    /// `u64::MAX` nanos: none.
    pub(crate) limit: Usd,
    pub(crate) window: Window,
    pub(crate) key: BudgetKey,
    pub(crate) counts: Counts,
    pub(crate) marks: Cow<'static, [u8]>,
}

impl Budget {
    /// The marks where none are given, in percent of the limit.
    pub const DEFAULT_MARKS: [u8; 3] = [50, 80, 100];

    /// At most this much in each window; a limit of zero refuses every call that costs anything.
    pub const fn new(limit: Usd, window: Window) -> Self {
        Self {
            name: Cow::Borrowed(window.name()),
            limit,
            window,
            key: BudgetKey::All,
            counts: Counts::Everything,
            marks: Cow::Borrowed(&Self::DEFAULT_MARKS),
        }
    }

    /// No limit: it counts, and refuses nothing.
    pub const fn unlimited(window: Window) -> Self {
        Self::new(Usd::MAX, window)
    }

    /// With one account for each of these.
    pub const fn by(mut self, key: BudgetKey) -> Self {
        self.key = key;
        self
    }

    /// Only for what further attempts cost: retries, and targets after the first.
    pub const fn extra_only(mut self) -> Self {
        self.counts = Counts::Extra;
        self
    }

    /// Its name in refusals, events and the handle. Two budgets of a guard need two names.
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    /// An event once in each window when spending passes this share of the limit, in percent. Default: 50, 80 and 100.
    ///
    /// # Errors
    ///
    /// Where a mark is zero or above 100.
    pub fn marks(mut self, percent: &[u8]) -> Result<Self, ConfigError> {
        if percent.iter().any(|mark| !(1..=100).contains(mark)) {
            return Err(ConfigError::new("marks", "must be between 1 and 100 percent"));
        }
        let mut marks = percent.to_vec();
        marks.sort_unstable();
        marks.dedup();
        self.marks = marks.into();
        Ok(self)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The limit it was made with; `None` is none.
    #[must_use]
    pub fn limit(&self) -> Option<Usd> {
        Some(self.limit).filter(|&limit| limit != Usd::MAX)
    }

    /// Its window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Which calls share an account.
    #[must_use]
    pub const fn key(&self) -> BudgetKey {
        self.key
    }

    #[inline]
    pub(crate) fn applies(&self, spender: &Spender<'_>) -> bool {
        self.counts == Counts::Everything || spender.extra
    }
}

/// Who spends: the facts by which a call finds its accounts.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Spender<'a> {
    /// The upstream.
    pub upstream: Option<&'a Key>,
    /// The model asked for.
    pub model: Option<&'a Key>,
    /// The tenant.
    pub tenant: Option<&'a Key>,
    /// Whether this is a further attempt: a retry, or at another target than the first.
    pub extra: bool,
}

impl<'a> Spender<'a> {
    /// As a call says it.
    #[must_use]
    #[inline]
    pub fn of(call: &'a Call) -> Self {
        Self {
            upstream: call.upstream.as_ref(),
            model: call.model.as_ref(),
            tenant: call.tenant.as_ref(),
            extra: call.attempt.is_some_and(|attempt| attempt > 1) || call.hop.is_some_and(|hop| hop > 1),
        }
    }

    /// What its account of such a budget is named after; without a name it is an account of its own.
    #[must_use]
    #[inline]
    pub fn key(&self, by: BudgetKey) -> &'a str {
        let key = match by {
            BudgetKey::All => None,
            BudgetKey::Upstream => self.upstream,
            BudgetKey::Model => self.model,
            BudgetKey::Tenant => self.tenant,
        };
        key.map_or("", Key::as_str)
    }
}
