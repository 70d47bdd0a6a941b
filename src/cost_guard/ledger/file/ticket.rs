//! Waits for the worker.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Tells one waiting task whether what it waits for was written.
#[derive(Debug, Default)]
pub(super) struct Ticket(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    written: Option<bool>,
    waker: Option<Waker>,
}

impl Ticket {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, written: bool) {
        let mut state = self.lock();
        state.written.get_or_insert(written);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut state = self.lock();
        if let Some(written) = state.written {
            return Poll::Ready(written);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
