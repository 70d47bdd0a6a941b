//! The state machine, shared: two atomic words for the healthy call, a lock for everything else.
//!
//! `hot` is `[generation: 32 | successes: 30 | shut: 1 | careful: 1]`.
//!
//! 1. Only who holds the lock changes the generation or the two bits; others only add to `successes`, by a
//!    compare-and-swap that fails when anything else changed, and only while both bits are zero.
//! 2. Who takes the lock sets `careful` first and takes over the successes, so that none is lost and none comes while
//!    the state is looked at; and writes `hot` last, so that who sees a mode sees the times that go with it.
//! 3. A success that is added before `bucket_end` belongs to the window's present bucket: the bucket does not change
//!    before the successes are taken over.

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

use super::settings::Vote;
use super::state::{Admit, Mode, Moved, NEVER, Recorded, Sample, State, Ticket, View};

/// One breaker's state. The words come first, so that they share a cache line with the reference count before them.
#[repr(C)]
pub(super) struct Cell {
    hot: AtomicU64,
    /// When the window's present bucket is over.
    bucket_end: AtomicU64,
    /// Before this time a shut breaker refuses all that is not marked.
    open_until: AtomicU64,
    state: Mutex<State>,
}

const CAREFUL: u64 = 0b01;
const SHUT: u64 = 0b10;
const MODE: u64 = CAREFUL | SHUT;
const ONE: u64 = 0b100;
const MOST: u64 = (1 << 30) - 1;

const fn generation(hot: u64) -> u32 {
    (hot >> 32) as u32
}

const fn successes(hot: u64) -> u64 {
    (hot >> 2) & MOST
}

impl Cell {
    pub(super) fn new(state: State) -> Self {
        Self {
            hot: AtomicU64::new(word(&state)),
            bucket_end: AtomicU64::new(state.bucket_end()),
            open_until: AtomicU64::new(state.open_until()),
            state: Mutex::new(state),
        }
    }

    /// Admits at once while closed: one load.
    #[inline]
    pub(super) fn pass(&self) -> Option<Ticket> {
        let hot = self.hot.load(Ordering::Acquire);
        if hot & SHUT == 0 { Some(Ticket { generation: generation(hot), probe: 0 }) } else { None }
    }

    /// The present generation.
    pub(super) fn generation(&self) -> u32 {
        generation(self.hot.load(Ordering::Acquire))
    }

    /// For how long unmarked calls are all refused, without the lock; where that has no end, [`NEVER`], without the clock
    /// too. `now` is told when the time is over, and may be coarse before that. A number and no more: what is returned in
    /// registers is not waited for.
    #[inline]
    pub(super) fn refuses(&self, now: impl FnOnce(u64) -> u64) -> Option<u64> {
        if self.hot.load(Ordering::Acquire) & SHUT == 0 {
            return None;
        }
        match self.open_until.load(Ordering::Acquire) {
            0 => None,
            NEVER => Some(NEVER),
            until => until.checked_sub(now(until)).filter(|&left| left > 0),
        }
    }

    /// Admits or refuses, one by one.
    pub(super) fn admit(&self, now: u64, marked: bool) -> (Admit, Option<Moved>) {
        self.with(|state| state.admit(now, marked))
    }

    /// Counts an answer.
    #[inline]
    pub(super) fn settle(&self, now: u64, ticket: Ticket, sample: Sample) -> Recorded {
        if sample.vote == Vote::Neutral && ticket.probe == 0 {
            return Recorded::Kept;
        }
        if sample.vote == Vote::Success && !sample.slow && ticket.probe == 0 && self.add_success(now, ticket)
        {
            return Recorded::Kept;
        }
        self.with(|state| state.record(now, ticket, sample))
    }

    /// Counts a success without the lock, where that changes no decision.
    #[inline]
    pub(super) fn add_success(&self, now: u64, ticket: Ticket) -> bool {
        let mut hot = self.hot.load(Ordering::Acquire);
        while hot & MODE == 0
            && generation(hot) == ticket.generation
            && successes(hot) < MOST
            && now < self.bucket_end.load(Ordering::Acquire)
        {
            match self.hot.compare_exchange_weak(hot, hot + ONE, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(changed) => hot = changed,
            }
        }
        false
    }

    /// Looks at the state and changes it, under the lock. No user code runs in there.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = lock(&self.state);
        let hot = self.hot.fetch_or(CAREFUL, Ordering::AcqRel);
        state.absorb(successes(hot));
        let result = change(&mut state);
        self.bucket_end.store(state.bucket_end(), Ordering::Release);
        self.open_until.store(state.open_until(), Ordering::Release);
        self.hot.store(word(&state), Ordering::Release);
        result
    }

    /// Looks at the state and changes nothing.
    pub(super) fn view(&self, now: u64) -> View {
        let state = lock(&self.state);
        let pending = successes(self.hot.load(Ordering::Acquire));
        state.view(now, pending)
    }

    /// Whether the state decides as a fresh one would.
    pub(super) fn is_at_rest(&self, now: u64) -> bool {
        self.with(|state| state.is_at_rest(now))
    }
}

fn word(state: &State) -> u64 {
    let mode = match state.mode() {
        Mode::Plain => 0,
        Mode::Careful => CAREFUL,
        Mode::Shut => SHUT,
    };
    u64::from(state.generation()) << 32 | mode
}
