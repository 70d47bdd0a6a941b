//! Which targets can serve now.

use std::time::Duration;

use super::Target;
use crate::bulkhead::Bulkhead;
use crate::circuit_breaker::CircuitBreaker;
use crate::gate::{ByUpstream, Gate, Keyed, PerKey};
use crate::token_bucket::TokenBucket;

/// Tells whether a target can serve now, so that the fallback need not ask one that cannot.
///
/// Implemented for closures. Give it the handles of the gates below, a circuit breaker's state for example. It is asked
/// once for each target that could be asked next, outside any lock; what it says is a hint: a gate still decides itself.
///
/// ```
/// use seawall::fallback::{Health, Standing, Target};
///
/// /// An upstream that is taken out for maintenance.
/// fn standing(target: &Target) -> Standing {
///     if target.upstream().name().as_str() == "east" { Standing::Out(None) } else { Standing::Serves }
/// }
///
/// fn is_health(_: impl Health) {}
/// is_health(standing);
/// ```
pub trait Health: Send + Sync {
    /// How this target stands.
    fn standing(&self, target: &Target) -> Standing;
}

/// How a target stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It can serve.
    Serves,
    /// It has no room now: its gate is full, or at its limit. It is asked where no other can serve.
    Busy,
    /// It is out: its circuit breaker is open, for so long yet where that is known. Where all are out, the one that is the
    /// shortest is asked with a probe.
    Out(Option<Duration>),
}

impl Standing {
    /// The worse of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Out(a), Self::Out(b)) => Self::Out(a.max(b)),
            (out @ Self::Out(_), _) | (_, out @ Self::Out(_)) => out,
            (Self::Busy, _) | (_, Self::Busy) => Self::Busy,
            (Self::Serves, Self::Serves) => Self::Serves,
        }
    }
}

impl<F> Health for F
where
    F: Fn(&Target) -> Standing + Send + Sync,
{
    fn standing(&self, target: &Target) -> Standing {
        self(target)
    }
}

/// A circuit breaker an upstream: out while it is open. Give the layer's [`gate`](crate::circuit_breaker::CircuitBreakerLayer::gate).
impl<C, R> Health for Keyed<CircuitBreaker<C, R>, ByUpstream>
where
    CircuitBreaker<C, R>: PerKey + Gate<()> + Send + Sync,
{
    fn standing(&self, target: &Target) -> Standing {
        match self.find(target.upstream().name()) {
            Some(breaker) if breaker.shut() => Standing::Out(breaker.snapshot().open_left),
            _ => Standing::Serves,
        }
    }
}

/// A bulkhead an upstream: busy while neither a slot nor a place in the queue is free. Give the layer's
/// [`gate`](crate::bulkhead::BulkheadLayer::gate).
impl<R, P> Health for Keyed<Bulkhead<R, P>, ByUpstream>
where
    Bulkhead<R, P>: PerKey + Send + Sync,
{
    fn standing(&self, target: &Target) -> Standing {
        match self.find(target.upstream().name()) {
            Some(bulkhead) if bulkhead.is_full() => Standing::Busy,
            _ => Standing::Serves,
        }
    }
}

/// A token bucket an upstream: busy while its upstream's hint pauses everybody for longer than they may wait. Give the layer's
/// [`gate`](crate::token_bucket::TokenBucketLayer::gate).
impl<U, R> Health for Keyed<TokenBucket<U, R>, ByUpstream>
where
    TokenBucket<U, R>: PerKey + Send + Sync,
{
    fn standing(&self, target: &Target) -> Standing {
        match self.find(target.upstream().name()) {
            Some(bucket) if bucket.is_shut() => Standing::Busy,
            _ => Standing::Serves,
        }
    }
}
