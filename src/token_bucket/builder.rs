//! The settings of a layer.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Blind, Described, Key, Usage};
use crate::config_error::ConfigError;
use crate::gate::{KeyFn, Keyed};
use crate::monitor::{Observer, Observers};
use crate::refusal::Label;
use crate::token_bucket::cost::With;
use crate::token_bucket::gate::{Abandoned, Actual, Config, Counts, Dimension, TokenBucket};
use crate::token_bucket::layer::TokenBucketLayer;
use crate::token_bucket::learn::{NoLimits, Upstream};
use crate::token_bucket::provider_limits::{ProviderLimits, UsageBy};
use crate::token_bucket::quota::{Quota, WHOLE};
use crate::verdict::StatusClassifier;

/// No keys: one bucket for all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unkeyed;

/// Keys, and how many at most.
#[derive(Clone, Copy, Debug)]
pub struct ByKey<K> {
    keys: K,
    bound: NonZeroUsize,
}

/// Builds a [`TokenBucketLayer`].
#[must_use = "a builder does nothing until built"]
pub struct TokenBucketBuilder<U = Upstream, R = Described, K = Unkeyed> {
    dimensions: Vec<Draft>,
    name: Box<str>,
    key_class: Option<Box<str>>,
    observers: Observers,
    strict: bool,
    headroom: f64,
    max_wait: Option<Duration>,
    max_waiters: usize,
    max_pause: Duration,
    abandoned: Abandoned,
    assumed_output: u64,
    lease: u64,
    upstream: U,
    costs: R,
    keys: K,
    /// A dimension that a setting is for, and that does not exist.
    unknown: Option<Box<str>>,
}

struct Draft {
    name: Box<str>,
    counts: Counts,
    actual: Option<Actual>,
    quota: Quota,
}

/// The default burst of requests.
pub(super) const TEN_SECONDS: Duration = Duration::from_secs(10);
/// The default burst of everything else.
const A_MINUTE: Duration = Duration::from_secs(60);

impl TokenBucketBuilder {
    pub(super) fn new() -> Self {
        Self {
            dimensions: Vec::new(),
            name: "token_bucket".into(),
            key_class: None,
            observers: Observers::default(),
            strict: false,
            headroom: 1.0,
            max_wait: Some(Duration::from_secs(10)),
            max_waiters: 1_024,
            max_pause: Duration::from_secs(3_600),
            abandoned: Abandoned::Known,
            assumed_output: 1_000,
            lease: 0,
            upstream: Upstream::default(),
            costs: Described,
            keys: Unkeyed,
            unknown: None,
        }
    }
}

impl<U, R, K> TokenBucketBuilder<U, R, K> {
    /// Limits requests: each costs 1. The dimension is called `requests`.
    pub fn requests(self, quota: Quota) -> Self {
        self.with("requests".into(), Counts::Requests, None, quota)
    }

    /// Limits tokens, as the request's [`Call`](crate::call::Call) describes them: the estimated input, and the output
    /// bound times the choices. Where the output has no bound, or nothing is described, it costs
    /// [`assumed_output`](Self::assumed_output). Settled to the reported usage when the response has ended. The dimension
    /// is called `tokens`.
    pub fn tokens(self, quota: Quota) -> Self {
        let actual: Actual = Arc::new(Usage::total);
        self.with("tokens".into(), Counts::Tokens, Some(actual), quota)
    }

    /// Limits tokens, as `cost` says: `Fn(&Req) -> u64`, `u32`, `usize` or `f64`. Otherwise as [`tokens`](Self::tokens).
    pub fn tokens_by<F>(self, quota: Quota, cost: F) -> TokenBucketBuilder<U, With<R, F>, K> {
        let builder = self.dimension("tokens", quota, cost);
        builder.settled_by("tokens", Usage::total)
    }

    /// Limits something else, which costs what `cost` says: `Fn(&Req) -> u64`, `u32`, `usize` or `f64`. It runs outside
    /// all locks; if it panics, nothing was taken and that call alone is harmed. A cost that is no number of units is
    /// refused as too large.
    pub fn dimension<F>(
        self,
        name: impl Into<Box<str>>,
        quota: Quota,
        cost: F,
    ) -> TokenBucketBuilder<U, With<R, F>, K> {
        let dimension = self.dimensions.len();
        let builder = self.with(name.into(), Counts::Own, None, quota);
        builder.map(|upstream, costs, keys| (upstream, With { rest: costs, dimension, cost }, keys))
    }

    /// Settles a dimension to what `actual` makes of the reported usage: what was reserved too much comes back, what was
    /// used beyond it is debt. `None` keeps what was reserved. If it panics, that is kept too.
    pub fn settled_by<F>(mut self, name: &str, actual: F) -> Self
    where
        F: Fn(&Usage) -> Option<u64> + Send + Sync + 'static,
    {
        if let Some(draft) = self.dimensions.iter_mut().rfind(|draft| *draft.name == *name) {
            draft.actual = Some(Arc::new(actual));
        } else {
            // Told when built.
            self.unknown = Some(name.into());
        }
        self
    }

    fn with(mut self, name: Box<str>, counts: Counts, actual: Option<Actual>, quota: Quota) -> Self {
        self.dimensions.push(Draft { name, counts, actual, quota });
        self
    }

    /// Uses only this share of every quota, rate and burst alike, and leaves the rest to others. Default: 1.
    pub fn headroom(mut self, share: f64) -> Self {
        self.headroom = share;
        self
    }

    /// Makes every quota [strict](Quota::strict): never more than its amount in any window of its period. Then, too, of
    /// what was reserved only that comes back which has not flowed in again since, so that the bound holds for what was
    /// really used, whenever it becomes known.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// A call waits at most this long; if it would have to wait longer, it is refused at once. `Duration::MAX`: no limit.
    /// Default: 10 s.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Never lets a call wait: what cannot pass now is refused, with the time after which it could.
    pub fn refuse(mut self) -> Self {
        self.max_wait = None;
        self
    }

    /// At most this many calls wait; more are refused at once. Default: 1 024.
    pub fn max_waiters(mut self, waiters: NonZeroUsize) -> Self {
        self.max_waiters = waiters.get();
        self
    }

    /// A hint of the upstream's pauses everybody for at most this long. Default: one hour.
    pub fn max_pause(mut self, pause: Duration) -> Self {
        self.max_pause = pause;
        self
    }

    /// What becomes of a call that its caller left after it had been sent. Default: [`Abandoned::Known`].
    pub fn abandoned(mut self, rule: Abandoned) -> Self {
        self.abandoned = rule;
        self
    }

    /// The output tokens to assume of a call that does not bound them, or describes nothing; never more than the bucket
    /// holds. Default: 1 000.
    pub fn assumed_output(mut self, tokens: u64) -> Self {
        self.assumed_output = tokens;
        self
    }

    /// Lets each thread take `units` ahead of use, so that threads do not meet on one number. In any interval T, what is
    /// admitted then is at most burst + rate · T + `units` · the number of threads; and a call can be refused or wait
    /// while other threads hold units. For a single dimension only.
    pub fn leases(mut self, units: NonZeroU64) -> Self {
        self.lease = units.get();
        self
    }

    /// The name by which refusals and events call this layer. Default: `token_bucket`.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Who listens to this layer.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.add(observer);
        self
    }

    /// Reads all feedback of a response with `feedback`: its verdict and the limits that it states.
    pub fn feedback<F>(self, feedback: F) -> TokenBucketBuilder<F, R, K> {
        self.map(|_, costs, keys| (feedback, costs, keys))
    }

    /// One bucket a key, [10 000](Keyed::DEFAULT_BOUND) at most.
    pub fn keyed<K2>(self, keys: K2) -> TokenBucketBuilder<U, R, ByKey<K2>> {
        let bound = Keyed::<TokenBucket, K2>::DEFAULT_BOUND;
        self.map(|upstream, costs, _| (upstream, costs, ByKey { keys, bound }))
    }

    /// One bucket for each key that a closure finds: `Fn(&Req) -> Option<Key>`.
    pub fn keyed_by<Req, F>(self, key: F) -> TokenBucketBuilder<U, R, ByKey<KeyFn<F>>>
    where
        F: Fn(&Req) -> Option<Key>,
    {
        self.keyed(KeyFn::new(key))
    }

    fn map<U2, R2, K2>(self, change: impl FnOnce(U, R, K) -> (U2, R2, K2)) -> TokenBucketBuilder<U2, R2, K2> {
        let (upstream, costs, keys) = change(self.upstream, self.costs, self.keys);
        TokenBucketBuilder {
            dimensions: self.dimensions,
            name: self.name,
            key_class: self.key_class,
            observers: self.observers,
            strict: self.strict,
            headroom: self.headroom,
            max_wait: self.max_wait,
            max_waiters: self.max_waiters,
            max_pause: self.max_pause,
            abandoned: self.abandoned,
            assumed_output: self.assumed_output,
            lease: self.lease,
            upstream,
            costs,
            keys,
            unknown: self.unknown,
        }
    }
}

impl<C, L, R, K> TokenBucketBuilder<Upstream<C, L>, R, K> {
    /// Reads the upstream's limits with `limits` in place of [`ProviderLimits`].
    pub fn limits<L2>(self, limits: L2) -> TokenBucketBuilder<Upstream<C, L2>, R, K> {
        self.map(|upstream, costs, keys| (Upstream { classifier: upstream.classifier, limits }, costs, keys))
    }

    /// Settles a call to the usage that `usage` finds in its response: for own types whose responses know it when they
    /// are there, and so for layers that end [`at_head`](TokenBucketLayer::at_head). `None`: the response does not say.
    /// [`Answer::usage`](crate::call::Answer::usage) is such a function. After [`limits`](Self::limits) and
    /// [`classify`](Self::classify), if they are called.
    pub fn usage_by<Res, F>(self, usage: F) -> TokenBucketBuilder<Upstream<C, UsageBy<L, F>>, R, K>
    where
        F: Fn(&Res) -> Option<Usage>,
    {
        self.map(|upstream, costs, keys| {
            let limits = UsageBy { limits: upstream.limits, usage };
            (Upstream { classifier: upstream.classifier, limits }, costs, keys)
        })
    }
}

impl<R, K> TokenBucketBuilder<Upstream<StatusClassifier, ProviderLimits>, R, K> {
    /// Reads what a response means with `classifier`, and only that: for own response types, or where the classifier
    /// finds the hint itself. Where limits are to be read too, name a reader with [`limits`](Self::limits) after it.
    pub fn classify<C>(self, classifier: C) -> TokenBucketBuilder<Upstream<C, NoLimits>, R, K> {
        self.map(|_, costs, keys| (Upstream { classifier, limits: NoLimits }, costs, keys))
    }
}

impl<U, K> TokenBucketBuilder<U, Described, K> {
    /// Reads nothing from a request but what closures read, and so takes any request type.
    pub fn blind(self) -> TokenBucketBuilder<U, Blind, K> {
        self.map(|upstream, _, keys| (upstream, Blind, keys))
    }
}

impl<U, R, K> TokenBucketBuilder<U, R, ByKey<K>> {
    /// At most this many keys have a bucket. Beyond it one at rest makes room, and where none is, newcomers share one.
    pub fn max_keys(mut self, bound: NonZeroUsize) -> Self {
        self.keys.bound = bound;
        self
    }

    /// What the keys are, for refusals: `upstream`, `model`, `tenant`. Default: `key`.
    pub fn key_class(mut self, class: impl Into<Box<str>>) -> Self {
        self.key_class = Some(class.into());
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// Names the setting that cannot work.
    #[expect(clippy::type_complexity, reason = "what is built, spelled out once")]
    pub fn build(mut self) -> Result<TokenBucketLayer<Keyed<TokenBucket<U, R>, K>>, ConfigError>
    where
        U: Clone,
        R: Clone,
    {
        self.key_class.get_or_insert_with(|| "key".into());
        let (config, ByKey { keys, bound }) = self.config()?;
        let gate = Keyed::new(TokenBucket::new(Arc::new(config), None), keys, bound);
        Ok(TokenBucketLayer::from_gate(gate))
    }
}

impl<U, R> TokenBucketBuilder<U, R> {
    /// The layer.
    ///
    /// # Errors
    ///
    /// Names the setting that cannot work.
    pub fn build(self) -> Result<TokenBucketLayer<TokenBucket<U, R>>, ConfigError> {
        let (config, Unkeyed) = self.config()?;
        Ok(TokenBucketLayer::from_gate(TokenBucket::new(Arc::new(config), None)))
    }
}

impl<U, R, K> TokenBucketBuilder<U, R, K> {
    fn config(self) -> Result<(Config<U, R>, K), ConfigError> {
        if !(self.headroom > 0.0 && self.headroom <= 1.0) {
            return Err(ConfigError::new("headroom", "must be above 0 and at most 1"));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share in (0, 1]")]
        let headroom = ((self.headroom * f64::from(WHOLE)).round() as u32).max(1);
        if let Some(name) = self.unknown {
            return Err(ConfigError::new("settled_by", format!("there is no dimension called {name}")));
        }
        if self.dimensions.is_empty() {
            return Err(ConfigError::new("dimensions", "must not be empty"));
        }
        let mut dimensions = Vec::<Dimension>::with_capacity(self.dimensions.len());
        for draft in self.dimensions {
            if dimensions.iter().any(|dimension| dimension.name == draft.name) {
                return Err(ConfigError::new(draft.name.into_string(), "must be given once"));
            }
            dimensions.push(draft.finish(self.strict, headroom)?);
        }
        match &*dimensions {
            [one] if self.lease > one.rate.burst => {
                return Err(ConfigError::new("leases", "must not be larger than the burst"));
            }
            [one] if self.lease > 0 && one.quota.is_strict() => {
                return Err(ConfigError::new("leases", "must not be set for a strict quota"));
            }
            [_, _, ..] if self.lease > 0 => {
                return Err(ConfigError::new("leases", "must not be set for several dimensions"));
            }
            _ => {}
        }
        let mut label = Label::new(self.name);
        if let Some(class) = self.key_class {
            label = label.with_key_class(class);
        }
        let config = Config {
            undrained: dimensions.iter().any(|dimension| dimension.quota.is_strict()),
            only_requests: matches!(&*dimensions, [Dimension { counts: Counts::Requests, .. }]),
            settles: dimensions.iter().any(|dimension| dimension.actual.is_some()),
            dimensions: dimensions.into(),
            label,
            observers: self.observers,
            headroom,
            max_wait: self.max_wait,
            max_waiters: self.max_waiters,
            max_pause: self.max_pause,
            abandoned: self.abandoned,
            assumed_output: self.assumed_output,
            lease: self.lease,
            upstream: self.upstream,
            costs: self.costs,
        };
        Ok((config, self.keys))
    }
}

impl Draft {
    fn finish(self, strict: bool, headroom: u32) -> Result<Dimension, ConfigError> {
        let quota = if strict { self.quota.strict() } else { self.quota };
        let weighted = !matches!(self.counts, Counts::Requests);
        if weighted && quota.is_strict() && !quota.has_burst() {
            let problem = "must be given for a strict quota: the largest cost of a request";
            return Err(ConfigError::new("burst", problem).under(&self.name));
        }
        let worth = if weighted { A_MINUTE } else { TEN_SECONDS };
        let rate = quota.rate(headroom, worth).map_err(|error| error.under(&self.name))?;
        Ok(Dimension { name: self.name, counts: self.counts, actual: self.actual, quota, rate, worth })
    }
}

impl<U, R, K> fmt::Debug for TokenBucketBuilder<U, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("TokenBucketBuilder");
        for draft in &self.dimensions {
            debug.field(&draft.name, &draft.quota);
        }
        debug
            .field("headroom", &self.headroom)
            .field("strict", &self.strict)
            .field("max_wait", &self.max_wait)
            .field("max_waiters", &self.max_waiters)
            .field("max_pause", &self.max_pause)
            .field("abandoned", &self.abandoned)
            .field("assumed_output", &self.assumed_output)
            .finish_non_exhaustive()
    }
}
