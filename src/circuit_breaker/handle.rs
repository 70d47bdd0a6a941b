//! What can be seen and done from outside.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::call::Key;
use crate::monitor::{BreakerState, Gauge, Gauges};

use super::gate::CircuitBreaker;
use super::state::State;

/// What a breaker looked like at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its state. An open breaker whose time is over stays `Open` until the next call asks it.
    pub state: BreakerState,
    /// Whether the handle holds it in this state.
    pub forced: bool,
    /// How often it moved since it was made. Answers count only for the generation that they were admitted in.
    pub generation: u32,
    /// Calls in the window. The window is emptied when the breaker closes.
    pub calls: u64,
    /// How many of them failed.
    pub failures: u64,
    /// How many of them were slow; 0 where the slow-call rule is off.
    pub slow_calls: u64,
    /// Failures since the last success, up to the number that would open the breaker.
    pub consecutive_failures: usize,
    /// How long it stays open yet, if it is open for a time.
    pub open_left: Option<Duration>,
    /// Probes that are out.
    pub probes_out: usize,
    /// Probes that succeeded since it is half-open.
    pub probe_successes: u32,
    /// How often in succession it has opened without being healthy in between.
    pub openings: u32,
    /// Calls that their callers gave up, since it was made.
    pub abandoned: u64,
    /// Answers that came too late to count, since it was made: from before the last move, or after their probe's lease.
    pub late: u64,
}

/// The handle. Reading changes nothing.
impl<C, R> CircuitBreaker<C, R> {
    /// The state. An open breaker whose time is over stays `Open` until the next call asks it.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.inner.cell.view(self.inner.now()).state
    }

    /// All that can be seen.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let inner = &self.inner;
        let view = inner.cell.view(inner.now());
        Snapshot {
            state: view.state,
            forced: view.forced,
            generation: view.generation,
            calls: view.counts.calls,
            failures: view.counts.failed,
            slow_calls: view.counts.slow,
            consecutive_failures: view.row,
            open_left: view.open_left.map(Duration::from_nanos),
            probes_out: view.probes,
            probe_successes: view.probe_successes,
            openings: view.openings,
            abandoned: inner.abandoned.load(Ordering::Relaxed),
            late: inner.late.load(Ordering::Relaxed),
        }
    }

    /// The name of its layer.
    #[must_use]
    pub fn name(&self) -> &str {
        self.inner.label.name()
    }

    /// The key that it is the breaker of, if its layer has one a key.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        self.inner.label.key()
    }

    /// Opens it until somebody says otherwise; marked probes are refused too. Calls under way no longer count.
    pub fn force_open(&self) {
        let moved = self.inner.cell.with(State::force_open);
        self.inner.tell_move(moved);
    }

    /// Closes it until somebody says otherwise: it counts, but does not open. All earlier counts are gone.
    pub fn force_closed(&self) {
        let now = self.inner.now();
        let moved = self.inner.cell.with(|state| state.force_closed(now));
        self.inner.tell_move(moved);
    }

    /// As new: closed, all counts gone, the open time back at its base, nothing forced. Calls under way no longer count.
    pub fn reset(&self) {
        let now = self.inner.now();
        let moved = self.inner.cell.with(|state| state.reset(now));
        self.inner.tell_move(moved);
    }

    /// Makes it half-open, so that the next calls are probes, whatever is left of its open time.
    pub fn probe_now(&self) {
        let moved = self.inner.cell.with(State::probe_now);
        self.inner.tell_move(moved);
    }
}

/// What a monitor shows of it.
impl<C: Send + Sync, R: Send + Sync> Gauges for CircuitBreaker<C, R> {
    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge::Breaker(self.state())]
    }
}
