//! A reference count for each thread: so that threads which share a state do not meet on the count of those who hold it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// Where the permits of one thread, or of a few, hold the state that all threads share.
///
/// On lines of its own: two of the processor's, since some fetch them in pairs.
#[repr(align(128))]
pub(crate) struct Stripe<T>(Arc<T>);

impl<T> Deref for Stripe<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The stripes of a state.
pub(crate) struct Stripes<T>(Arc<[Arc<Stripe<T>>]>);

impl<T> Stripes<T> {
    /// One for each processor, rounded up to a power of two.
    pub(crate) fn new(state: &Arc<T>) -> Self {
        Self::of(state, available_parallelism().map_or(1, usize::from).next_power_of_two())
    }

    /// One for all threads: for a state of many, which is seldom used by two at once, and should be small.
    pub(crate) fn one(state: &Arc<T>) -> Self {
        Self::of(state, 1)
    }

    fn of(state: &Arc<T>, count: usize) -> Self {
        Self((0..count).map(|_| Arc::new(Stripe(state.clone()))).collect())
    }

    /// The stripe of this thread.
    #[inline]
    pub(crate) fn mine(&self) -> &Arc<Stripe<T>> {
        // Within bounds, whatever the number: the length is a power of two. A division would take longer than all else.
        &self.0[thread_number() & (self.0.len() - 1)]
    }

    /// The state, for who keeps no hold on it.
    #[inline]
    pub(crate) fn state(&self) -> &T {
        &self.0[0]
    }

    /// Whether this is the only handle, and no permit holds a stripe.
    pub(crate) fn are_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.iter().all(|stripe| Arc::strong_count(stripe) == 1)
    }
}

impl<T> Clone for Stripes<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Threads are numbered as they come.
#[inline]
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that is ending uses the first stripe.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_hold_it_at_places_of_their_own() {
        let stripes = Stripes::of(&Arc::new(7), 2);
        let mine = stripes.mine().clone();
        assert_eq!(**mine, 7);
        assert!(Arc::ptr_eq(&mine, stripes.mine()), "a thread keeps its place");
        assert!(!stripes.are_unused());
        drop(mine);
        assert!(stripes.are_unused());
        let other = stripes.clone();
        assert!(!other.are_unused() && !stripes.are_unused());
    }
}
