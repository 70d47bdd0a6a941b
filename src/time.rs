//! The one place that reads a clock.
//!
//! Decisions use monotonic time, tokio's, so that a paused clock drives every test; where a tick of the kernel more or less
//! decides nothing, the kernel's coarse clock, in builds whose clock cannot be paused. Wall time serves only header dates and
//! calendar windows. All arithmetic saturates: a duration too long to add means *never*.

mod kernel;
mod origin;

use std::time::Duration;

pub(crate) use origin::Origin;
pub use tokio::time::Instant;

/// The monotonic clock that all layers decide by.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
#[must_use]
#[inline]
pub fn now() -> Instant {
    Instant::now()
}

/// `instant + duration`, or `None` where that is beyond what the clock can say: never.
pub(crate) fn checked_add(instant: Instant, duration: Duration) -> Option<Instant> {
    // Instants of some platforms overflow only at the far end of a signed 64-bit second, where timers misbehave long
    // before; a century is never for a call.
    const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    if duration >= NEVER { None } else { instant.checked_add(duration) }
}

/// Nanoseconds in a duration, saturating at `u64::MAX` (584 years), which means never.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}

/// Tells the time of day, for header dates and calendar windows; nothing else may depend on it.
///
/// Implemented by [`SystemWall`]; tests put a clock of their own in its place.
///
/// ```
/// use std::time::Duration;
/// use seawall::cost_guard::{Budget, CostGuardLayer, PriceTable, Usd, Window};
/// use seawall::time::Wall;
///
/// /// It is always the same second.
/// struct Noon;
///
/// impl Wall for Noon {
///     fn since_epoch(&self) -> Duration {
///         Duration::from_secs(1_795_953_600)
///     }
/// }
///
/// let budget = Budget::new(Usd::dollars(1), Window::DAY);
/// let layer = CostGuardLayer::builder().prices(PriceTable::new()).budget(budget).wall(Noon).build()?;
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub trait Wall: Send + Sync {
    /// Time since the Unix epoch.
    fn since_epoch(&self) -> Duration;
}

/// The system's clock; on Linux to a tick of the kernel, which is 1 to 10 ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWall;

impl Wall for SystemWall {
    #[inline]
    fn since_epoch(&self) -> Duration {
        kernel::since_epoch()
    }
}

impl<F> Wall for F
where
    F: Fn() -> Duration + Send + Sync,
{
    fn since_epoch(&self) -> Duration {
        self()
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn unix_millis(wall: &dyn Wall) -> i64 {
    let since = wall.since_epoch();
    let millis = since.as_secs().saturating_mul(1_000).saturating_add(since.subsec_millis().into());
    i64::try_from(millis).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_types, reason = "the clock to compare with")]
    fn the_time_of_day_is_the_systems() {
        let system = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        assert!(SystemWall.since_epoch().abs_diff(system) < Duration::from_secs(60));
    }

    #[test]
    fn a_time_of_day_that_is_too_far_off_is_the_last() {
        assert_eq!(unix_millis(&|| Duration::new(1_795_953_600, 7_999_999)), 1_795_953_600_007);
        assert_eq!(unix_millis(&|| Duration::MAX), i64::MAX);
    }
}
