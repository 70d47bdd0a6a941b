//! One account: what of a budget's limit one key has used, and who waits for it.

#[cfg(all(test, not(seawall_loom)))]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use crate::call::Key;
use crate::cost_guard::budget::Budget;
use crate::cost_guard::ledger::{Cause, Denied, HoldId, Mark};
use crate::cost_guard::window::{Kind, Meter, Moment};
use crate::money::Usd;
use crate::refusal::Label;

/// How many calls may wait for one account; those beyond are refused at once.
const MOST_WAITERS: usize = 1_024;

/// What an account without a limit lends in all.
const PLENTY: Usd = Usd::nanos(1 << 62);

#[derive(Debug)]
pub(super) struct Account {
    pub(super) key: Key,
    pub(super) meter: Meter,
    /// Another limit than the budget's, for this key alone.
    pub(super) limit: Option<Usd>,
    /// Holds that are not settled, in whatever window; those at the desks that have its money are counted there.
    pub(super) live: u32,
    /// What it has lent to desks, and to which.
    pub(super) lent: Usd,
    pub(super) desks: u64,
    /// Made when it is first needed: a refusal shares it.
    label: Option<Arc<Label>>,
    /// In the order of coming. The first one is woken whenever something changes; all others wait for it to leave.
    waiters: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    id: HoldId,
    waker: Option<Waker>,
}

impl Account {
    pub(super) fn new(budget: &Budget, key: Key, now: Moment) -> Self {
        Self {
            key,
            meter: Meter::new(budget.window, now),
            limit: None,
            live: 0,
            lent: Usd::ZERO,
            desks: 0,
            label: None,
            waiters: VecDeque::new(),
        }
    }

    /// Whether a fresh account would decide alike, and nobody needs this one. What it has lent is called back before.
    pub(super) fn at_rest(&self, budget: &Budget, now: Moment) -> bool {
        self.live == 0
            && self.limit.is_none()
            && self.waiters.is_empty()
            && self.meter.at_rest(budget.window, now)
    }

    /// Whether the amount fits beside what is lent: a "no" counts only once all that is called back. `id` may pass those who wait only if it is the first of them.
    pub(super) fn check(
        &mut self,
        budget: &Budget,
        limit: Usd,
        id: HoldId,
        amount: Usd,
        now: Moment,
    ) -> Option<Cause> {
        let limit = self.limit.unwrap_or(limit);
        if limit == Usd::MAX {
            return None;
        }
        if budget.window.0 == Kind::Call {
            return (amount > limit).then_some(Cause::Exhausted(None));
        }
        let spent = self.meter.spent().saturating_add(amount);
        if spent > limit {
            return Some(Cause::Exhausted(self.meter.fits_in(budget.window, now, amount, limit)));
        }
        let queued = self.waiters.front().is_some_and(|first| first.id != id);
        let used = spent.saturating_add(self.meter.reserved()).saturating_add(self.lent);
        (queued || used > limit).then_some(Cause::Contended)
    }

    /// What it can lend: never so much that spending it would reach a mark or the limit, of which the account must know.
    pub(super) fn lendable(&self, budget: &Budget, limit: Usd) -> Usd {
        if !self.waiters.is_empty() {
            return Usd::ZERO;
        }
        let used = self.meter.spent().saturating_add(self.meter.reserved()).saturating_add(self.lent);
        let most = match self.next_bound(budget, limit) {
            Some(bound) => bound.saturating_sub(Usd::nanos(1)),
            None => PLENTY,
        };
        most.saturating_sub(used)
    }

    /// The first amount above what is spent at which a mark or the limit is reached; `None` where there is no limit.
    pub(super) fn next_bound(&self, budget: &Budget, limit: Usd) -> Option<Usd> {
        let limit = self.limit.unwrap_or(limit);
        if limit == Usd::MAX || budget.window.0 == Kind::Call {
            return None;
        }
        let spent = self.meter.spent();
        let reached_at = |&mark: &u8| {
            let nanos = (u128::from(limit.as_nanos()) * u128::from(mark)).div_ceil(100);
            Usd::nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let marks = budget.marks.iter().map(reached_at).find(|&at| at > spent);
        Some(marks.map_or(limit, |at| at.min(limit)))
    }

    /// Whether a mark is passed that nobody was told of.
    pub(super) fn untold(&self, budget: &Budget, limit: Usd) -> bool {
        let limit = self.limit.unwrap_or(limit);
        limit != Usd::MAX && budget.window.0 != Kind::Call && self.meter.untold(&budget.marks, limit)
    }

    /// Whether nothing is left. A window that has no sum is never spent.
    pub(super) fn is_spent(&self, budget: &Budget, limit: Usd) -> bool {
        budget.window.0 != Kind::Call && self.meter.spent() >= self.limit.unwrap_or(limit)
    }

    /// The most that one call may cost in a window that has no sum.
    pub(super) fn most(&self, budget: &Budget, limit: Usd) -> Usd {
        if budget.window.0 == Kind::Call { self.limit.unwrap_or(limit) } else { Usd::MAX }
    }

    pub(super) fn denied(&mut self, budget: &Budget, cause: Cause) -> Denied {
        Denied { cause, label: Some(self.label(budget)) }
    }

    pub(super) fn label(&mut self, budget: &Budget) -> Arc<Label> {
        let make = || {
            let label = Label::new(&*budget.name);
            Arc::new(match budget.key.class() {
                Some(class) => label.with_key_class(class).with_key(self.key.clone()),
                None => label,
            })
        };
        self.label.get_or_insert_with(make).clone()
    }

    pub(super) fn mark(&mut self, budget: &Budget, limit: Usd) -> Option<Mark> {
        let limit = self.limit.unwrap_or(limit);
        if limit == Usd::MAX || budget.window.0 == Kind::Call {
            return None;
        }
        let percent = self.meter.pass_marks(&budget.marks, limit)?;
        Some(Mark { label: self.label(budget), percent, spent: self.meter.spent(), limit })
    }

    /// Waits, or goes on waiting; false where there is no room to.
    pub(super) fn enqueue(&mut self, id: HoldId, waker: Option<&Waker>) -> bool {
        if let Some(waiter) = self.waiters.iter_mut().find(|waiter| waiter.id == id) {
            match (&mut waiter.waker, waker) {
                (Some(mine), Some(new)) => mine.clone_from(new),
                (mine, new) => *mine = new.cloned(),
            }
            return true;
        }
        if self.waiters.len() >= MOST_WAITERS {
            return false;
        }
        self.waiters.push_back(Waiter { id, waker: waker.cloned() });
        true
    }

    /// Waits no longer. Whoever is first now is to be woken.
    pub(super) fn dequeue(&mut self, id: HoldId) -> Option<Waker> {
        let at = self.waiters.iter().position(|waiter| waiter.id == id)?;
        self.waiters.remove(at);
        if at == 0 { self.first() } else { None }
    }

    /// The waker of whoever waits longest. It is left in its place: a waiter that is woken and does not come back would
    /// otherwise hold up those behind it for good.
    pub(super) fn first(&self) -> Option<Waker> {
        self.waiters.front().and_then(|waiter| waiter.waker.clone())
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }
}
