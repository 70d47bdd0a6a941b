//! The primitives of every atomic core: those of `std`, or those that the model checker drives.

#[cfg(seawall_loom)]
pub(crate) use loom::sync::{Arc, Mutex, MutexGuard, atomic};

#[cfg(not(seawall_loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, atomic};

use std::sync::PoisonError;

/// Locks, also after another thread panicked: no state here is left half changed by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
