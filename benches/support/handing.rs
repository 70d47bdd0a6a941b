//! A place that is handed on to a caller who waits for it.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tower::Service;

/// One place, two callers. Whether the second waits in readiness, as tower's limit makes it, or in its call, as ours does,
/// is left to them.
#[inline]
pub fn turn<S: Service<u64>>(first: &mut S, second: &mut S) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(first.poll_ready(&mut cx).is_ready(), "there is a place");
    let mut running = pin!(Some(first.call(black_box(7))));
    let called = second.poll_ready(&mut cx).is_ready().then(|| second.call(black_box(7)));
    let mut waiting = pin!(called);
    if let Some(call) = waiting.as_mut().as_pin_mut() {
        assert!(call.poll(&mut cx).is_pending(), "the place is taken");
    }
    assert!(running.as_mut().as_pin_mut().is_some_and(|call| call.poll(&mut cx).is_ready()));
    running.set(None);
    if waiting.is_none() {
        assert!(second.poll_ready(&mut cx).is_ready(), "the place is free");
        waiting.set(Some(second.call(black_box(7))));
    }
    let served = waiting.as_mut().as_pin_mut().map(|call| call.poll(&mut cx));
    assert!(matches!(served, Some(Poll::Ready(Ok(_)))), "it has its turn");
}
