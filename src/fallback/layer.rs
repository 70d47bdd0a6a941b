//! The layer and its settings.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use super::handle::RoutesHandle;
use super::health::Health;
use super::mode::Telling;
use super::served::Served;
use super::service::Fallback;
use super::target::Target;
use super::trigger::Triggers;
use crate::call::Call;
use crate::config_error::ConfigError;
use crate::gate::{BodyEnd, Head, Respond};
use crate::monitor::{Observer, Observers};
use crate::refusal::Label;
use crate::timeout::Limit;
use crate::verdict::StatusClassifier;

/// The price of a call at a target, in any one unit, the lower the better; `None` where it is not known.
pub(super) type Price = dyn Fn(&Target, Option<&Call>) -> Option<u64> + Send + Sync;

/// What all calls of a layer share.
#[derive(Clone)]
pub(super) struct Rules<C> {
    pub(super) classifier: C,
    pub(super) routes: RoutesHandle,
    pub(super) max_attempts: NonZeroU32,
    pub(super) triggers: Triggers,
    pub(super) hold_time: Limit,
    pub(super) hold_bytes: usize,
    pub(super) answer_bytes: usize,
    pub(super) health: Vec<Arc<dyn Health>>,
    pub(super) price: Option<Arc<Price>>,
    pub(super) headers: bool,
    pub(super) label: Arc<Label>,
    pub(super) observers: Observers,
}

/// Asks one target after the other; see [the module](crate::fallback).
///
/// ```
/// use seawall::call::{Credential, Upstream};
/// use seawall::fallback::{FallbackLayer, Route, Routes, Target};
///
/// let routes = Routes::builder()
///     .upstream(Upstream::new("one", "https://api.one.example/v1")?.credential(Credential::bearer("key")?))
///     .upstream(Upstream::new("two", "https://api.two.example/v1")?)
///     .route(Route::to("chat").target(Target::at("one").model("large")).target(Target::at("two").model("big")))
///     .build()?;
/// let layer = FallbackLayer::new(routes);
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct FallbackLayer<C = StatusClassifier, M = BodyEnd> {
    rules: Arc<Rules<C>>,
    mode: M,
}

impl FallbackLayer {
    /// A layer over these routes with the usual settings: see [`FallbackBuilder`].
    pub fn new(routes: impl Into<RoutesHandle>) -> Self {
        Self { rules: Arc::new(Rules::new(routes.into())), mode: BodyEnd }
    }

    /// Begins to build one.
    pub fn builder(routes: impl Into<RoutesHandle>) -> FallbackBuilder {
        FallbackBuilder { rules: Rules::new(routes.into()), max_attempts: None, name: None }
    }
}

impl<C, M> FallbackLayer<C, M> {
    /// Takes responses as they are, without a look at their bodies: for responses of your own.
    pub fn at_head(self) -> FallbackLayer<C, Head> {
        FallbackLayer { rules: self.rules, mode: Head }
    }

    /// The same, and tells each good response who served it. The closure must be `Copy`.
    pub fn at_head_telling<F, Res>(self, tell: F) -> FallbackLayer<C, Telling<F>>
    where
        F: Fn(&mut Res, &Served) + Copy,
    {
        FallbackLayer { rules: self.rules, mode: Telling(tell) }
    }

    /// Tells a refusal of its own, that no target is left or none is allowed, as an HTTP response, so that a gateway answers
    /// with it. It can then stand over any error type. The errors of the inner service stay errors, where there is only one
    /// target.
    pub fn respond(self) -> FallbackLayer<C, Respond> {
        FallbackLayer { rules: self.rules, mode: Respond }
    }

    /// The handle to replace the routes with.
    pub fn routes(&self) -> &RoutesHandle {
        &self.rules.routes
    }
}

impl<S: Clone, C, M: Clone> Layer<S> for FallbackLayer<C, M> {
    type Service = Fallback<S, C, M>;

    fn layer(&self, inner: S) -> Self::Service {
        Fallback::new(inner, self.rules.clone(), self.mode.clone())
    }
}

impl<C, M> fmt::Debug for FallbackLayer<C, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}

/// Six in all: two targets with three attempts each.
const MAX_ATTEMPTS: NonZeroU32 = NonZeroU32::new(6).expect("six is not zero");
/// A role chunk and a ping are a few hundred bytes; this is many of them.
const HOLD_BYTES: usize = 64 * 1024;
/// A hundred thousand tokens, and more than what a provider answers in one go.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

impl Rules<StatusClassifier> {
    fn new(routes: RoutesHandle) -> Self {
        let (base, per_1k_tokens) = (Duration::from_secs(30), Duration::from_millis(500));
        Self {
            classifier: StatusClassifier,
            routes,
            max_attempts: MAX_ATTEMPTS,
            triggers: Triggers::default(),
            hold_time: Limit::by_size(base, per_1k_tokens).at_most(Duration::from_secs(120)),
            hold_bytes: HOLD_BYTES,
            answer_bytes: ANSWER_BYTES,
            health: Vec::new(),
            price: None,
            headers: false,
            label: Arc::new(Label::new("fallback")),
            observers: Observers::default(),
        }
    }
}

impl<C> fmt::Debug for Rules<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("routes", &self.routes)
            .field("max_attempts", &self.max_attempts)
            .field("triggers", &self.triggers)
            .field("first_content", &self.hold_time)
            .field("hold_bytes", &self.hold_bytes)
            .field("answer_bytes", &self.answer_bytes)
            .field("tell_headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Builds a [`FallbackLayer`].
///
/// By default: six attempts in all; after the failures of [`Triggers::default`]; content is waited for 30 s and 500 ms a
/// 1 000 tokens, at most 120 s; 64 KiB are held before content, 4 MiB of a whole answer; over HTTP the verdict of what was
/// read of the response ([`StatusClassifier`]).
#[must_use]
pub struct FallbackBuilder<C = StatusClassifier> {
    rules: Rules<C>,
    max_attempts: Option<u32>,
    name: Option<Box<str>>,
}

impl<C> FallbackBuilder<C> {
    /// The most attempts over all targets, those of retries below included. An outer fallback's share bounds it too.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// After which failures another target is asked, unless a target says otherwise itself.
    pub fn fallback_on(mut self, triggers: Triggers) -> Self {
        self.rules.triggers = triggers;
        self
    }

    /// How long first content is waited for, from when the attempt was sent, while another target is left. With the last
    /// target the response is then passed on as far as it is.
    pub fn first_content(mut self, limit: impl Into<Limit>) -> Self {
        self.rules.hold_time = limit.into();
        self
    }

    /// How many bytes are held before content comes; a response that has more commits. Each frame counts 64 bytes more than
    /// its data.
    pub fn hold_bytes(mut self, bytes: usize) -> Self {
        self.rules.hold_bytes = bytes;
        self
    }

    /// How many bytes of a whole answer are held where it commits at its end; a larger one commits when it has as many.
    pub fn answer_bytes(mut self, bytes: usize) -> Self {
        self.rules.answer_bytes = bytes;
        self
    }

    /// Asks this before a target is chosen. Of several the worst standing counts.
    pub fn health(mut self, health: impl Health + 'static) -> Self {
        self.rules.health.push(Arc::new(health));
        self
    }

    /// The price of a call at a target, in any one unit, for [`Order::Cheapest`](super::Order::Cheapest).
    pub fn price(
        mut self,
        price: impl Fn(&Target, Option<&Call>) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        self.rules.price = Some(Arc::new(price));
        self
    }

    /// Over HTTP also tells the caller in headers: `x-served-by` with the upstream's name, and `x-targets-asked`.
    pub fn tell_headers(mut self) -> Self {
        self.rules.headers = true;
        self
    }

    /// Judges responses by this: needed for own response types.
    pub fn classify<N>(self, classifier: N) -> FallbackBuilder<N> {
        let old = self.rules;
        let rules = Rules {
            classifier,
            routes: old.routes,
            max_attempts: old.max_attempts,
            triggers: old.triggers,
            hold_time: old.hold_time,
            hold_bytes: old.hold_bytes,
            answer_bytes: old.answer_bytes,
            health: old.health,
            price: old.price,
            headers: old.headers,
            label: old.label,
            observers: old.observers,
        };
        FallbackBuilder { rules, max_attempts: self.max_attempts, name: self.name }
    }

    /// The name under which it refuses and tells; by default `fallback`.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Hears of every hop and of every chain that is exhausted.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.rules.observers.add(observer);
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// `max_attempts` or `first_content` is zero.
    pub fn build(mut self) -> Result<FallbackLayer<C>, ConfigError> {
        if let Some(attempts) = self.max_attempts {
            let attempts = NonZeroU32::new(attempts);
            self.rules.max_attempts = attempts.ok_or(ConfigError::new("max_attempts", "must not be zero"))?;
        }
        if self.rules.hold_time.is_zero() {
            return Err(ConfigError::new("first_content", "must not be zero"));
        }
        if let Some(name) = self.name {
            self.rules.label = Arc::new(Label::new(name));
        }
        Ok(FallbackLayer { rules: Arc::new(self.rules), mode: BodyEnd })
    }
}

impl<C> fmt::Debug for FallbackBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}
