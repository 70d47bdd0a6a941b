//! How a retry layer is built.

use std::fmt;
use std::sync::{Arc, Mutex};

use tower_layer::{Identity, Layer};

use super::hold::HoldLayer;
use super::judge::Rules;
use super::retry_policy::RetryPolicy;
use super::service::Retry;
use crate::monitor::{Observer, Observers};
use crate::refusal::Label;

/// Repeats failed calls at the same target, as a [`Policy`](super::Policy) says: see the [module](crate::retry).
///
/// Its clones, and all services that it makes, share the policy and with it the budget. `default()` is
/// [`RetryPolicy::http`].
///
/// `H` says how far a response is read before it is judged: to its head, or as a [`HoldLayer`] says.
///
/// ```
/// use std::time::Duration;
/// use seawall::retry::{RetryLayer, RetryPolicy};
///
/// // Also a stream that fails before its first content is repeated.
/// let layer = RetryLayer::new(RetryPolicy::llm()).until_content();
/// # let _ = layer;
/// ```
pub struct RetryLayer<P = RetryPolicy, H = Identity> {
    rules: Arc<Rules<P>>,
    hold: H,
}

impl<P> RetryLayer<P> {
    /// Retries as this policy says.
    pub fn new(policy: P) -> Self {
        let rules = Rules { policy, label: Arc::new(Label::new("retry")), observers: Observers::default() };
        Self { rules: Arc::new(rules), hold: Identity::new() }
    }
}

impl<P, H> RetryLayer<P, H> {
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

    /// Holds an event stream to its first content, so that an error or an end before it is a failure of the attempt:
    /// [`HoldLayer::until_content`]. What fails after it reaches the caller. For HTTP.
    ///
    /// A fallback above holds responses too, and does more about what fails: it asks another target. Choose one of the two,
    /// or let both: what was held here is passed on at once there.
    #[must_use]
    pub fn until_content(self) -> RetryLayer<P, HoldLayer> {
        self.hold(HoldLayer::until_content())
    }

    /// Reads a response to its end before it is passed on, so that one which is cut off is a failure of the attempt:
    /// [`HoldLayer::whole`]. One of more than `limit` bytes is passed on as far as it is. For HTTP.
    #[must_use]
    pub fn buffer_response(self, limit: usize) -> RetryLayer<P, HoldLayer> {
        self.hold(HoldLayer::whole(limit))
    }

    /// Reads responses as far as this says before they are judged. For HTTP.
    #[must_use]
    pub fn hold(self, hold: HoldLayer) -> RetryLayer<P, HoldLayer> {
        RetryLayer { rules: self.rules, hold }
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

impl<S, P, H> Layer<S> for RetryLayer<P, H>
where
    H: Layer<S, Service: Clone>,
{
    type Service = Retry<P, H::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(self.hold.layer(inner), self.rules.clone())
    }
}

impl<P, H: Clone> Clone for RetryLayer<P, H> {
    fn clone(&self) -> Self {
        Self { rules: self.rules.clone(), hold: self.hold.clone() }
    }
}

impl<P: Clone> Clone for Rules<P> {
    fn clone(&self) -> Self {
        Self { policy: self.policy.clone(), label: self.label.clone(), observers: self.observers.clone() }
    }
}

impl<P: fmt::Debug, H> fmt::Debug for RetryLayer<P, H> {
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
