//! Settling: at the desk where the hold's money is still there, else in the accounts.

use super::{MemoryHold, MemoryLedger, of_all, wake};
use crate::cost_guard::budget::Spender;
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::desk::Desk;
use crate::cost_guard::ledger::holds::Leg;
use crate::cost_guard::ledger::shard::Book;
use crate::cost_guard::ledger::{HoldId, MOST_BUDGETS, Marks};
use crate::cost_guard::window::Stamp;
use crate::money::Usd;
use crate::sync::atomic::Ordering;

impl MemoryLedger {
    /// Settles a hold, once.
    pub(super) fn pay(&self, hold: MemoryHold, paid: Usd, marks: Option<&mut Marks>) {
        let core = &*self.core;
        let desk = core.desks.of(hold.id);
        let mut guard = core.desks.lock(desk);
        let Desk { holds, drawers, .. } = &mut *guard;
        let Some((place, reserved, open)) = holds.close(hold.id) else { return };
        let mut all = true;
        for leg in open.iter_mut().filter(|leg| leg.used) {
            if drawers[leg.drawer].settle(leg, reserved, paid, marks.is_some()) {
                leg.used = false;
            } else {
                all = false;
            }
        }
        if all {
            holds.remove(place);
            return;
        }
        let mut legs = [Leg::default(); MOST_BUDGETS];
        legs.iter_mut().zip(open).for_each(|(copy, leg)| *copy = *leg);
        drop(guard);
        self.pay_in_accounts(hold.id, desk, &legs, (reserved, paid), marks);
    }

    /// Settles what is left of a hold that is being settled.
    #[inline(never)]
    fn pay_in_accounts(
        &self,
        id: HoldId,
        desk: usize,
        legs: &[Leg; MOST_BUDGETS],
        (held, paid): (Usd, Usd),
        mut marks: Option<&mut Marks>,
    ) {
        let core = &*self.core;
        for (at, book) in core.books.iter().enumerate() {
            let leg = &legs[at];
            if !leg.used {
                continue;
            }
            let mut shard = book.lock(leg.shard);
            let account = &mut shard.accounts[leg.slot];
            if leg.lease != 0 {
                core.desks.call_back_from(desk, leg.drawer, account);
            }
            account.live -= 1;
            let mut mark = marks.as_deref_mut().map(|marks| &mut marks[at]);
            self.spend(book, account, mark.is_some(), |account| account.meter.settle(leg.stamp, held, paid));
            if let Some(mark) = &mut mark {
                **mark = account.mark(&book.budget, book.limit());
            }
            let over = is_over(book, account);
            let first = account.first();
            self.clear(id, desk, at);
            drop(shard);
            if over {
                core.spent.store(true, Ordering::Relaxed);
            }
            wake(first);
        }
    }

    /// Spends in an account. What is lent was lent so that spending it reaches no mark and no limit, and that it fits beside
    /// all that is held: where that is no longer so, or somebody is to hear of a mark, it is called back.
    fn spend(&self, book: &Book, account: &mut Account, listening: bool, spend: impl FnOnce(&mut Account)) {
        let bound = account.next_bound(&book.budget, book.limit());
        spend(account);
        if account.desks == 0 {
            return;
        }
        let out = account.meter.spent().saturating_add(account.lent);
        // More was spent than was held for it: a charge, or a cost above its bound.
        let too_much = out.saturating_add(account.meter.reserved()) > account.limit.unwrap_or(book.limit());
        if bound.is_some_and(|bound| out >= bound || too_much)
            || (listening && account.untold(&book.budget, book.limit()))
        {
            self.core.desks.call_back(book.drawer_of(account.key.as_str()), account);
        }
    }

    /// One leg is settled; with the last one the hold is gone.
    fn clear(&self, id: HoldId, desk: usize, at: usize) {
        let mut desk = self.core.desks.lock(desk);
        let Some(place) = desk.holds.find(id) else { return };
        let legs = desk.holds.legs(place);
        legs[at].used = false;
        if legs.iter().all(|leg| !leg.used) {
            desk.holds.remove(place);
        }
    }

    pub(super) fn charge_each(
        &self,
        spender: &Spender<'_>,
        amount: Usd,
        mut charged: impl FnMut(usize, Stamp),
    ) {
        let now = self.moment();
        let desks = &self.core.desks;
        for (at, book) in self.core.books.iter().enumerate() {
            if !book.budget.applies(spender) {
                continue;
            }
            let key = spender.key(book.budget.key);
            let mut shard = book.lock(book.shard_of(key));
            let slot = book.open_in_any_case(desks, &mut shard, key, now);
            let account = &mut shard.accounts[slot];
            if account.desks != 0 && !account.meter.is_current(book.budget.window, now) {
                desks.call_back(book.drawer_of(key), account);
            }
            account.meter.turn(book.budget.window, now);
            let mut stamp = 0;
            self.spend(book, account, false, |account| {
                stamp = account.meter.reserve(book.budget.window, now, Usd::ZERO);
                account.meter.settle(stamp, Usd::ZERO, amount);
            });
            charged(at, stamp);
        }
    }
}

/// Whether a budget of all calls is spent.
pub(super) fn is_over(book: &Book, account: &Account) -> bool {
    of_all(&book.budget) && account.is_spent(&book.budget, book.limit())
}
