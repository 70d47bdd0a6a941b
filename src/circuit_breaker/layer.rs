//! The layer and its builder.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Blind, Described, Key};
use crate::config_error::ConfigError;
use crate::gate::{BodyEnd, KeyFn, Keyed, gate_layer};
use crate::monitor::{Observer, Observers};
use crate::verdict::StatusClassifier;

use super::gate::{CircuitBreaker, SettingsOf, Shared};
use super::settings::{OnThrottled, Settings, SettingsBuilder, SlowUntil};

/// Refuses calls to an upstream that keeps failing, and probes whether it is back.
///
/// `G` is the gate: a [`CircuitBreaker`], or one a key ([`Keyed`]). `M` says where a response ends and how a refusal is
/// told. All services of one layer share its state. See the [module](super).
///
/// ```
/// use std::time::Duration;
/// use seawall::circuit_breaker::CircuitBreakerLayer;
///
/// let layer = CircuitBreakerLayer::builder()
///     .name("models")
///     .consecutive_failures(3, Duration::from_secs(30))
///     .open_for(Duration::from_secs(10))
///     .build()?;
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CircuitBreakerLayer<G = CircuitBreaker, M = BodyEnd> {
    gate: G,
    mode: M,
}

gate_layer!(CircuitBreakerLayer);

impl CircuitBreakerLayer {
    /// A breaker with the usual settings over HTTP; see the table in the [module](super).
    #[must_use]
    pub fn new() -> Self {
        Self::from_gate(CircuitBreaker::new(Draft::new().shared(Settings::default()), Described))
    }

    /// A breaker to be set up.
    pub fn builder() -> CircuitBreakerBuilder {
        CircuitBreakerBuilder { draft: Draft::new(), reader: Described, keying: OneForAll }
    }
}

impl Default for CircuitBreakerLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<G> CircuitBreakerLayer<G> {
    /// A layer over a breaker that somebody holds: a second layer that shares its state.
    pub fn from_gate(gate: G) -> Self {
        Self { gate, mode: BodyEnd }
    }
}

/// All that a layer is told, beside how it reads requests and finds keys.
struct Draft<C> {
    settings: SettingsBuilder,
    classifier: C,
    observers: Observers,
    by_key: Option<Arc<SettingsOf>>,
    name: Box<str>,
    key_class: Option<Box<str>>,
    max_keys: NonZeroUsize,
    observe_only: bool,
}

impl Draft<StatusClassifier> {
    fn new() -> Self {
        Self {
            settings: Settings::builder(),
            classifier: StatusClassifier,
            observers: Observers::default(),
            by_key: None,
            name: "circuit_breaker".into(),
            key_class: None,
            max_keys: Keyed::<CircuitBreaker, ()>::DEFAULT_BOUND,
            observe_only: false,
        }
    }
}

impl<C> Draft<C> {
    fn shared(self, settings: Settings) -> Shared<C> {
        Shared {
            classifier: self.classifier,
            observers: self.observers,
            settings: Arc::new(settings),
            by_key: self.by_key,
            name: self.name,
            key_class: self.key_class,
            observe_only: self.observe_only,
        }
    }
}

/// A layer with one breaker a key.
pub type KeyedLayer<C, R, K> = CircuitBreakerLayer<Keyed<CircuitBreaker<C, R>, K>>;

/// One state for all requests.
#[derive(Clone, Copy, Debug)]
pub struct OneForAll;

/// One state for each key that `K` finds.
#[derive(Clone, Copy, Debug)]
pub struct OnePerKey<K>(K);

/// Sets up a [`CircuitBreakerLayer`].
///
/// Beside its own it has the setters of [`SettingsBuilder`]. `C` classifies answers, `R` reads requests, `K` says
/// whether there is one state or one a key.
#[must_use]
pub struct CircuitBreakerBuilder<C = StatusClassifier, R = Described, K = OneForAll> {
    draft: Draft<C>,
    reader: R,
    keying: K,
}

impl<C, R, K> CircuitBreakerBuilder<C, R, K> {
    /// Tells what answers mean. The default reads the status, and the [`Outcome`](crate::call::Outcome) where there is
    /// one; own response types need their own, such as a closure in [`classify::from_fn`](crate::classify::from_fn).
    pub fn classify<D>(self, classifier: D) -> CircuitBreakerBuilder<D, R, K> {
        let Draft { settings, observers, by_key, name, key_class, max_keys, observe_only, .. } = self.draft;
        let draft =
            Draft { settings, classifier, observers, by_key, name, key_class, max_keys, observe_only };
        CircuitBreakerBuilder { draft, reader: self.reader, keying: self.keying }
    }

    /// Reads nothing from a request, and so takes any type. No request can then be marked as a probe.
    pub fn blind(self) -> CircuitBreakerBuilder<C, Blind, K> {
        CircuitBreakerBuilder { draft: self.draft, reader: Blind, keying: self.keying }
    }

    /// One state for each key, such as [`ByUpstream`](crate::gate::ByUpstream) or [`ByModel`](crate::gate::ByModel).
    pub fn keyed<L>(self, keys: L) -> CircuitBreakerBuilder<C, R, OnePerKey<L>> {
        CircuitBreakerBuilder { draft: self.draft, reader: self.reader, keying: OnePerKey(keys) }
    }

    /// One state for each key that this closure finds: `|request: &MyRequest| Some(Key::from(…))`.
    pub fn keyed_by<Req, F>(self, key_of: F) -> CircuitBreakerBuilder<C, R, OnePerKey<KeyFn<F>>>
    where
        F: Fn(&Req) -> Option<Key>,
    {
        self.keyed(KeyFn::new(key_of))
    }

    /// The name that refusals and events carry (default `circuit_breaker`).
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.draft.name = name.into();
        self
    }

    /// Who listens to its events.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.draft.observers.add(observer);
        self
    }

    /// Decides and reports, but refuses nothing (default false): to see what it would do.
    pub fn observe_only(mut self, yes: bool) -> Self {
        self.draft.observe_only = yes;
        self
    }

    /// Replaces all settings at once, by a preset such as [`Settings::fast`].
    pub fn settings(mut self, settings: SettingsBuilder) -> Self {
        self.draft.settings = settings;
        self
    }
}

impl<C, R, K> CircuitBreakerBuilder<C, R, OnePerKey<K>> {
    /// Settings that differ by key. Called once when a key is first seen.
    pub fn settings_by_key(mut self, settings: impl Fn(&Key) -> Settings + Send + Sync + 'static) -> Self {
        self.draft.by_key = Some(Arc::new(settings));
        self
    }

    /// What the keys are (`upstream`, `model` …), for refusals and events.
    pub fn key_class(mut self, class: impl Into<Box<str>>) -> Self {
        self.draft.key_class = Some(class.into());
        self
    }

    /// How many keys may have a state at once (default 10 000); see [`Keyed`].
    pub fn max_keys(mut self, keys: NonZeroUsize) -> Self {
        self.draft.max_keys = keys;
        self
    }

    /// The layer.
    ///
    /// # Errors
    ///
    /// Names the setting that cannot work.
    pub fn build(self) -> Result<KeyedLayer<C, R, K>, ConfigError>
    where
        R: Clone,
    {
        let settings = self.draft.settings.clone().build()?;
        let max_keys = self.draft.max_keys;
        let template = CircuitBreaker::new(self.draft.shared(settings), self.reader);
        Ok(CircuitBreakerLayer::from_gate(Keyed::new(template, self.keying.0, max_keys)))
    }
}

impl<C, R> CircuitBreakerBuilder<C, R> {
    /// The layer.
    ///
    /// # Errors
    ///
    /// Names the setting that cannot work.
    pub fn build(self) -> Result<CircuitBreakerLayer<CircuitBreaker<C, R>>, ConfigError> {
        let settings = self.draft.settings.clone().build()?;
        Ok(CircuitBreakerLayer::from_gate(CircuitBreaker::new(self.draft.shared(settings), self.reader)))
    }
}

macro_rules! settings {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {
        /// The settings; each is explained at [`SettingsBuilder`].
        impl<C, R, K> CircuitBreakerBuilder<C, R, K> {
            $(
                #[doc = concat!("See [`SettingsBuilder::", stringify!($name), "`].")]
                pub fn $name(mut self, $($argument: $type),*) -> Self {
                    self.draft.settings = self.draft.settings.$name($($argument),*);
                    self
                }
            )+
        }
    };
}

settings! {
    consecutive_failures(count: u32, within: Duration);
    without_consecutive_failures();
    failure_rate(share: f64);
    without_failure_rate();
    slow_call_rate(at_least: Duration, share: f64);
    slow_until(until: SlowUntil);
    minimum_calls(calls: u32);
    window(last: Duration);
    count_window(calls: u32);
    open_for(time: Duration);
    open_at_most(time: Duration);
    open_growth(factor: u32);
    jitter(share: f64);
    healthy_after(time: Duration);
    hint_at_most(time: Duration);
    probes(at_once: u32);
    probe_successes(count: u32);
    probe_lease(time: Duration);
    ramp(time: Duration);
    throttled(on_throttled: OnThrottled);
    own_credential(own: bool);
    abandoned_counts_after(time: Duration);
    first_target_only(yes: bool);
}

impl<C, R, K> fmt::Debug for CircuitBreakerBuilder<C, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerBuilder")
            .field("name", &self.draft.name)
            .field("settings", &self.draft.settings)
            .finish_non_exhaustive()
    }
}
