//! What the calls of one thread, or of a few, have at hand: money lent by the accounts, and their holds.
//!
//! An account that has plenty lends some of it to a desk. Calls there reserve and settle out of that under the desk's own
//! lock, all of their budgets in one step, and meet no other thread. What is lent counts as used until it is called back,
//! so no limit is passed; and before an account says no, it calls back all that it has lent, so nothing is refused that fits.
//!
//! Locks are taken in this order: accounts by budget, then desks. Who has a desk asks for no account.

use crate::call::{Key, same_text};
use crate::cost_guard::ledger::HoldId;
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::holds::{Holds, Leg};
use crate::cost_guard::window::{Span, Stamp};
use crate::money::Usd;
use crate::sync::{Mutex, MutexGuard, lock};

/// The desks of a ledger. A hold is at the desk that its identity says.
#[derive(Debug)]
pub(super) struct Desks(Vec<Aside>);

/// On lines of its own: two of the processor's, since some fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Aside(Mutex<Desk>);

/// The most desks: an account notes in a word which of them have its money.
pub(super) const MOST_DESKS: usize = 64;

#[derive(Debug)]
pub(super) struct Desk {
    pub(super) holds: Holds,
    /// For each budget those that it may have here.
    pub(super) drawers: Vec<Drawer>,
    /// The last lease that was given.
    leases: u64,
}

/// Money of one account in one window.
#[derive(Debug)]
pub(super) struct Drawer {
    /// 0: it is empty. Each time it is filled it has another number, so that no hold takes it for the one it knew.
    pub(super) lease: u64,
    /// When the window is the present one.
    pub(super) span: Span,
    /// No call may cost more.
    pub(super) most: Usd,
    /// `left`, `spent` and `held` are together what was lent.
    pub(super) left: Usd,
    spent: Usd,
    held: Usd,
    live: u32,
    /// Somebody who listens is to hear of a mark, and the account is to say which.
    untold: bool,
    /// Used since another account wanted this place.
    pub(super) warm: bool,
    pub(super) shard: u8,
    pub(super) slot: usize,
    pub(super) stamp: Stamp,
    pub(super) key: Key,
}

/// What an account lends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loan {
    pub(super) amount: Usd,
    pub(super) most: Usd,
    pub(super) span: Span,
    pub(super) stamp: Stamp,
    pub(super) untold: bool,
    pub(super) shard: u8,
    pub(super) slot: usize,
}

impl Desks {
    pub(super) fn new(count: usize, books: usize, drawers: usize) -> Self {
        let desk = || Desk {
            holds: Holds::new(books),
            drawers: (0..drawers).map(|_| Drawer::empty()).collect(),
            leases: 0,
        };
        Self((0..count.min(MOST_DESKS).next_power_of_two()).map(|_| Aside(Mutex::new(desk()))).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of the desk of this hold.
    #[inline]
    pub(super) fn of(&self, id: HoldId) -> usize {
        id.desk() & (self.0.len() - 1)
    }

    #[inline]
    pub(super) fn lock(&self, desk: usize) -> MutexGuard<'_, Desk> {
        lock(&self.0[desk].0)
    }

    /// All of them at once.
    pub(super) fn lock_all(&self) -> Vec<MutexGuard<'_, Desk>> {
        self.0.iter().map(|aside| lock(&aside.0)).collect()
    }

    /// Calls back what an account has lent; `at` is where its drawer is.
    pub(super) fn call_back(&self, at: usize, account: &mut Account) {
        while account.desks != 0 {
            self.call_back_from(account.desks.trailing_zeros() as usize, at, account);
        }
    }

    /// The same from one desk.
    pub(super) fn call_back_from(&self, desk: usize, at: usize, account: &mut Account) {
        if account.desks & (1 << desk) == 0 {
            return;
        }
        account.desks &= !(1 << desk);
        let drawer = std::mem::replace(&mut self.lock(desk).drawers[at], Drawer::empty());
        account.lent = account.lent.saturating_sub(drawer.lent());
        account.live += drawer.live;
        account.meter.add(drawer.stamp, drawer.spent, drawer.held);
    }

    /// What an account's money at all desks was used for: spent and held.
    pub(super) fn used(&self, at: usize, account: &Account, mut each: impl FnMut(Stamp, Usd, Usd)) {
        for desk in (0..self.0.len()).filter(|desk| account.desks & (1 << desk) != 0) {
            let drawer = &self.lock(desk).drawers[at];
            each(drawer.stamp, drawer.spent, drawer.held);
        }
    }

    /// Puts a loan into an empty drawer. An error where the money of another account is in it; and where that account is,
    /// if nobody has used it since the last that failed.
    pub(super) fn lend(
        &self,
        desk: usize,
        at: usize,
        account: &mut Account,
        loan: &Loan,
    ) -> Result<(), Option<(u8, usize)>> {
        let mut guard = self.lock(desk);
        let Desk { drawers, leases, .. } = &mut *guard;
        let drawer = &mut drawers[at];
        if drawer.lease != 0 {
            let warm = std::mem::replace(&mut drawer.warm, false);
            return Err((!warm).then_some((drawer.shard, drawer.slot)));
        }
        *leases += 1;
        *drawer = Drawer {
            lease: *leases,
            span: loan.span,
            most: loan.most,
            left: loan.amount,
            spent: Usd::ZERO,
            held: Usd::ZERO,
            live: 0,
            untold: loan.untold,
            warm: true,
            shard: loan.shard,
            slot: loan.slot,
            stamp: loan.stamp,
            key: account.key.clone(),
        };
        account.desks |= 1 << desk;
        account.lent = account.lent.saturating_add(loan.amount);
        Ok(())
    }
}

impl Drawer {
    fn empty() -> Self {
        Self {
            lease: 0,
            span: Span::NEVER,
            most: Usd::ZERO,
            left: Usd::ZERO,
            spent: Usd::ZERO,
            held: Usd::ZERO,
            live: 0,
            untold: false,
            warm: false,
            shard: 0,
            slot: 0,
            stamp: 0,
            key: Key::from(""),
        }
    }

    fn lent(&self) -> Usd {
        self.left.saturating_add(self.spent).saturating_add(self.held)
    }

    /// Whether it has so much for a call of this key now.
    #[inline]
    pub(super) fn bears(&self, amount: Usd, at: i64, key: &str) -> bool {
        let same = || same_text(self.key.as_str().as_bytes(), key.as_bytes());
        amount <= self.left && amount <= self.most && self.span.holds(at) && same()
    }

    /// Holds an amount that it bears.
    #[inline]
    pub(super) fn take(&mut self, amount: Usd, drawer: usize) -> Leg {
        self.left = self.left.saturating_sub(amount);
        self.held = self.held.saturating_add(amount);
        self.live += 1;
        self.warm = true;
        Leg { used: true, shard: self.shard, slot: self.slot, stamp: self.stamp, drawer, lease: self.lease }
    }

    /// Undoes that.
    pub(super) fn put_back(&mut self, amount: Usd) {
        self.left = self.left.saturating_add(amount);
        self.held = self.held.saturating_sub(amount);
        self.live -= 1;
    }

    /// Settles a hold out of what is lent; false where the account must do it.
    #[inline]
    pub(super) fn settle(&mut self, leg: &Leg, held: Usd, paid: Usd, listening: bool) -> bool {
        let left = self.left.saturating_add(held);
        // Once all of it is gone the account is to look whether the limit is reached.
        if leg.lease == 0 || leg.lease != self.lease || paid >= left || (listening && self.untold) {
            return false;
        }
        self.left = left.saturating_sub(paid);
        self.held = self.held.saturating_sub(held);
        self.spent = self.spent.saturating_add(paid);
        self.live -= 1;
        true
    }
}
