//! The handle, and the state that it shares with the services.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::inject::Inject;
use super::plan::{Plan, Rates, WHOLE};
use crate::config_error::ConfigError;
use crate::rng::Rng;
use crate::sync::{Mutex, lock};

/// Switches the faults of a layer, and changes them, while calls run. Clones share.
///
/// A change holds for the calls that are made after it; those under way go on as they began.
#[derive(Clone)]
pub struct FaultHandle(Arc<State>);

struct State {
    on: AtomicBool,
    injected: AtomicU64,
    plan: Mutex<Plan>,
    rng: Rng,
}

impl FaultHandle {
    pub(super) fn new(on: bool, plan: Plan, rng: Rng) -> Self {
        let state =
            State { on: AtomicBool::new(on), injected: AtomicU64::new(0), plan: Mutex::new(plan), rng };
        Self(Arc::new(state))
    }

    /// Switches it on.
    pub fn on(&self) {
        self.0.on.store(true, Ordering::Relaxed);
    }

    /// Switches it off. What is left of the script stays, for when it is on again.
    pub fn off(&self) {
        self.0.on.store(false, Ordering::Relaxed);
    }

    /// Whether it is switched on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.on.load(Ordering::Relaxed)
    }

    /// Adds to the end of the script, a fault a call.
    pub fn script(&self, faults: impl IntoIterator<Item = Inject>) {
        // Collected first: no code of the caller's runs under the lock.
        let faults: Vec<_> = faults.into_iter().collect();
        lock(&self.0.plan).script.extend(faults);
    }

    /// Sets what happens to calls beyond the script, in place of all rates before; each is a share of these calls, from 0
    /// to 1. None at all: nothing happens to them.
    ///
    /// # Errors
    ///
    /// As for [`FaultBuilder::build`](super::FaultBuilder::build); then nothing has changed.
    pub fn rates(&self, rates: impl IntoIterator<Item = (f64, Inject)>) -> Result<(), ConfigError> {
        let rates = Rates::new(rates)?;
        let old = std::mem::replace(&mut lock(&self.0.plan).rates, rates);
        drop(old);
        Ok(())
    }

    /// Forgets the script and the rates.
    pub fn clear(&self) {
        let old = std::mem::take(&mut *lock(&self.0.plan));
        drop(old);
    }

    /// How many entries of the script are left.
    #[must_use]
    pub fn left(&self) -> usize {
        lock(&self.0.plan).script.len()
    }

    /// How many calls something was done to.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.0.injected.load(Ordering::Relaxed)
    }

    /// What is done to the call that is made now.
    pub(super) fn next(&self) -> Option<Inject> {
        if !self.is_on() {
            return None;
        }
        let next = lock(&self.0.plan).next(|| self.0.rng.up_to(WHOLE - 1));
        if next.is_some() {
            self.0.injected.fetch_add(1, Ordering::Relaxed);
        }
        next
    }
}

impl fmt::Debug for FaultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultHandle")
            .field("on", &self.is_on())
            .field("injected", &self.injected())
            .finish_non_exhaustive()
    }
}
