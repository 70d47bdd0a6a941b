//! The breaker as a gate, one state a key if wanted.

use std::fmt;
use std::future::Ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::call::{Described, Key, Read};
use crate::gate::{Admission, Gate, PerKey};
use crate::monitor::{Event, Observers};
use crate::refusal::{Label, Refusal, RefusalKind};
use crate::time::{Instant, Origin};
use crate::verdict::StatusClassifier;

use super::cell::Cell;
use super::permit::BreakerPermit;
use super::settings::Settings;
use super::state::{Admit, Moved, NEVER, Recorded, Sample, State, Ticket};

/// A circuit breaker: the gate, and the handle on its state.
///
/// Clones share the state. `C` classifies answers, `R` reads requests. See the [module](super).
///
/// ```
/// use seawall::circuit_breaker::{BreakerState, CircuitBreakerLayer};
///
/// let layer = CircuitBreakerLayer::new();
/// let breaker = layer.gate().clone();
/// breaker.force_open(); // for maintenance
/// assert_eq!(breaker.state(), BreakerState::Open);
/// breaker.reset();
/// assert_eq!((breaker.state(), breaker.snapshot().calls), (BreakerState::Closed, 0));
/// ```
pub struct CircuitBreaker<C = StatusClassifier, R = Described> {
    pub(super) inner: Arc<Inner<C>>,
    reader: R,
}

/// What the breakers of one layer have in common.
pub(super) struct Shared<C> {
    pub(super) classifier: C,
    pub(super) observers: Observers,
    pub(super) settings: Arc<Settings>,
    pub(super) by_key: Option<Arc<SettingsOf>>,
    pub(super) name: Box<str>,
    pub(super) key_class: Option<Box<str>>,
    pub(super) observe_only: bool,
}

/// The settings of a key.
pub(super) type SettingsOf = dyn Fn(&Key) -> Settings + Send + Sync;

/// One breaker. The cell comes first: see there.
#[repr(C)]
pub(super) struct Inner<C> {
    pub(super) cell: Cell,
    pub(super) settings: Arc<Settings>,
    pub(super) shared: Arc<Shared<C>>,
    /// Times are counted from here.
    pub(super) origin: Origin,
    pub(super) label: Arc<Label>,
    pub(super) abandoned: AtomicU64,
    pub(super) late: AtomicU64,
}

impl<C> Inner<C> {
    fn new(shared: Arc<Shared<C>>, settings: Arc<Settings>, label: Label) -> Arc<Self> {
        let state = State::new(settings.clone(), || fastrand::u32(..));
        Arc::new(Self {
            cell: Cell::new(state),
            settings,
            shared,
            origin: Origin::new(),
            label: Arc::new(label),
            abandoned: AtomicU64::new(0),
            late: AtomicU64::new(0),
        })
    }

    /// Nanoseconds from the breaker's making to this instant.
    #[inline]
    pub(super) fn tick(&self, instant: Instant) -> u64 {
        self.origin.to(instant)
    }

    pub(super) fn now(&self) -> u64 {
        self.origin.elapsed()
    }

    /// Counts an answer.
    #[inline]
    pub(super) fn settle(&self, now: u64, ticket: Ticket, sample: Sample) {
        match self.cell.settle(now, ticket, sample) {
            Recorded::Kept => {}
            Recorded::Late => {
                self.late.fetch_add(1, Ordering::Relaxed);
            }
            Recorded::Moved(moved) => self.tell_move(moved),
        }
    }

    /// Says that the breaker moved. No lock is held here.
    pub(super) fn tell_move(&self, moved: Moved) {
        let Moved { from, to, cause, open_for } = moved;
        if from != to || open_for.is_some() {
            self.shared.observers.raise(|| Event::BreakerMoved {
                label: &self.label,
                from,
                to,
                cause,
                open_for,
            });
        }
    }

    /// For how long unmarked calls are all refused.
    #[inline]
    fn refuses(&self) -> Option<u64> {
        self.cell.refuses(|until| self.origin.elapsed_towards(until))
    }

    /// Admits or refuses, one by one.
    #[cold]
    fn look(&self, marked: bool) -> Result<Ticket, u64> {
        let (admit, moved) = self.cell.admit(self.now(), marked);
        if let Some(moved) = moved {
            self.tell_move(moved);
        }
        match admit {
            Admit::Pass(ticket) => Ok(ticket),
            Admit::Refuse { left } => self.refuse(left.unwrap_or(NEVER)),
        }
    }

    /// Refuses for so many nanoseconds, or would have.
    #[inline]
    fn refuse(&self, left: u64) -> Result<Ticket, u64> {
        if self.shared.observers.any() {
            self.tell_refusal(left);
        }
        if self.shared.observe_only {
            return Ok(Ticket { generation: self.cell.generation(), probe: 0 });
        }
        Err(left)
    }

    /// The one place that says no, for so many nanoseconds if that is known.
    #[inline]
    fn refusal(&self, left: u64) -> Refusal {
        let refusal = Refusal::new(RefusalKind::Open).with_label(self.label.clone());
        if left == NEVER { refusal } else { refusal.with_retry_after(Duration::from_nanos(left)) }
    }

    /// Tells who listens of a refusal, or of one that would have been.
    #[cold]
    #[inline(never)]
    fn tell_refusal(&self, left: u64) {
        let (label, refusal) = (&*self.label, &self.refusal(left));
        self.shared.observers.raise(|| {
            if self.shared.observe_only {
                Event::WouldRefuse { label, refusal }
            } else {
                Event::Refused { label, refusal }
            }
        });
    }
}

/// A breaker never says *later*.
type NoWait<C> = Ready<Result<BreakerPermit<C>, Refusal>>;

impl<C, R> CircuitBreaker<C, R> {
    pub(super) fn new(shared: Shared<C>, reader: R) -> Self {
        let label = Label::new(shared.name.clone());
        let settings = shared.settings.clone();
        Self { inner: Inner::new(Arc::new(shared), settings, label), reader }
    }

    /// The answer of a breaker that is shut; the error is for how long.
    #[inline(never)]
    fn admit_shut<Req>(&self, request: &Req) -> Result<Ticket, u64>
    where
        R: Read<Req>,
    {
        let inner = &self.inner;
        let marked = self.reader.call(request).is_some_and(|call| call.probe);
        let left = if marked { None } else { inner.refuses() };
        match left {
            Some(left) => inner.refuse(left),
            None => inner.look(marked),
        }
    }

    #[inline]
    fn permit<Req>(&self, ticket: Ticket, request: &Req) -> BreakerPermit<C>
    where
        R: Read<Req>,
    {
        let permit = BreakerPermit::new(self.inner.clone(), ticket);
        let spared = self.inner.settings.first_target_only
            && self.reader.call(request).is_some_and(|call| call.failed_elsewhere);
        if spared { permit.spared() } else { permit }
    }
}

impl<Req, C, R: Read<Req>> Gate<Req> for CircuitBreaker<C, R> {
    type Permit = BreakerPermit<C>;
    type Wait = NoWait<C>;

    /// Without the lock, and without the clock while closed or held open.
    #[inline]
    fn shut(&self) -> bool {
        !self.inner.shared.observe_only && self.inner.refuses().is_some()
    }

    #[inline]
    fn admit(&self, request: &mut Req) -> Admission<BreakerPermit<C>, NoWait<C>> {
        // Permit and refusal are made here alone, and so where they are to lie.
        let ticket = match self.inner.cell.pass() {
            Some(ticket) => ticket,
            None => match self.admit_shut(request) {
                Ok(ticket) => ticket,
                Err(left) => return Admission::Refused(self.inner.refusal(left)),
            },
        };
        Admission::Now(self.permit(ticket, request))
    }
}

impl<C, R: Clone> PerKey for CircuitBreaker<C, R> {
    fn for_key(&self, key: &Key) -> Self {
        let shared = &self.inner.shared;
        let settings = match &shared.by_key {
            Some(settings_of) => Arc::new(settings_of(key)),
            None => shared.settings.clone(),
        };
        let mut label = Label::new(shared.name.clone()).with_key(key.clone());
        if let Some(class) = &shared.key_class {
            label = label.with_key_class(class.clone());
        }
        Self { inner: Inner::new(shared.clone(), settings, label), reader: self.reader.clone() }
    }

    fn at_rest(&self) -> bool {
        Arc::strong_count(&self.inner) == 1 && self.inner.cell.is_at_rest(self.inner.now())
    }
}

impl<C, R: Clone> Clone for CircuitBreaker<C, R> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), reader: self.reader.clone() }
    }
}

impl<C, R> fmt::Debug for CircuitBreaker<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("name", &self.inner.label.name())
            .field("key", &self.inner.label.key())
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}
