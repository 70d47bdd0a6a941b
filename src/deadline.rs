//! How long the whole call may still take.

use std::time::Duration;

use crate::time::{self, Instant};

/// The instant by which a whole call must be over, over all its attempts and waits.
///
/// Set by the outermost layer that knows it (the timeout layer's `total`, a server's own limit, a `grpc-timeout`), and
/// obeyed by every layer below: nothing waits past it, nothing is retried past it. Put it into the extensions of an
/// `http::Request`, or into the [`Call`](crate::call::Call) of an own type.
///
/// ```
/// use std::time::Duration;
/// use seawall::Deadline;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Deadline::within(Duration::from_secs(30)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No deadline.
    pub const NEVER: Self = Self(None);

    /// At this instant.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(Some(instant))
    }

    /// After this time from now; `Duration::MAX` means never.
    #[must_use]
    pub fn within(duration: Duration) -> Self {
        Self(time::checked_add(time::now(), duration))
    }

    /// The instant, or `None` for never.
    #[must_use]
    pub const fn instant(self) -> Option<Instant> {
        self.0
    }

    /// What is left at `now`: zero when it has passed, `Duration::MAX` for never.
    #[must_use]
    pub fn remaining(self, now: Instant) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(now))
    }

    /// Whether it has passed at `now`.
    #[must_use]
    pub fn has_passed(self, now: Instant) -> bool {
        self.0.is_some_and(|at| at <= now)
    }

    /// The earlier of the two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self(Some(a.min(b))),
            (at, None) | (None, at) => Self(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_too_long_to_add_means_never() {
        assert_eq!(Deadline::within(Duration::MAX), Deadline::NEVER);
        assert_eq!(Deadline::NEVER.remaining(time::now()), Duration::MAX);
    }

    #[test]
    fn the_earlier_of_two_wins_and_never_loses() {
        let now = time::now();
        let soon = Deadline::at(now);
        let late = Deadline::at(now + Duration::from_secs(1));
        assert_eq!(soon.min(late), soon);
        assert_eq!(Deadline::NEVER.min(late), late);
        assert_eq!(late.min(Deadline::NEVER), late);
        assert!(soon.has_passed(now));
        assert!(!late.has_passed(now));
        assert_eq!(late.remaining(now), Duration::from_secs(1));
    }
}
