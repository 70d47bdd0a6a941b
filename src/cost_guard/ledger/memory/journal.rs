//! What a ledger with a store writes down of this one, and gives back to it.

use super::{MemoryHold, MemoryLedger};
use crate::call::Key;
use crate::cost_guard::budget::Spender;
use crate::cost_guard::ledger::file::Written;
use crate::cost_guard::window::{Meter, Moment, Stamp};
use crate::money::Usd;

impl MemoryLedger {
    pub(in crate::cost_guard::ledger) fn now(&self) -> Moment {
        self.moment()
    }

    /// The accounts of a reservation.
    pub(in crate::cost_guard::ledger) fn entries(&self, hold: MemoryHold) -> Vec<Written> {
        let mut entries = Vec::with_capacity(self.core.books.len());
        let (amount, legs) = {
            let mut desk = self.core.desks.lock(self.core.desks.of(hold.id));
            let Some(place) = desk.holds.find(hold.id) else { return entries };
            (desk.holds.amount(place), desk.holds.legs(place).to_vec())
        };
        for (book, leg) in legs.into_iter().enumerate().filter(|(_, leg)| leg.used) {
            // An account on which something is held keeps its place.
            let key = self.core.books[book].lock(leg.shard).accounts[leg.slot].key.clone();
            entries.push(Written { book, key, stamp: leg.stamp, amount });
        }
        entries
    }

    /// Charges, and says in which accounts.
    pub(in crate::cost_guard::ledger) fn charge_entries(
        &self,
        spender: &Spender<'_>,
        amount: Usd,
    ) -> Vec<Written> {
        let mut entries = Vec::with_capacity(self.core.books.len());
        self.charge_each(spender, amount, |book, stamp| {
            let key = Key::from(spender.key(self.core.books[book].budget.key));
            entries.push(Written { book, key, stamp, amount });
        });
        entries
    }

    pub(in crate::cost_guard::ledger) fn position(&self, budget: &str) -> Option<usize> {
        self.core.books.iter().position(|book| book.budget.name == budget)
    }

    /// Takes over what an account had spent before this process.
    pub(in crate::cost_guard::ledger) fn restore(&self, book: usize, key: &str, slots: &[(Stamp, u64)]) {
        let now = self.moment();
        let book = &self.core.books[book];
        let mut shard = book.lock(book.shard_of(key));
        let slot = book.open_in_any_case(&self.core.desks, &mut shard, key, now);
        let account = &mut shard.accounts[slot];
        self.core.desks.call_back(book.drawer_of(key), account);
        account.meter = Meter::restored(book.budget.window, now, slots);
        // Whoever was to hear of a mark has heard of it.
        let _ = account.mark(&book.budget, book.limit());
    }
}
