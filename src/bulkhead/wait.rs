//! Waiting for a slot.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::gate::{Core, Slot};
use super::slots::{Fate, Ticket};
use crate::monitor::Event;
use crate::refusal::{Refusal, RefusalKind};
use crate::stripes::Stripe;
use crate::time::{self, Instant};

/// A place in the queue. Dropping it gives the place up, and hands on the slot if one was already granted.
///
/// It is woken by a grant, by its own timer or by the limit going to zero, and by nothing else.
//
// Boxed: only a call that waits pays for it, and the future of a call that does not stays small (a timer alone is
// larger than all else in it).
#[must_use = "futures do nothing unless polled"]
pub struct Wait(Pin<Box<Waiting>>);

pin_project! {
    struct Waiting {
        core: Arc<Stripe<Core>>,
        // `None` once its fate was seen.
        ticket: Option<Ticket>,
        since: Instant,
        patience: Patience,
        // Made when first polled: a service may be called outside the runtime that then drives it.
        #[pin]
        timer: Option<Sleep>,
    }
}

/// Until when waiting makes sense, and what it means when that is over.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// `None` is for ever.
    pub(super) by: Option<Instant>,
    pub(super) then: RefusalKind,
}

impl Wait {
    pub(super) fn new(core: Arc<Stripe<Core>>, ticket: Ticket, since: Instant, patience: Patience) -> Self {
        Self(Box::pin(Waiting { core, ticket: Some(ticket), since, patience, timer: None }))
    }
}

impl Waiting {
    /// What became of the waiter. Once that is not `Waiting`, it has left the queue.
    fn poll_fate(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fate> {
        let mut this = self.project();
        let ticket = this.ticket.as_ref().expect("`Wait` polled after it was done");
        let fate = this.core.slots.poll(ticket, cx.waker());
        if fate != Fate::Waiting {
            return Poll::Ready(fate);
        }
        let Some(by) = this.patience.by else { return Poll::Pending };
        if this.timer.is_none() {
            this.timer.set(Some(tokio::time::sleep_until(by)));
        }
        let timer = this.timer.as_pin_mut().expect("it was set a line ago");
        ready!(timer.poll(cx));
        // A grant may have come since; then it stands.
        Poll::Ready(match this.core.slots.leave(ticket) {
            Fate::Waiting => Fate::Late,
            fate => fate,
        })
    }
}

impl Future for Wait {
    type Output = Result<Slot, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let fate = ready!(self.0.as_mut().poll_fate(cx));
        let this = self.0.as_mut().project();
        *this.ticket = None;
        let core = &*this.core;
        Poll::Ready(match fate {
            Fate::Granted => {
                let slot = Slot::taken(this.core.clone());
                core.observers.raise(|| {
                    let wait = time::now().saturating_duration_since(*this.since);
                    Event::Waited { label: &core.label, wait }
                });
                Ok(slot)
            }
            Fate::Late | Fate::Waiting => Err(core.refuse(this.patience.then)),
            Fate::Closed => Err(core.refuse(RefusalKind::Full)),
        })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let this = self.0.as_mut().project();
        let Some(ticket) = this.ticket.take() else { return };
        if this.core.slots.leave(&ticket) == Fate::Granted {
            this.core.slots.give_back(time::now);
        }
        this.core.observers.raise(|| Event::Abandoned { label: &this.core.label });
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("since", &self.0.since).finish_non_exhaustive()
    }
}
