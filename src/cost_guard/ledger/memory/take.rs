//! Reserving: at the desk where it has what is needed, else in the accounts.

use std::task::Waker;

use super::settle::is_over;
use super::{MemoryHold, MemoryLedger, wake};
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::desk::{Desk, Drawer, Loan};
use crate::cost_guard::ledger::holds::Leg;
use crate::cost_guard::ledger::shard::Book;
use crate::cost_guard::ledger::wait::{MemoryWait, Place, Queue};
use crate::cost_guard::ledger::{Ask, Cause, Denied, Granted, HoldId, MOST_BUDGETS, Reservation};
use crate::cost_guard::window::{Moment, Window};
use crate::money::Usd;
use crate::sync::atomic::Ordering;

/// A reservation on its way through the accounts.
struct Taking<'t, 'a> {
    ask: &'t Ask<'a>,
    now: Moment,
    /// The number of its desk.
    desk: usize,
    legs: [Leg; MOST_BUDGETS],
    denied: Option<Denied>,
    /// Who waits behind this call.
    next: Option<Waker>,
    /// Money of another account that lies unused where one of this call's would have lent some.
    unused: Option<Place>,
}

/// All accounts have said yes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Agreed {
    Reserve,
    /// It was reserved before, and the answer was lost.
    Known,
}

/// An account lends so that a desk has something for this many calls, or does not lend.
const CALLS_A_LOAN: u64 = 2;

impl MemoryLedger {
    /// Reserves in all accounts or in none. `queue` is where the call waits, if it may.
    pub(in crate::cost_guard::ledger) fn take(
        &self,
        ask: &Ask<'_>,
        queue: &mut Queue<'_>,
    ) -> Result<Granted<MemoryHold>, Denied> {
        if self.take_at_desk(ask) {
            return Ok(Granted::new(MemoryHold { id: ask.id }));
        }
        self.take_from_accounts(ask, queue)
    }

    /// Reserves where the desk has not enough, or has the call wait.
    #[inline(never)]
    pub(super) fn reserve_in_accounts(&self, ask: &Ask<'_>) -> Reservation<MemoryHold, MemoryWait> {
        let mut queue = if ask.patience.is_zero() { Queue::none() } else { Queue::new(None) };
        match self.take_from_accounts(ask, &mut queue) {
            Err(denied) => match queue.place() {
                Some(place) => Reservation::Later(MemoryWait::new(self.clone(), ask, place)),
                None => Reservation::Now(Err(denied)),
            },
            granted => Reservation::Now(granted),
        }
    }

    /// A reservation was made: the guard is open.
    #[inline]
    fn grants(&self) {
        if self.core.spent.load(Ordering::Relaxed) {
            self.core.spent.store(false, Ordering::Relaxed);
        }
    }

    /// Takes what was lent to the desk, for all budgets or for none. True where the hold is there, too.
    pub(super) fn take_at_desk(&self, ask: &Ask<'_>) -> bool {
        let core = &*self.core;
        let now = self.glance();
        let mut guard = core.desks.lock(core.desks.of(ask.id));
        let Desk { holds, drawers, .. } = &mut *guard;
        let Some((place, legs)) = holds.insert(ask.id, ask.amount) else {
            self.grants();
            return true;
        };
        for (Book { glance, .. }, leg) in core.books.iter().zip(&mut *legs) {
            if glance.extra_only && !ask.spender.extra {
                continue;
            }
            let key = ask.spender.key(glance.by);
            let at = glance.drawer_of(key);
            match drawers.get_mut(at) {
                Some(drawer) if drawer.bears(ask.amount, glance.window.instant(now), key) => {
                    *leg = drawer.take(ask.amount, at);
                }
                _ => {
                    put_back(drawers, legs, ask.amount);
                    holds.remove(place);
                    return false;
                }
            }
        }
        drop(guard);
        self.grants();
        true
    }

    #[inline(never)]
    fn take_from_accounts(
        &self,
        ask: &Ask<'_>,
        queue: &mut Queue<'_>,
    ) -> Result<Granted<MemoryHold>, Denied> {
        let mut taking = Taking {
            ask,
            now: self.moment(),
            desk: self.core.desks.of(ask.id),
            legs: [Leg::default(); MOST_BUDGETS],
            denied: None,
            next: None,
            unused: None,
        };
        let taken = self.take_from(0, &mut taking, queue);
        wake(taking.next.take());
        if let Some(unused) = taking.unused {
            self.call_back_unused(unused, taking.desk);
        }
        taken?;
        if taking.denied.is_none() {
            self.grants();
        }
        Ok(Granted { hold: MemoryHold { id: ask.id }, denied: taking.denied, waited: false })
    }

    /// Locks the accounts one after the other, checks each, and changes them only when the last one has said yes, while
    /// all are still locked.
    fn take_from(
        &self,
        from: usize,
        taking: &mut Taking<'_, '_>,
        queue: &mut Queue<'_>,
    ) -> Result<Agreed, Denied> {
        let Taking { ask, now, desk, .. } = *taking;
        let core = &*self.core;
        let mut books = core.books.iter().enumerate().skip(from);
        let Some((at, book)) = books.find(|(_, book)| book.budget.applies(&ask.spender)) else {
            return Ok(self.note(taking));
        };
        let (budget, key) = (&book.budget, ask.spender.key(book.budget.key));
        let which = book.shard_of(key);
        let mut shard = book.lock(which);
        let Some(slot) = book.open(&core.desks, &mut shard, key, now) else {
            let denied = Denied::new(Cause::TooManyKeys);
            if !ask.force {
                return Err(denied);
            }
            taking.denied.get_or_insert(denied);
            return self.take_from(at + 1, taking, queue);
        };
        let account = &mut shard.accounts[slot];
        let drawer = book.drawer_of(key);
        self.turn(account, budget.window, (desk, drawer), now);
        let mut cause = account.check(budget, book.limit(), ask.id, ask.amount, now);
        if cause.is_some() && account.desks != 0 {
            core.desks.call_back(drawer, account);
            cause = account.check(budget, book.limit(), ask.id, ask.amount, now);
        }
        if let Some(cause) = cause {
            let denied = account.denied(budget, cause);
            if matches!(cause, Cause::Exhausted(_)) && is_over(book, account) {
                core.spent.store(true, Ordering::Relaxed);
            }
            if !ask.force && !self.knows(ask.id, desk) {
                if cause == Cause::Contended {
                    queue.join(account, ask.id, Place { book: at, shard: which, slot });
                }
                return Err(denied);
            }
            taking.denied.get_or_insert(denied);
        }
        let stamp = account.meter.stamp(budget.window, now);
        taking.legs[at] = Leg { used: true, shard: which, slot, stamp, drawer, lease: 0 };
        if self.take_from(at + 1, taking, queue)? == Agreed::Known {
            taking.denied = None;
            return Ok(Agreed::Known);
        }

        let account = &mut shard.accounts[slot];
        account.meter.reserve(budget.window, now, ask.amount);
        account.live += 1;
        if account.waiting() > 0 {
            taking.next = account.dequeue(ask.id).or(taking.next.take());
        }
        self.lend(book, account, at, taking);
        Ok(Agreed::Reserve)
    }

    /// Turns an account to the present window, in which neither this desk nor, where it is a new one, any other has its money.
    fn turn(&self, account: &mut Account, window: Window, (desk, drawer): (usize, usize), now: Moment) {
        let desks = &self.core.desks;
        desks.call_back_from(desk, drawer, account);
        if account.desks != 0 && !account.meter.is_current(window, now) {
            desks.call_back(drawer, account);
        }
        account.meter.turn(window, now);
    }

    /// Whether such a hold is at the desk.
    fn knows(&self, id: HoldId, desk: usize) -> bool {
        self.core.desks.lock(desk).holds.find(id).is_some()
    }

    /// Notes the hold at its desk, once.
    fn note(&self, taking: &Taking<'_, '_>) -> Agreed {
        let mut desk = self.core.desks.lock(taking.desk);
        let Some((_, legs)) = desk.holds.insert(taking.ask.id, taking.ask.amount) else {
            return Agreed::Known;
        };
        legs.iter_mut().zip(&taking.legs).for_each(|(leg, taken)| *leg = *taken);
        Agreed::Reserve
    }

    /// Lends to the desk some of what the account has left, where that is plenty.
    fn lend(&self, book: &Book, account: &mut Account, at: usize, taking: &mut Taking<'_, '_>) {
        let Taking { ask, now, desk, .. } = *taking;
        let core = &*self.core;
        let limit = book.limit();
        let leg = taking.legs[at];
        // A share of it: the others are to find something too, and so is this one again.
        let share = account.lendable(&book.budget, limit).as_nanos() / (2 * core.desks.len() as u64);
        let span = book.budget.window.span(leg.stamp);
        let enough = ask.amount.as_nanos().max(1).saturating_mul(CALLS_A_LOAN);
        if share < enough || !span.holds(book.budget.window.instant(now)) {
            return;
        }
        let loan = Loan {
            amount: Usd::nanos(share),
            most: account.most(&book.budget, limit),
            span,
            stamp: leg.stamp,
            untold: account.untold(&book.budget, limit),
            shard: leg.shard,
            slot: leg.slot,
        };
        if let Err(Some((shard, slot))) = core.desks.lend(desk, leg.drawer, account, &loan) {
            taking.unused = Some(Place { book: at, shard, slot });
        }
    }

    /// Makes room at a desk for money of an account that is used more.
    #[cold]
    fn call_back_unused(&self, place: Place, desk: usize) {
        let Some(book) = self.core.books.get(place.book) else { return };
        let mut shard = book.lock(place.shard);
        if let Some(account) = shard.accounts.get_mut(place.slot) {
            let drawer = book.drawer_of(account.key.as_str());
            self.core.desks.call_back_from(desk, drawer, account);
        }
    }

    /// Leaves a queue.
    pub(in crate::cost_guard::ledger) fn leave(&self, id: HoldId, place: Place) {
        let Some(book) = self.core.books.get(place.book) else { return };
        let mut shard = book.lock(place.shard);
        let next = shard.accounts.get_mut(place.slot).and_then(|account| account.dequeue(id));
        drop(shard);
        wake(next);
    }
}

/// Undoes what was taken at a desk.
#[cold]
fn put_back(drawers: &mut [Drawer], legs: &mut [Leg], amount: Usd) {
    for leg in legs.iter_mut().filter(|leg| leg.used) {
        drawers[leg.drawer].put_back(amount);
        leg.used = false;
    }
}
