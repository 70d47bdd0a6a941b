//! Typed events: one for each decision a layer makes, raised in one place.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::call::Key;
use crate::money::Usd;
use crate::monitor::Alert;
use crate::refusal::{Label, Refusal};
use crate::verdict::Verdict;

/// Something a layer decided.
///
/// Cheap to build and borrowed: an observer that wants to keep one copies what it needs. Nothing is built when nobody
/// listens. No event carries a prompt, an answer or a credential.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A layer refused an attempt; the upstream was not asked.
    #[non_exhaustive]
    Refused {
        /// Who refused.
        label: &'a Label,
        /// The refusal, as the caller sees it.
        refusal: &'a Refusal,
    },
    /// A layer that only observes would have refused.
    #[non_exhaustive]
    WouldRefuse {
        /// Who would have.
        label: &'a Label,
        /// The refusal that nobody sees.
        refusal: &'a Refusal,
    },
    /// A circuit breaker went to another state.
    #[non_exhaustive]
    BreakerMoved {
        /// Whose state.
        label: &'a Label,
        /// The state it left.
        from: BreakerState,
        /// The state it is in.
        to: BreakerState,
        /// Why.
        cause: BreakerCause,
        /// How long it stays open, if it opened for a time.
        open_for: Option<Duration>,
    },
    /// An attempt was admitted after it had waited.
    #[non_exhaustive]
    Waited {
        /// Where it waited.
        label: &'a Label,
        /// How long.
        wait: Duration,
    },
    /// An attempt failed and will be repeated at the same target.
    #[non_exhaustive]
    Retrying {
        /// Whose loop.
        label: &'a Label,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits before the next one.
        after: Duration,
        /// What the failure means.
        verdict: Verdict,
    },
    /// An attempt failed and will not be repeated: the caller gets its outcome as it is.
    #[non_exhaustive]
    GaveUp {
        /// Whose loop.
        label: &'a Label,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why no other follows.
        cause: StopCause,
        /// What the failure means.
        verdict: Verdict,
    },
    /// Spending passed a mark of a budget, for the first time in its window.
    #[non_exhaustive]
    BudgetMark {
        /// Which budget, and which of its accounts.
        label: &'a Label,
        /// The mark, in percent of the limit.
        percent: u8,
        /// What is spent in this window.
        spent: Usd,
        /// The limit.
        limit: Usd,
    },
    /// An attempt was charged. Where `amount` is above `reserved`, the upstream used more than the bound allowed for.
    #[non_exhaustive]
    Spent {
        /// Who charged.
        label: &'a Label,
        /// The upstream that served.
        upstream: Option<&'a Key>,
        /// The model that served.
        model: Option<&'a Key>,
        /// What it cost.
        amount: Usd,
        /// What was reserved for it.
        reserved: Usd,
        /// By what it was charged.
        basis: Basis,
        /// Whether it was a further attempt: a retry, or at another target than the first.
        extra: bool,
    },
    /// No price is known for what was asked for.
    #[non_exhaustive]
    Unpriced {
        /// Who looked for it.
        label: &'a Label,
        /// The upstream.
        upstream: Option<&'a Key>,
        /// The model.
        model: Option<&'a Key>,
    },
    /// The ledger could not be asked, and the attempt passed without a reservation, because the guard is set so.
    #[non_exhaustive]
    Unreserved {
        /// Who let it pass.
        label: &'a Label,
    },
    /// A caller left while it waited, or dropped a call that had begun.
    #[non_exhaustive]
    Abandoned {
        /// Whose permit or place it held.
        label: &'a Label,
    },
    /// A target failed, and another one is asked.
    #[non_exhaustive]
    FellOver {
        /// Whose loop.
        label: &'a Label,
        /// The upstream that failed.
        from: &'a Key,
        /// The upstream that is asked next.
        to: &'a Key,
        /// What the failure means.
        verdict: Verdict,
    },
    /// The last target that could be asked failed, or none could be asked at all.
    #[non_exhaustive]
    NoTargetLeft {
        /// Whose loop.
        label: &'a Label,
        /// How many targets were asked.
        asked: u32,
        /// What the last failure means, if one was asked.
        verdict: Option<Verdict>,
    },
    /// An alert of a [`Monitor`](super::Monitor) went on or off.
    #[non_exhaustive]
    Alert {
        /// Whose.
        label: &'a Label,
        /// Which.
        alert: &'a Alert,
    },
}

impl Event<'_> {
    /// Who raised it.
    #[must_use]
    pub fn label(&self) -> &Label {
        match self {
            Self::Refused { label, .. }
            | Self::WouldRefuse { label, .. }
            | Self::BreakerMoved { label, .. }
            | Self::Waited { label, .. }
            | Self::Retrying { label, .. }
            | Self::GaveUp { label, .. }
            | Self::BudgetMark { label, .. }
            | Self::Spent { label, .. }
            | Self::Unpriced { label, .. }
            | Self::Unreserved { label, .. }
            | Self::Abandoned { label, .. }
            | Self::FellOver { label, .. }
            | Self::NoTargetLeft { label, .. }
            | Self::Alert { label, .. } => label,
        }
    }
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Admits.
    Closed,
    /// Refuses.
    Open,
    /// Admits a few probes, to see whether the upstream is back.
    HalfOpen,
}

/// Why a circuit breaker went to another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerCause {
    /// That many failures came one after the other.
    Consecutive,
    /// Too large a share of the calls in the window failed.
    FailureRate,
    /// Too large a share of the calls in the window was slow.
    SlowRate,
    /// One answer was enough: the account is exhausted or denied, or throttling is set to open.
    Verdict,
    /// The open time was over.
    TimeOver,
    /// A probe failed.
    ProbeFailed,
    /// Enough probes succeeded.
    ProbesSucceeded,
    /// Somebody said so, through the handle.
    Handle,
}

/// Why no further attempt is made at the same target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopCause {
    /// The answer is good.
    Answered,
    /// A failure of this kind does not pass by being repeated.
    NotRetried,
    /// One of our own layers refused: it would refuse again.
    Refused,
    /// It may have been processed, and doing it twice is not known to be the same as doing it once.
    NotIdempotent,
    /// The request cannot be sent again: its body is gone, or it cannot be copied.
    NotReplayable,
    /// The call asked for one attempt.
    OptedOut,
    /// All attempts are used up.
    Attempts,
    /// The attempt was silent, and another target is left to be asked.
    AnotherTarget,
    /// The wait is longer than the patience for it.
    Impatient,
    /// The next attempt would come after the call's deadline.
    Deadline,
    /// The next attempt would come after the longest time that retries may take.
    Time,
    /// The upstream's retry budget is spent.
    Budget,
    /// A policy of the user's own.
    Policy,
}

/// By what an attempt was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Basis {
    /// By the usage that the upstream reported.
    Usage,
    /// By the bound, because nothing else was known.
    Bound,
    /// By the bound, because what the upstream reported cannot be.
    Anomaly,
    /// By what was seen.
    Seen,
    /// It was sent, and cost nothing.
    Nothing,
}

/// Listens to the layers.
///
/// Called where the decision was made, after every lock is released, from the task that made it and at times from a
/// drop: it must not block. A panic is contained and harms nobody. Closures are observers.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use seawall::bulkhead::BulkheadLayer;
/// use seawall::monitor::Event;
///
/// let refused = Arc::new(AtomicU64::new(0));
/// let count = refused.clone();
/// let layer = BulkheadLayer::builder(8)
///     .observer(move |event: &Event<'_>| {
///         if let Event::Refused { refusal, .. } = event {
///             count.fetch_add(1, Ordering::Relaxed);
///             eprintln!("{refusal}");
///         }
///     })
///     .build()?;
/// # let _ = (layer, refused);
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub trait Observer: Send + Sync {
    /// Something was decided.
    fn event(&self, event: &Event<'_>);
}

impl<F> Observer for F
where
    F: Fn(&Event<'_>) + Send + Sync,
{
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// One observer for several layers.
impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn event(&self, event: &Event<'_>) {
        (**self).event(event);
    }
}

/// Several observers as one. A panic in one harms none of the others.
///
/// Layers need none: their `.observer(…)` adds another one each time.
#[derive(Clone, Default)]
pub struct Fanout(Vec<Arc<dyn Observer>>);

impl Fanout {
    /// Nobody yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// And this one.
    #[must_use]
    pub fn and(mut self, observer: impl Observer + 'static) -> Self {
        self.0.push(Arc::new(observer));
        self
    }
}

impl Observer for Fanout {
    fn event(&self, event: &Event<'_>) {
        for observer in &self.0 {
            contained(&**observer, event);
        }
    }
}

impl fmt::Debug for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fanout({})", self.0.len())
    }
}

/// Who listens to one layer: nobody, one observer, or several.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<dyn Observer>>);

impl Observers {
    /// One more listens.
    pub(crate) fn add(&mut self, observer: impl Observer + 'static) {
        self.0 = Some(match self.0.take() {
            None => Arc::new(observer),
            Some(first) => Arc::new(Fanout::new().and(first).and(observer)),
        });
    }

    /// Whether somebody listens.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.is_some()
    }

    /// Raises an event, which is built only if somebody listens.
    #[inline]
    pub(crate) fn raise<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(observer) = &self.0 {
            Self::tell(&**observer, &event());
        }
    }

    #[cold]
    fn tell(observer: &dyn Observer, event: &Event<'_>) {
        contained(observer, event);
    }
}

/// What an observer does wrong is no business of the call; and a second panic in a drop would abort.
fn contained(observer: &dyn Observer, event: &Event<'_>) {
    let _ = catch_unwind(AssertUnwindSafe(|| observer.event(event)));
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observers(1)" } else { "Observers(0)" })
    }
}
