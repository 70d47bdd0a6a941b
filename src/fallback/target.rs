//! A target: an upstream and the model to ask there.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::Triggers;
use super::order::Pace;
use crate::call::{Key, Upstream};
use crate::config_error::ConfigError;

/// An upstream and the model to ask there, with what is special about it. Read only: [`Target::at`] begins to build one.
///
/// ```
/// use std::time::Duration;
/// use seawall::fallback::{Route, Target};
///
/// let route = Route::to("chat")
///     .target(Target::at("one").model("large").timeout(Duration::from_secs(20)).attempts(2))
///     .target(Target::at("two").model("long").context(1_000_000));
/// # let _ = route;
/// ```
#[derive(Debug)]
pub struct Target {
    pub(super) upstream: Arc<Upstream>,
    pub(super) pace: Pace,
    pub(super) settings: Settings,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) model: Option<Key>,
    pub(super) timeout: Option<Duration>,
    pub(super) attempts: Option<NonZeroU32>,
    pub(super) context: Option<u64>,
    pub(super) weight: u32,
    pub(super) triggers: Option<Triggers>,
}

/// `upstream/model`, or the upstream alone where the model is the caller's: as [`Overrides`](crate::call::Overrides) name it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.upstream.name().as_str())?;
        match &self.settings.model {
            Some(model) => write!(f, "/{model}"),
            None => Ok(()),
        }
    }
}

impl Target {
    /// A target at the upstream of this name: with the caller's own model, no timeout of its own, an unknown context and
    /// a weight of 1.
    pub fn at(upstream: impl Into<Key>) -> TargetBuilder {
        let settings =
            Settings { model: None, timeout: None, attempts: None, context: None, weight: 1, triggers: None };
        TargetBuilder { upstream: upstream.into(), attempts: None, settings }
    }

    /// The upstream.
    #[must_use]
    #[inline]
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The model's name there; `None` is the caller's.
    #[must_use]
    #[inline]
    pub fn model(&self) -> Option<&Key> {
        self.settings.model.as_ref()
    }

    /// How long it may take until its answer is committed.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }

    /// The most attempts at it.
    #[must_use]
    pub fn attempts(&self) -> Option<NonZeroU32> {
        self.settings.attempts
    }

    /// How many tokens its context holds, if that is known.
    #[must_use]
    pub fn context(&self) -> Option<u64> {
        self.settings.context
    }

    /// Its weight among the others of its route.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.settings.weight
    }

    /// Whether both have the same upstream and model.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.upstream.name() == other.upstream.name() && self.settings.model == other.settings.model
    }
}

/// Builds a [`Target`], as part of a [`Route`](super::Route).
#[derive(Clone, Debug)]
#[must_use]
pub struct TargetBuilder {
    pub(super) upstream: Key,
    attempts: Option<u32>,
    settings: Settings,
}

impl TargetBuilder {
    /// The model's name there. By default the caller's own.
    pub fn model(mut self, model: impl Into<Key>) -> Self {
        self.settings.model = Some(model.into());
        self
    }

    /// How long it may take, all its attempts together, until its answer is committed; then the next target is asked. By
    /// default without a limit of its own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// The most attempts at it, the first one included. By default its even share of what the chain has left.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// How many tokens its context holds. A request whose input is estimated above that goes elsewhere. By default unknown,
    /// which fits everything.
    pub fn context(mut self, tokens: u64) -> Self {
        self.settings.context = Some(tokens);
        self
    }

    /// Its weight among the others, where the order is [`Order::Weighted`](super::Order::Weighted). By default 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.settings.weight = weight;
        self
    }

    /// After which of its failures another target is asked. By default as the layer says.
    pub fn fallback_on(mut self, triggers: Triggers) -> Self {
        self.settings.triggers = Some(triggers);
        self
    }

    /// `route` is the model that the target's route is for, where that is exactly one.
    pub(super) fn build(&self, upstream: Arc<Upstream>, route: Option<&Key>) -> Result<Target, ConfigError> {
        let mut settings = self.settings.clone();
        if settings.model.is_none() {
            // Callers may come under another name, by an alias.
            settings.model = route.cloned();
        }
        if settings.model.as_ref().is_some_and(|model| model.as_str().is_empty()) {
            return Err(ConfigError::new("model", "must not be empty"));
        }
        if settings.timeout == Some(Duration::ZERO) {
            return Err(ConfigError::new("timeout", "must not be zero"));
        }
        if settings.context == Some(0) {
            return Err(ConfigError::new("context", "must not be zero"));
        }
        if let Some(attempts) = self.attempts {
            let attempts = NonZeroU32::new(attempts);
            settings.attempts = Some(attempts.ok_or(ConfigError::new("attempts", "must not be zero"))?);
        }
        Ok(Target { upstream, pace: Pace::default(), settings })
    }
}
