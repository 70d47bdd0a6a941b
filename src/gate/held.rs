//! The guard that settles a permit exactly once.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::call::Outcome;
use crate::gate::{End, Follow, Heads, Permit};

/// Holds a permit, and settles it when told to or when dropped, whichever comes first.
///
/// It knows at any moment what a drop would mean: that the inner service was not called yet, that it panicked, or that
/// the caller left. So no gate writes a `Drop`.
pub struct Held<P: Permit> {
    permit: Option<P>,
    outcome: Option<Arc<Outcome>>,
    at_drop: End,
    /// Set before a permit is settled, which may panic.
    settled: bool,
}

impl<P: Permit> Held<P> {
    #[inline]
    pub(crate) fn new(permit: P) -> Self {
        Self { permit: Some(permit), outcome: None, at_drop: End::Unsent, settled: false }
    }

    /// Holds nothing.
    #[inline]
    pub(crate) fn none() -> Self {
        Self { permit: None, outcome: None, at_drop: End::Abandoned, settled: true }
    }

    /// Runs the inner service's code: if that panics, the attempt has failed in the way named.
    #[inline]
    pub(crate) fn running<T>(&mut self, panics_as: End, run: impl FnOnce() -> T) -> T {
        self.at_drop = panics_as;
        let result = match &self.permit {
            Some(permit) => permit.scope(run),
            None => run(),
        };
        self.at_drop = End::Abandoned;
        result
    }

    /// Hands the permit over; nothing is held here any more.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        Self {
            permit: self.permit.take(),
            outcome: self.outcome.take(),
            at_drop: self.at_drop,
            settled: std::mem::replace(&mut self.settled, true),
        }
    }

    /// Leaving from here on means that the inner service was never called.
    pub(crate) fn not_sent(&mut self) {
        self.at_drop = End::Unsent;
    }

    #[inline]
    pub(crate) fn pending(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.pending();
        }
    }

    /// The permit goes into a body.
    #[inline]
    pub(crate) fn followed(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.followed();
        }
    }

    /// Shows the head to the permit.
    #[inline]
    pub(crate) fn head<Res, E>(&mut self, head: Result<&Res, &E>) -> Follow
    where
        P: Heads<Res, E>,
    {
        match &mut self.permit {
            Some(permit) => permit.head(head),
            None => Follow::Settle,
        }
    }

    /// Remembers where the response's facts are written.
    pub(crate) fn watch(&mut self, outcome: Option<&Arc<Outcome>>) {
        self.outcome = outcome.cloned();
    }

    /// The permit, and where the response's facts are written.
    pub(crate) fn watched(&self) -> Option<(&P, &Arc<Outcome>)> {
        Some((self.permit.as_ref()?, self.outcome.as_ref()?))
    }

    pub(crate) fn is_held(&self) -> bool {
        !self.settled
    }

    #[inline]
    pub(crate) fn settle(&mut self, end: End) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        // In place: moving a permit about costs more than most of what settling it does.
        if let Some(permit) = &mut self.permit {
            permit.settle(end, self.outcome.as_deref());
        }
        self.permit = None;
    }
}

impl<P: Permit> Drop for Held<P> {
    #[inline]
    fn drop(&mut self) {
        if !self.settled {
            self.settle_dropped();
        }
    }
}

impl<P: Permit> Held<P> {
    /// What a drop means, and the settlement of it.
    #[cold]
    #[inline(never)]
    fn settle_dropped(&mut self) {
        let end = match self.at_drop {
            // A client stops reading at the terminal event of a stream and drops what is left.
            End::Abandoned if self.outcome.as_deref().is_some_and(Outcome::is_finished) => End::Complete,
            end => end,
        };
        if std::thread::panicking() {
            // A second panic would abort the process: the permit of one call is not worth that.
            let _ = catch_unwind(AssertUnwindSafe(|| self.settle(end)));
        } else {
            self.settle(end);
        }
    }
}

impl<P: Permit> fmt::Debug for Held<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("held", &self.is_held()).finish_non_exhaustive()
    }
}
