//! The wait for a permit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use crate::monitor::Event;
use crate::refusal::Refusal;
use crate::token_bucket::bucket::nanos_up;
use crate::token_bucket::gate::{State, too_late};
use crate::token_bucket::lease::Owner;
use crate::token_bucket::permit::BucketPermit;
use crate::token_bucket::queue::Polled;

pin_project! {
    /// A place in the line. Dropping it gives the place up, and those behind move up.
    ///
    /// It sleeps on tokio's timer, whose ticks are milliseconds.
    #[must_use = "futures do nothing unless polled"]
    pub struct Wait<U, R> {
        place: Place<U, R>,
        // Set when it first has to sleep.
        #[pin]
        sleep: Option<Sleep>,
        // When the timer is set to.
        alarm: u64,
        input: u64,
        since: u64,
        deadline: u64,
    }
}

/// Gives the place up when dropped.
struct Place<U, R> {
    state: Arc<State<U, R>>,
    ticket: u64,
    fetched: bool,
}

impl<U, R> Wait<U, R> {
    pub(super) fn new(
        state: Arc<State<U, R>>,
        ticket: u64,
        at: u64,
        input: u64,
        since: u64,
        deadline: u64,
    ) -> Self {
        let place = Place { state, ticket, fetched: false };
        Self { place, sleep: None, alarm: at, input, since, deadline }
    }
}

impl<U, R> Future for Wait<U, R> {
    type Output = Result<BucketPermit<U, R>, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let place = this.place;
        loop {
            let state = &place.state;
            let now = state.now();
            // Registered under the lock, so that a wake-up comes after it or was seen.
            match state.core.poll(now, place.ticket, cx.waker().clone()) {
                Polled::Granted(granted, costs) => {
                    place.fetched = true;
                    let wait = Duration::from_nanos(nanos_up(now.saturating_sub(*this.since)));
                    state.config.observers.raise(|| Event::Waited { label: &state.label, wait });
                    let owner = Owner::State(state.clone());
                    return Poll::Ready(Ok(BucketPermit::new(owner, costs, *this.input, granted)));
                }
                Polled::Refused(short) => {
                    place.fetched = true;
                    let kind = too_late(now, short, *this.deadline);
                    return Poll::Ready(Err(state.refuse(kind, short)));
                }
                Polled::Pending(at) => {
                    let Some(instant) = state.instant(at) else { return Poll::Pending };
                    match this.sleep.as_mut().as_pin_mut() {
                        Some(sleep) if *this.alarm != at => sleep.reset(instant),
                        Some(_) => {}
                        None => this.sleep.set(Some(sleep_until(instant))),
                    }
                    *this.alarm = at;
                    if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
                        ready!(sleep.poll(cx));
                    }
                }
            }
        }
    }
}

impl<U, R> Drop for Place<U, R> {
    fn drop(&mut self) {
        if !self.fetched {
            let state = &self.state;
            state.core.leave(state.now(), self.ticket, state.config.undrained);
            state.config.observers.raise(|| Event::Abandoned { label: &state.label });
        }
    }
}

impl<U, R> fmt::Debug for Wait<U, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("ticket", &self.place.ticket).finish_non_exhaustive()
    }
}
