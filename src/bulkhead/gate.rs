//! The gate: who gets a slot now, who waits, who is refused.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::rank::{ByCall, Rank};
use super::slots::{Entry, Slots};
use super::wait::{Patience, Wait};
use crate::call::{Described, Key, Outcome, Priority, Read};
use crate::deadline::Deadline;
use crate::gate::{Admission, End, Follow, Gate, Heads, PerKey, Permit};
use crate::monitor::{Event, Gauge, Gauges, Observers};
use crate::refusal::{Label, Refusal, RefusalKind};
use crate::stripes::{Stripe, Stripes};
use crate::time;

/// The gate of a bulkhead, and the handle on its state: clones share it.
///
/// `R` reads the request (its deadline, its [`Call`](crate::call::Call)), `P` finds its priority. Reading any count
/// changes nothing. Counts are of one moment: while others call, they may differ by the time they are used.
///
/// ```
/// use seawall::bulkhead::BulkheadLayer;
///
/// let bulkhead = BulkheadLayer::new(16).gate().clone();
/// assert_eq!((bulkhead.in_flight(), bulkhead.queued(), bulkhead.is_full()), (0, 0, false));
/// bulkhead.set_limit(32);
/// ```
pub struct Bulkhead<R = Described, P = ByCall> {
    core: Arc<Core>,
    stripes: Stripes<Core>,
    reader: R,
    rank: P,
}

/// The state that all handles, permits and waiters share.
//
// The slots come first, so that all that each call touches lies together.
#[repr(C)]
pub(super) struct Core {
    pub(super) slots: Slots,
    pub(super) observers: Observers,
    pub(super) label: Arc<Label>,
    settings: Settings,
}

/// What a state is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) limit: u32,
    /// `None`: as many as the limit.
    pub(super) queue: Option<u32>,
    /// `Duration::MAX` is for ever.
    pub(super) max_wait: Duration,
    pub(super) expected_service: Duration,
}

impl Core {
    /// A refusal of this kind. The one place where the bulkhead says no.
    #[inline]
    pub(super) fn refuse(&self, kind: RefusalKind) -> Refusal {
        if self.observers.any() {
            self.tell_refusal(kind);
        }
        self.refusal(kind)
    }

    #[inline]
    fn refusal(&self, kind: RefusalKind) -> Refusal {
        Refusal::new(kind).with_label(self.label.clone())
    }

    #[cold]
    #[inline(never)]
    fn tell_refusal(&self, kind: RefusalKind) {
        let refusal = &self.refusal(kind);
        self.observers.raise(|| Event::Refused { label: &self.label, refusal });
    }
}

impl<R, P> Bulkhead<R, P> {
    pub(super) fn new(settings: Settings, label: Label, observers: Observers, reader: R, rank: P) -> Self {
        let slots = Slots::new(settings.limit, settings.queue);
        // One of many keys' states is seldom used by two threads at once.
        let many = label.key().is_some();
        let core = Arc::new(Core { slots, observers, label: Arc::new(label), settings });
        let stripes = if many { Stripes::one(&core) } else { Stripes::new(&core) };
        Self { core, stripes, reader, rank }
    }

    /// The same with a state of its own.
    pub(super) fn anew(&self, settings: Settings, label: Label) -> Self
    where
        R: Clone,
        P: Clone,
    {
        Self::new(settings, label, self.core.observers.clone(), self.reader.clone(), self.rank.clone())
    }

    pub(super) fn settings(&self) -> Settings {
        self.core.settings
    }

    pub(super) fn label(&self) -> &Label {
        &self.core.label
    }

    /// How many calls may run at once.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.core.slots.limit()
    }

    /// How many calls run: admitted, and their responses not at their end. It is counted, not derived from the limit, so
    /// it stays true when a lower limit leaves more running than may.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.core.slots.in_flight()
    }

    /// How many calls wait.
    #[must_use]
    pub fn queued(&self) -> u32 {
        self.core.slots.queued()
    }

    /// Whether neither a slot nor a place in the queue is free: the next call is refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.core.slots.is_full()
    }

    /// Changes the limit while calls run.
    ///
    /// A higher limit admits waiters at once. A lower one takes nothing from those that run: the next is admitted when
    /// fewer run than the new limit allows. Zero refuses all that come and all that wait. A queue without a length
    /// of its own follows the limit; none that wait already are sent away for that.
    pub fn set_limit(&self, limit: u32) {
        self.core.slots.set_limit(limit, time::now);
    }

    /// The path of a call that got no slot at once.
    #[cold]
    fn queue<Req>(&self, request: &Req) -> Admission<Slot, Wait>
    where
        R: Read<Req>,
        P: Rank<Req, R>,
    {
        if self.core.slots.is_full() {
            return Admission::Refused(self.core.refuse(RefusalKind::Full));
        }
        // The user's closure runs here, before anything is taken and before any lock.
        let priority = self.rank.rank(&self.reader, request);
        enter(self.stripes.mine(), priority, self.reader.deadline(request))
    }
}

fn enter(core: &Arc<Stripe<Core>>, priority: Priority, deadline: Option<Deadline>) -> Admission<Slot, Wait> {
    let now = time::now();
    let patience = core.settings.patience(now, deadline);
    if patience.by.is_some_and(|by| by <= now) {
        return Admission::Refused(core.refuse(patience.then));
    }
    match core.slots.enter(priority, patience.by) {
        Entry::Taken => Admission::Now(Slot::taken(core.clone())),
        Entry::Queued(ticket) => Admission::Later(Wait::new(core.clone(), ticket, now, patience)),
        Entry::Full => Admission::Refused(core.refuse(RefusalKind::Full)),
    }
}

impl Settings {
    /// How long a call that arrives now will wait: to the longest wait, or to the last instant at which its deadline
    /// leaves it the time it needs, whichever comes first.
    fn patience(&self, now: time::Instant, deadline: Option<Deadline>) -> Patience {
        let patience =
            Patience { by: time::checked_add(now, self.max_wait), then: RefusalKind::QueueTimeout };
        let Some(deadline) = deadline.and_then(Deadline::instant) else { return patience };
        // Too early for the clock to say: it is over already.
        let latest = deadline.checked_sub(self.expected_service).unwrap_or(now);
        match patience.by {
            Some(by) if by < latest => patience,
            _ => Patience { by: Some(latest), then: RefusalKind::Deadline },
        }
    }
}

impl<Req, R, P> Gate<Req> for Bulkhead<R, P>
where
    R: Read<Req>,
    P: Rank<Req, R>,
{
    type Permit = Slot;
    type Wait = Wait;

    #[inline]
    fn shut(&self) -> bool {
        self.core.slots.is_full()
    }

    #[inline]
    fn admit(&self, request: &mut Req) -> Admission<Slot, Wait> {
        if self.core.slots.try_take() {
            return Admission::Now(Slot::taken(self.stripes.mine().clone()));
        }
        self.queue(request)
    }
}

/// What a monitor shows of it.
impl<R: Send + Sync, P: Send + Sync> Gauges for Bulkhead<R, P> {
    fn gauges(&self) -> Vec<Gauge> {
        vec![
            Gauge::InFlight(self.in_flight().into()),
            Gauge::Limit(self.limit().into()),
            Gauge::Queued(self.queued().into()),
        ]
    }
}

impl<R: Clone, P: Clone> PerKey for Bulkhead<R, P> {
    fn for_key(&self, key: &Key) -> Self {
        self.anew(self.settings(), self.label().clone().with_key(key.clone()))
    }

    fn at_rest(&self) -> bool {
        // Permits and waiters each hold a stripe, handles hold all of them.
        self.stripes.are_unused() && self.limit() == self.core.settings.limit
    }
}

/// The permit of a bulkhead: one slot, held to the end of the response whatever its head says.
#[must_use = "a slot is held until it is settled"]
pub struct Slot(Arc<Stripe<Core>>);

impl Slot {
    /// The permit for a slot that was taken.
    #[inline]
    pub(super) fn taken(core: Arc<Stripe<Core>>) -> Self {
        Self(core)
    }
}

impl Permit for Slot {
    #[inline]
    fn settle(&mut self, _end: End, _outcome: Option<&Outcome>) {
        self.0.slots.give_back(time::now);
    }
}

impl<Res, E> Heads<Res, E> for Slot {
    #[inline]
    fn head(&mut self, _head: Result<&Res, &E>) -> Follow {
        Follow::Body
    }
}

impl<R: Clone, P: Clone> Clone for Bulkhead<R, P> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            stripes: self.stripes.clone(),
            reader: self.reader.clone(),
            rank: self.rank.clone(),
        }
    }
}

impl<R, P> fmt::Debug for Bulkhead<R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkhead")
            .field("name", &self.label().name())
            .field("limit", &self.limit())
            .field("in_flight", &self.in_flight())
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}
