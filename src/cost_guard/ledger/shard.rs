//! A budget's accounts, spread over a few locks.

use std::collections::HashMap;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::call::Key;
use crate::cost_guard::budget::{Budget, BudgetKey};
use crate::cost_guard::ledger::HoldId;
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::window::{Moment, Stamp};
use crate::money::Usd;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};

/// A budget and its accounts.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) budget: Budget,
    limit: AtomicU64,
    shards: Vec<Mutex<Shard>>,
    /// Accounts in all shards.
    len: AtomicUsize,
    bound: usize,
}

/// Some of a budget's accounts, and the holds on them.
#[derive(Debug, Default)]
pub(super) struct Shard {
    index: HashMap<Key, usize>,
    pub(super) accounts: Vec<Account>,
    pub(super) holds: FxHashMap<HoldId, Leg>,
    /// Where the search for an account at rest goes on.
    hand: usize,
}

/// What a hold has in one account.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) slot: usize,
    pub(super) stamp: Stamp,
    pub(super) amount: Usd,
}

const MOST_SHARDS: usize = 64;
const KEYS_A_SHARD: usize = 256;
/// How many accounts a newcomer looks at to find one at rest.
const LOOK_AT: usize = 16;

impl Book {
    pub(super) fn new(budget: Budget, bound: usize) -> Self {
        let shards = match budget.key {
            BudgetKey::All => 1,
            _ => (bound / KEYS_A_SHARD).clamp(1, MOST_SHARDS),
        };
        Self {
            limit: AtomicU64::new(budget.limit.as_nanos()),
            shards: (0..shards).map(|_| Mutex::new(Shard::default())).collect(),
            len: AtomicUsize::new(0),
            bound,
            budget,
        }
    }

    pub(super) fn limit(&self) -> Usd {
        Usd::nanos(self.limit.load(Ordering::Relaxed))
    }

    pub(super) fn set_limit(&self, limit: Usd) {
        self.limit.store(limit.as_nanos(), Ordering::Relaxed);
    }

    pub(super) fn shard_of(&self, key: &str) -> u8 {
        // Which lock a key has is no secret: all that can be gained is a wait of nanoseconds. The index is hashed safely.
        let shards = self.shards.len() as u64;
        if shards == 1 { 0 } else { u8::try_from((FxBuildHasher.hash_one(key) >> 32) % shards).unwrap_or(0) }
    }

    pub(super) fn lock(&self, shard: u8) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::from(shard)])
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(lock)
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The account of this key, which is made if there is none and there is room for it.
    pub(super) fn open(&self, shard: &mut Shard, key: &str, now: Moment) -> Option<usize> {
        if let Some(slot) = shard.find(self.budget.key, key) {
            return Some(slot);
        }
        let below = |len: usize| (len < self.bound).then_some(len + 1);
        if self.len.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).is_ok() {
            return Some(shard.push(&self.budget, key, now));
        }
        let slot = shard.at_rest(&self.budget, now)?;
        let old =
            std::mem::replace(&mut shard.accounts[slot], Account::new(&self.budget, Key::from(key), now));
        shard.index.remove(&old.key);
        shard.index.insert(Key::from(key), slot);
        Some(slot)
    }

    /// The same, beyond the bound if it must be: what was spent is never lost.
    pub(super) fn open_in_any_case(&self, shard: &mut Shard, key: &str, now: Moment) -> usize {
        self.open(shard, key, now).unwrap_or_else(|| {
            self.len.fetch_add(1, Ordering::AcqRel);
            shard.push(&self.budget, key, now)
        })
    }
}

impl Shard {
    pub(super) fn find(&self, by: BudgetKey, key: &str) -> Option<usize> {
        match by {
            BudgetKey::All => (!self.accounts.is_empty()).then_some(0),
            _ => self.index.get(key).copied(),
        }
    }

    fn push(&mut self, budget: &Budget, key: &str, now: Moment) -> usize {
        let slot = self.accounts.len();
        self.accounts.push(Account::new(budget, Key::from(key), now));
        self.index.insert(Key::from(key), slot);
        slot
    }

    fn at_rest(&mut self, budget: &Budget, now: Moment) -> Option<usize> {
        for _ in 0..LOOK_AT.min(self.accounts.len()) {
            self.hand = if self.hand + 1 < self.accounts.len() { self.hand + 1 } else { 0 };
            if self.accounts[self.hand].at_rest(budget, now) {
                return Some(self.hand);
            }
        }
        None
    }
}
