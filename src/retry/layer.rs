//! How a retry layer is built.

use std::fmt;
use std::sync::{Arc, Mutex};

use tower_layer::Layer;

use super::judge::Rules;
use super::retry_policy::RetryPolicy;
use super::service::Retry;
use crate::monitor::{Observer, Observers};
use crate::refusal::Label;

/// Repeats failed calls at the same target, as a [`Policy`](super::Policy) says: see the [module](crate::retry).
///
/// Its clones, and all services that it makes, share the policy and with it the budget. `default()` is
/// [`RetryPolicy::http`].
pub struct RetryLayer<P = RetryPolicy> {
    rules: Arc<Rules<P>>,
}

impl<P> RetryLayer<P> {
    /// Retries as this policy says.
    pub fn new(policy: P) -> Self {
        let rules = Rules { policy, label: Arc::new(Label::new("retry")), observers: Observers::default() };
        Self { rules: Arc::new(rules) }
    }

    /// With a name for its events; `retry` is the default.
    #[must_use]
    pub fn name(self, name: impl Into<Box<str>>) -> Self
    where
        P: Clone,
    {
        self.with(|rules| rules.label = Arc::new(Label::new(name)))
    }

    /// With somebody who hears of each retry and of each end without one.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self
    where
        P: Clone,
    {
        self.with(|rules| rules.observers.add(observer))
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &P {
        &self.rules.policy
    }

    fn with(mut self, change: impl FnOnce(&mut Rules<P>)) -> Self
    where
        P: Clone,
    {
        // Services that were made before keep what they were made with.
        change(Arc::make_mut(&mut self.rules));
        self
    }
}

impl Default for RetryLayer {
    fn default() -> Self {
        Self::new(RetryPolicy::default())
    }
}

impl<S: Clone, P> Layer<S> for RetryLayer<P> {
    type Service = Retry<P, S>;

    fn layer(&self, inner: S) -> Retry<P, S> {
        Retry::new(inner, self.rules.clone())
    }
}

impl<P> Clone for RetryLayer<P> {
    fn clone(&self) -> Self {
        Self { rules: self.rules.clone() }
    }
}

impl<P: Clone> Clone for Rules<P> {
    fn clone(&self) -> Self {
        Self { policy: self.policy.clone(), label: self.label.clone(), observers: self.observers.clone() }
    }
}

impl<P: fmt::Debug> fmt::Debug for RetryLayer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("policy", &self.rules.policy).finish_non_exhaustive()
    }
}

/// What all calls through one service share, behind one count.
pub(super) struct Shared<P, S> {
    pub(super) rules: Arc<Rules<P>>,
    /// Never polled, so that what a clone of it reserves is its own. The lock is taken for a clone before a later attempt,
    /// never by a call that is answered at once; it makes a service that is `Send` alone good enough.
    pub(super) template: Mutex<S>,
}
