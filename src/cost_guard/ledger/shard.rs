//! A budget's accounts, spread over a few locks.

use std::collections::HashMap;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use crate::call::Key;
use crate::cost_guard::budget::{Budget, BudgetKey, Counts};
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::desk::Desks;
use crate::cost_guard::window::{Moment, Window};
use crate::money::Usd;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};

/// A budget and its accounts.
#[derive(Debug)]
pub(super) struct Book {
    /// What each call asks of it lies together.
    pub(super) glance: Glance,
    pub(super) budget: Budget,
    limit: AtomicU64,
    shards: Vec<Mutex<Shard>>,
    /// Accounts in all shards.
    len: AtomicUsize,
    bound: usize,
    /// Where the drawers of the next budget begin, at each desk.
    drawers_end: usize,
}

/// What it takes to find a call's drawer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glance {
    pub(super) extra_only: bool,
    pub(super) by: BudgetKey,
    pub(super) window: Window,
    drawer: usize,
}

impl Glance {
    /// The drawer of this key at any desk. Others may have the same.
    #[inline]
    pub(super) fn drawer_of(&self, key: &str) -> usize {
        match self.by {
            BudgetKey::All => self.drawer,
            _ => self.drawer + usize::try_from(hash(key)).unwrap_or(0) % DRAWERS,
        }
    }
}

/// Some of a budget's accounts.
#[derive(Debug, Default)]
pub(super) struct Shard {
    index: HashMap<Key, usize>,
    pub(super) accounts: Vec<Account>,
    /// Where the search for an account at rest goes on.
    hand: usize,
}

const MOST_SHARDS: usize = 64;
const KEYS_A_SHARD: usize = 256;
/// Accounts of one budget that a desk can have money of.
const DRAWERS: usize = 32;
/// How many accounts a newcomer looks at to find one at rest.
const LOOK_AT: usize = 16;

impl Book {
    /// Its drawers come after those of the budgets before it.
    pub(super) fn new(budget: Budget, bound: usize, drawers_before: usize) -> Self {
        let (shards, drawers) = match budget.key {
            BudgetKey::All => (1, 1),
            _ => ((bound / KEYS_A_SHARD).clamp(1, MOST_SHARDS), DRAWERS),
        };
        Self {
            limit: AtomicU64::new(budget.limit.as_nanos()),
            shards: (0..shards).map(|_| Mutex::new(Shard::default())).collect(),
            len: AtomicUsize::new(0),
            bound,
            glance: Glance {
                extra_only: budget.counts == Counts::Extra,
                by: budget.key,
                window: budget.window,
                drawer: drawers_before,
            },
            budget,
            drawers_end: drawers_before + drawers,
        }
    }

    /// Where the drawers of the next budget begin.
    pub(super) fn drawers_end(&self) -> usize {
        self.drawers_end
    }

    pub(super) fn drawer_of(&self, key: &str) -> usize {
        self.glance.drawer_of(key)
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
        if shards == 1 { 0 } else { u8::try_from((hash(key) >> 32) % shards).unwrap_or(0) }
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
    pub(super) fn open(&self, desks: &Desks, shard: &mut Shard, key: &str, now: Moment) -> Option<usize> {
        if let Some(slot) = shard.find(self.budget.key, key) {
            return Some(slot);
        }
        let below = |len: usize| (len < self.bound).then_some(len + 1);
        if self.len.fetch_update(Ordering::AcqRel, Ordering::Acquire, below).is_ok() {
            return Some(shard.push(&self.budget, key, now));
        }
        let slot = shard.at_rest(self, desks, now)?;
        let old =
            std::mem::replace(&mut shard.accounts[slot], Account::new(&self.budget, Key::from(key), now));
        shard.index.remove(&old.key);
        shard.index.insert(Key::from(key), slot);
        Some(slot)
    }

    /// The same, beyond the bound if it must be: what was spent is never lost.
    pub(super) fn open_in_any_case(&self, desks: &Desks, shard: &mut Shard, key: &str, now: Moment) -> usize {
        self.open(desks, shard, key, now).unwrap_or_else(|| {
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

    fn at_rest(&mut self, book: &Book, desks: &Desks, now: Moment) -> Option<usize> {
        for _ in 0..LOOK_AT.min(self.accounts.len()) {
            self.hand = if self.hand + 1 < self.accounts.len() { self.hand + 1 } else { 0 };
            let account = &mut self.accounts[self.hand];
            if account.desks != 0 && account.at_rest(&book.budget, now) {
                desks.call_back(book.drawer_of(account.key.as_str()), account);
            }
            if account.desks == 0 && account.at_rest(&book.budget, now) {
                return Some(self.hand);
            }
        }
        None
    }
}

fn hash(key: &str) -> u64 {
    FxBuildHasher.hash_one(key)
}
