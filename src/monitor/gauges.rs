//! What a handle of a layer shows at this moment.

use std::sync::Arc;
use std::time::Duration;

use crate::monitor::BreakerState;

/// A handle whose state can be shown: of a bulkhead, a token bucket, a circuit breaker, or of your own.
///
/// Give it to [`Monitor::watch`](super::Monitor::watch); it is asked at each snapshot, outside any lock.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use seawall::monitor::{Gauge, Gauges, Monitor};
///
/// #[derive(Clone, Default)]
/// struct Connections(Arc<AtomicU64>);
///
/// impl Gauges for Connections {
///     fn gauges(&self) -> Vec<Gauge> {
///         vec![Gauge::InFlight(self.0.load(Ordering::Relaxed))]
///     }
/// }
///
/// Monitor::new().watch("connections", Connections::default());
/// ```
pub trait Gauges: Send + Sync {
    /// How it stands now. Reading must change nothing.
    fn gauges(&self) -> Vec<Gauge>;
}

impl<G: Gauges + ?Sized> Gauges for Arc<G> {
    fn gauges(&self) -> Vec<Gauge> {
        (**self).gauges()
    }
}

/// One figure of a handle.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Gauge {
    /// How many calls run.
    InFlight(u64),
    /// How many may run at once.
    Limit(u64),
    /// How many calls wait.
    Queued(u64),
    /// How many units of a dimension could pass now.
    Level {
        /// The dimension: `requests`, `tokens` …
        dimension: String,
        /// How many units.
        available: u64,
        /// How many units there are when nobody has taken any.
        capacity: u64,
    },
    /// How long nobody may pass yet; zero is no pause.
    PausedFor(#[cfg_attr(feature = "serde", serde(serialize_with = "super::json::seconds"))] Duration),
    /// The state of a circuit breaker.
    Breaker(#[cfg_attr(feature = "serde", serde(serialize_with = "super::json::state"))] BreakerState),
}
