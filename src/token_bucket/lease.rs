//! What each thread has for itself: a reference count for its permits, and, if asked for, a small lease of units that
//! were taken from the bucket ahead of use. So threads meet on the bucket's one number alone, or not even there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use crate::stripes::thread_number;
use crate::token_bucket::bucket::Costs;
use crate::token_bucket::few::Few;
use crate::token_bucket::gate::State;

/// Who settles a permit: the state, or the stripe that it was taken from, so that threads do not meet on one reference
/// count either.
pub(super) enum Owner<U, R> {
    State(Arc<State<U, R>>),
    Stripe(Arc<Stripe<U, R>>),
}

impl<U, R> Owner<U, R> {
    #[inline]
    pub(super) fn state(&self) -> &State<U, R> {
        match self {
            Self::State(state) => state,
            Self::Stripe(stripe) => &stripe.state,
        }
    }
}

/// What one thread, or a few, have taken ahead.
#[repr(align(128))]
pub(super) struct Stripe<U, R> {
    prepaid: AtomicU64,
    state: Arc<State<U, R>>,
}

/// A stripe for each processor, rounded up to a power of two.
pub(super) struct Stripes<U, R>(Arc<[Arc<Stripe<U, R>>]>);

impl<U, R> Stripes<U, R> {
    pub(super) fn new(state: &Arc<State<U, R>>) -> Self {
        let stripe = |_| Arc::new(Stripe { prepaid: AtomicU64::new(0), state: state.clone() });
        let processors = available_parallelism().map_or(1, usize::from);
        Self((0..processors.next_power_of_two()).map(stripe).collect())
    }

    /// The stripe of this thread.
    #[inline]
    pub(super) fn mine(&self) -> &Arc<Stripe<U, R>> {
        // Within bounds, whatever the number: the length is a power of two. A division would take longer than all else.
        &self.0[thread_number() & (self.0.len() - 1)]
    }

    /// Takes from this thread's lease, or a new lease. `None`: the bucket itself has to decide.
    pub(super) fn take(&self, now: u64, costs: &Costs) -> Option<Arc<Stripe<U, R>>> {
        let stripe = self.mine();
        let state = &stripe.state;
        let (&Few::One([cost]), true) = (costs, state.core.is_open(now)) else { return None };
        let less = |prepaid: u64| prepaid.checked_sub(cost);
        if stripe.prepaid.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok() {
            return Some(stripe.clone());
        }
        let lease = state.config.lease;
        state.core.take(now, &Few::One([cost.saturating_add(lease)]))?.ok()?;
        stripe.prepaid.fetch_add(lease, Ordering::AcqRel);
        Some(stripe.clone())
    }

    /// How many stripes there are, if no permit holds one.
    pub(super) fn unused(&self) -> Option<usize> {
        let unused = self.0.iter().all(|stripe| Arc::strong_count(stripe) == 1);
        unused.then_some(self.0.len())
    }
}

impl<U, R> Clone for Stripes<U, R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
