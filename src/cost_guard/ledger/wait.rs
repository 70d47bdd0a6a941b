//! Waiting for what calls under way give back, in the order of coming.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use crate::call::Key;
use crate::cost_guard::budget::Spender;
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::{Ask, Cause, Denied, Granted, HoldId, MemoryHold, MemoryLedger};
use crate::money::Usd;

/// An account that a call waits for. It stays where it is as long as somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) book: usize,
    pub(super) shard: u8,
    pub(super) slot: usize,
}

/// Whether and where a call waits.
pub(super) struct Queue<'a> {
    may_wait: bool,
    waker: Option<&'a Waker>,
    joined: Option<Place>,
}

impl<'a> Queue<'a> {
    pub(super) fn none() -> Self {
        Self { may_wait: false, waker: None, joined: None }
    }

    pub(super) fn new(waker: Option<&'a Waker>) -> Self {
        Self { may_wait: true, waker, joined: None }
    }

    pub(super) fn join(&mut self, account: &mut Account, id: HoldId, place: Place) {
        if self.may_wait && account.enqueue(id, self.waker) {
            self.joined = Some(place);
        }
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.joined
    }
}

pin_project! {
    /// Waits until a reservation fits, in the order of coming, or until its patience is over.
    ///
    /// Dropping it gives up the place, and whoever waits behind moves up.
    #[must_use = "futures do nothing unless polled"]
    pub struct MemoryWait {
        waiting: Waiting,
        #[pin]
        patience: Sleep,
    }
}

struct Waiting {
    ledger: MemoryLedger,
    id: HoldId,
    upstream: Option<Key>,
    model: Option<Key>,
    tenant: Option<Key>,
    extra: bool,
    amount: Usd,
    /// Where it waits. `None`: it has left.
    place: Option<Place>,
}

impl MemoryWait {
    pub(super) fn new(ledger: MemoryLedger, ask: &Ask<'_>, place: Place) -> Self {
        let Spender { upstream, model, tenant, extra } = ask.spender;
        let waiting = Waiting {
            ledger,
            id: ask.id,
            upstream: upstream.cloned(),
            model: model.cloned(),
            tenant: tenant.cloned(),
            extra,
            amount: ask.amount,
            place: Some(place),
        };
        Self { waiting, patience: sleep(ask.patience) }
    }
}

impl Waiting {
    /// Tries again, and remembers where it waits now.
    fn retry(&mut self, waker: &Waker) -> Result<Granted<MemoryHold>, Denied> {
        let spender = Spender {
            upstream: self.upstream.as_ref(),
            model: self.model.as_ref(),
            tenant: self.tenant.as_ref(),
            extra: self.extra,
        };
        let mut ask = Ask::new(spender, self.amount);
        ask.id = self.id;
        let mut queue = Queue::new(Some(waker));
        let taken = self.ledger.take(&ask, &mut queue);
        let joined = queue.place();
        // Granted: the reservation has left the queue in the same step. Otherwise it may wait for another account now.
        let before = std::mem::replace(&mut self.place, joined);
        if let Some(before) = before.filter(|&before| Some(before) != joined) {
            self.ledger.leave(self.id, before);
        }
        taken
    }

    fn leave(&mut self) {
        if let Some(place) = self.place.take() {
            self.ledger.leave(self.id, place);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Future for MemoryWait {
    type Output = Result<Granted<MemoryHold>, Denied>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.waiting.retry(cx.waker()) {
            Err(denied) if denied.cause == Cause::Contended && this.waiting.place.is_some() => {
                if this.patience.poll(cx).is_pending() {
                    return Poll::Pending;
                }
                this.waiting.leave();
                Poll::Ready(Err(denied))
            }
            answer => Poll::Ready(answer.map(Granted::after_wait)),
        }
    }
}

impl fmt::Debug for MemoryWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWait").field("place", &self.waiting.place).finish_non_exhaustive()
    }
}
