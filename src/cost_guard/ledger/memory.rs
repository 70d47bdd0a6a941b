//! The ledger of one process.

mod builder;
#[cfg(feature = "file-ledger")]
mod journal;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc as StdArc;
use std::task::Waker;
use std::time::Duration;

use crate::call::Key;
use crate::config_error::ConfigError;
use crate::cost_guard::budget::{Budget, BudgetKey, Counts, Spender};
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::shard::{Book, Leg};
use crate::cost_guard::ledger::wait::{MemoryWait, Place, Queue};
use crate::cost_guard::ledger::{
    Ask, Cause, Denied, Granted, HoldId, Ledger, MOST_BUDGETS, Marks, Reservation,
};
use crate::cost_guard::window::{Kind, Moment, Stamp};
use crate::money::Usd;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::time::{self, Instant, Wall};
pub use builder::MemoryLedgerBuilder;

/// Keeps accounts in memory: the default ledger. Clones share it, and so can several guards.
///
/// A call's accounts are locked together, always in the order of the budgets, so that all of them are checked and changed
/// in one step. What is spent is forgotten when the process ends.
///
/// ```
/// use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, MemoryLedger, Price, PriceTable, Usd, Window};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = MemoryLedger::new(Budget::new(Usd::dollars(10), Window::DAY).by(BudgetKey::Tenant).named("tenants"));
/// let prices = PriceTable::new().model("m", Price::per_million("1", "4")?);
/// // Two guards, one account for each tenant.
/// let one = CostGuardLayer::builder().prices(prices.clone()).ledger(ledger.clone()).build()?;
/// let other = CostGuardLayer::builder().prices(prices).ledger(ledger.clone()).build()?;
/// // While they run: more for one of them.
/// ledger.set_limit_of("tenants", "alice", Some(Usd::dollars(50)))?;
/// # let _ = (one, other);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryLedger {
    core: Arc<Core>,
}

struct Core {
    budgets: Vec<Budget>,
    books: Vec<Book>,
    start: Instant,
    /// What the monotonic clock said at the start.
    since: u64,
    wall: StdArc<dyn Wall>,
    needs_clock: bool,
    needs_wall: bool,
    /// A budget of all calls was found spent: a hint, which the next reservation corrects.
    spent: AtomicBool,
}

/// A reservation in a [`MemoryLedger`].
#[derive(Clone, Copy, Debug)]
pub struct MemoryHold {
    id: HoldId,
    /// For each budget the lock that its account is under, if it has one.
    shards: [u8; MOST_BUDGETS],
}

const NO_SHARD: u8 = u8::MAX;

impl MemoryHold {
    /// Its identity.
    #[must_use]
    pub const fn id(&self) -> HoldId {
        self.id
    }
}

/// What an account has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccountState {
    /// Spent in the current window.
    pub spent: Usd,
    /// Held by calls under way.
    pub reserved: Usd,
    /// The limit; `None` is none.
    pub limit: Option<Usd>,
    /// What a call could still reserve; `None` where there is no limit.
    pub left: Option<Usd>,
    /// When nothing of this window is left; `None` where it never ends.
    pub resets_in: Option<Duration>,
    /// How many calls wait for it.
    pub waiting: usize,
}

/// The sum of all holds, checked against the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// Holds that are not settled, each counted once a budget.
    pub holds: usize,
    /// What they hold in windows that are not over.
    pub reserved: Usd,
    /// Whether every account's reserved amount is the sum of the holds on it.
    pub balanced: bool,
}

fn of_all(budget: &Budget) -> bool {
    budget.key == BudgetKey::All && budget.counts == Counts::Everything
}

impl MemoryLedger {
    /// The most accounts of a budget where nothing else is set.
    pub const DEFAULT_MOST_KEYS: NonZeroUsize = NonZeroUsize::new(1_000_000).expect("a million is not zero");

    /// A ledger of this budget alone.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self::builder().budget(budget).finish()
    }

    /// A ledger of several budgets, or with other settings.
    pub fn builder() -> MemoryLedgerBuilder {
        MemoryLedgerBuilder::new()
    }

    /// What an account has; `None` where the budget is not known, or the key has no account. A budget of all calls has the
    /// account `""`, and so have calls without a key.
    #[must_use]
    pub fn account(&self, budget: &str, key: &str) -> Option<AccountState> {
        let book = self.book(budget)?;
        let now = self.moment();
        let shard = book.lock(book.shard_of(key));
        let slot = shard.find(book.budget.key, key);
        match slot.and_then(|slot| shard.accounts.get(slot)) {
            Some(account) => Some(state(book, account, now)),
            None if book.budget.key == BudgetKey::All => {
                Some(state(book, &Account::new(&book.budget, Key::from(""), now), now))
            }
            None => None,
        }
    }

    /// All accounts of a budget, in no order.
    #[must_use]
    pub fn accounts(&self, budget: &str) -> Vec<(Key, AccountState)> {
        let Some(book) = self.book(budget) else { return Vec::new() };
        let now = self.moment();
        let mut all = Vec::with_capacity(book.len());
        for shard in book.shards() {
            all.extend(shard.accounts.iter().map(|account| (account.key.clone(), state(book, account, now))));
        }
        all
    }

    /// Another limit from now on; `None` is none. What is spent and held stays.
    ///
    /// # Errors
    ///
    /// Where no budget is called so.
    pub fn set_limit(&self, budget: &str, limit: Option<Usd>) -> Result<(), ConfigError> {
        let book = self.known(budget)?;
        let limit = limit.unwrap_or(Usd::MAX);
        book.set_limit(limit);
        let mut spent = limit.is_zero();
        for shard in book.shards() {
            spent |= shard.accounts.iter().any(|account| account.meter.spent() >= limit);
            let first: Vec<Waker> = shard.accounts.iter().filter_map(Account::first).collect();
            drop(shard);
            first.into_iter().for_each(Waker::wake);
        }
        self.core.spent.store(spent && of_all(&book.budget), Ordering::Relaxed);
        Ok(())
    }

    /// Another limit for one key; `None` is the budget's own again.
    ///
    /// # Errors
    ///
    /// Where no budget is called so, or it has no room for the key.
    pub fn set_limit_of(&self, budget: &str, key: &str, limit: Option<Usd>) -> Result<(), ConfigError> {
        self.change(budget, key, |account| account.limit = limit)
    }

    /// Forgets what one account has spent in this window; what is held stays held.
    ///
    /// # Errors
    ///
    /// Where no budget is called so, or it has no room for the key.
    pub fn reset(&self, budget: &str, key: &str) -> Result<(), ConfigError> {
        self.change(budget, key, |account| account.meter.reset())
    }

    fn change(&self, budget: &str, key: &str, change: impl FnOnce(&mut Account)) -> Result<(), ConfigError> {
        let book = self.known(budget)?;
        let now = self.moment();
        let mut shard = book.lock(book.shard_of(key));
        let slot = book.open(&mut shard, key, now);
        let slot =
            slot.ok_or_else(|| ConfigError::new("key", "has no account, and there is no room for one"))?;
        let account = &mut shard.accounts[slot];
        account.meter.turn(book.budget.window, now);
        change(account);
        let first = account.first();
        drop(shard);
        self.core.spent.store(false, Ordering::Relaxed);
        wake(first);
        Ok(())
    }

    /// Sums up all holds, and compares them with what the accounts say.
    #[must_use]
    pub fn audit(&self) -> Audit {
        let mut audit = Audit { holds: 0, reserved: Usd::ZERO, balanced: true };
        for book in &self.core.books {
            for shard in book.shards() {
                let mut sums = vec![(Usd::ZERO, 0_u32); shard.accounts.len()];
                for leg in shard.holds.values() {
                    let (sum, live) = &mut sums[leg.slot];
                    *live += 1;
                    if shard.accounts[leg.slot].meter.counts(leg.stamp) {
                        *sum = sum.saturating_add(leg.amount);
                    }
                }
                for (account, (sum, live)) in shard.accounts.iter().zip(sums) {
                    audit.balanced &= account.meter.reserved() == sum && account.live == live;
                    audit.reserved = audit.reserved.saturating_add(sum);
                }
                audit.holds += shard.holds.len();
            }
        }
        audit
    }

    fn known(&self, budget: &str) -> Result<&Book, ConfigError> {
        self.book(budget).ok_or_else(|| ConfigError::new("budget", format!("none is called {budget:?}")))
    }

    fn book(&self, name: &str) -> Option<&Book> {
        self.core.books.iter().find(|book| book.budget.name == name)
    }

    fn moment(&self) -> Moment {
        let core = &*self.core;
        let clock =
            || core.since.saturating_add(time::nanos(time::now().saturating_duration_since(core.start)));
        Moment {
            // A calendar window asks for it only when the wall clock seems to be wrong, but then it must have been there.
            clock: if core.needs_clock || core.needs_wall { clock() } else { 0 },
            wall: if core.needs_wall { time::unix_millis(&*core.wall) } else { 0 },
        }
    }

    /// Reserves in all accounts or in none. `queue` is where the call waits, if it may.
    pub(super) fn take(&self, ask: &Ask<'_>, queue: &mut Queue<'_>) -> Result<Granted<MemoryHold>, Denied> {
        let hold = MemoryHold { id: ask.id, shards: [NO_SHARD; MOST_BUDGETS] };
        let mut taking = Taking { ask, now: self.moment(), hold, denied: None, next: None };
        let taken = self.take_from(0, &mut taking, queue);
        wake(taking.next.take());
        match taken {
            Ok(()) => {
                if self.core.spent.load(Ordering::Relaxed) && taking.denied.is_none() {
                    self.core.spent.store(false, Ordering::Relaxed);
                }
                Ok(Granted { hold: taking.hold, denied: taking.denied, waited: false })
            }
            Err(denied) => Err(denied),
        }
    }

    /// Locks the accounts one after the other, checks each, and changes them only when the last one has said yes, while
    /// all are still locked.
    fn take_from(
        &self,
        from: usize,
        taking: &mut Taking<'_, '_>,
        queue: &mut Queue<'_>,
    ) -> Result<(), Denied> {
        let Taking { ask, now, .. } = *taking;
        let books = self.core.books.iter().enumerate().skip(from);
        let Some((at, book)) = books.into_iter().find(|(_, book)| book.budget.applies(&ask.spender)) else {
            return Ok(());
        };
        let (budget, key) = (&book.budget, ask.spender.key(book.budget.key));
        let which = book.shard_of(key);
        let mut shard = book.lock(which);
        if shard.holds.contains_key(&ask.id) {
            // Asked before, and the answer was lost.
            taking.hold.shards[at] = which;
            return self.take_from(at + 1, taking, queue);
        }
        let Some(slot) = book.open(&mut shard, key, now) else {
            let denied = Denied::new(Cause::TooManyKeys);
            if !ask.force {
                return Err(denied);
            }
            taking.denied.get_or_insert(denied);
            return self.take_from(at + 1, taking, queue);
        };
        let account = &mut shard.accounts[slot];
        account.meter.turn(budget.window, now);
        if let Some(cause) = account.check(budget, book.limit(), ask.id, ask.amount, now) {
            let denied = account.denied(budget, cause);
            if matches!(cause, Cause::Exhausted(_)) && of_all(budget) && account.meter.spent() >= book.limit()
            {
                self.core.spent.store(true, Ordering::Relaxed);
            }
            if !ask.force {
                if cause == Cause::Contended {
                    queue.join(account, ask.id, Place { book: at, shard: which, slot });
                }
                return Err(denied);
            }
            taking.denied.get_or_insert(denied);
        }
        self.take_from(at + 1, taking, queue)?;

        let account = &mut shard.accounts[slot];
        let stamp = account.meter.reserve(budget.window, now, ask.amount);
        account.live += 1;
        if account.waiting() > 0 {
            taking.next = account.dequeue(ask.id).or(taking.next.take());
        }
        shard.holds.insert(ask.id, Leg { slot, stamp, amount: ask.amount });
        taking.hold.shards[at] = which;
        Ok(())
    }

    /// Leaves a queue.
    pub(super) fn leave(&self, id: HoldId, place: Place) {
        let Some(book) = self.core.books.get(place.book) else { return };
        let mut shard = book.lock(place.shard);
        let next = shard.accounts.get_mut(place.slot).and_then(|account| account.dequeue(id));
        drop(shard);
        wake(next);
    }
}

/// A reservation on its way through the accounts.
struct Taking<'t, 'a> {
    ask: &'t Ask<'a>,
    now: Moment,
    hold: MemoryHold,
    denied: Option<Denied>,
    /// Who waits behind this call.
    next: Option<Waker>,
}

impl Ledger for MemoryLedger {
    type Hold = MemoryHold;
    type Later = MemoryWait;

    fn budgets(&self) -> &[Budget] {
        &self.core.budgets
    }

    fn reserve(&self, ask: &Ask<'_>) -> Reservation<MemoryHold, MemoryWait> {
        let mut queue = if ask.patience.is_zero() { Queue::none() } else { Queue::new(None) };
        match self.take(ask, &mut queue) {
            Err(denied) => match queue.place() {
                Some(place) => Reservation::Later(MemoryWait::new(self.clone(), ask, place)),
                None => Reservation::Now(Err(denied)),
            },
            granted => Reservation::Now(granted),
        }
    }

    fn settle(&self, hold: &MemoryHold, amount: Usd, mut marks: Option<&mut Marks>) {
        for (at, book) in self.core.books.iter().enumerate() {
            let which = hold.shards[at];
            if which == NO_SHARD {
                continue;
            }
            let mut shard = book.lock(which);
            let Some(leg) = shard.holds.remove(&hold.id) else { continue };
            let account = &mut shard.accounts[leg.slot];
            account.live -= 1;
            account.meter.settle(leg.stamp, leg.amount, amount);
            let limit = book.limit();
            if let Some(marks) = marks.as_deref_mut() {
                marks[at] = account.mark(&book.budget, limit);
            }
            let over =
                of_all(&book.budget) && book.budget.window.0 != Kind::Call && account.meter.spent() >= limit;
            let first = account.first();
            drop(shard);
            if over {
                self.core.spent.store(true, Ordering::Relaxed);
            }
            wake(first);
        }
    }

    fn charge(&self, spender: &Spender<'_>, amount: Usd) {
        self.charge_each(spender, amount, |_, _| {});
    }

    fn is_spent(&self) -> bool {
        self.core.spent.load(Ordering::Relaxed)
    }
}

impl MemoryLedger {
    fn charge_each(&self, spender: &Spender<'_>, amount: Usd, mut charged: impl FnMut(usize, Stamp)) {
        let now = self.moment();
        for (at, book) in self.core.books.iter().enumerate() {
            if !book.budget.applies(spender) {
                continue;
            }
            let key = spender.key(book.budget.key);
            let mut shard = book.lock(book.shard_of(key));
            let slot = book.open_in_any_case(&mut shard, key, now);
            let meter = &mut shard.accounts[slot].meter;
            meter.turn(book.budget.window, now);
            let stamp = meter.reserve(book.budget.window, now, Usd::ZERO);
            meter.settle(stamp, Usd::ZERO, amount);
            charged(at, stamp);
        }
    }
}

fn state(book: &Book, account: &Account, now: Moment) -> AccountState {
    let mut meter = account.meter.clone();
    meter.turn(book.budget.window, now);
    let limit = Some(account.limit.unwrap_or_else(|| book.limit())).filter(|&limit| limit != Usd::MAX);
    let used = meter.spent().saturating_add(meter.reserved());
    AccountState {
        spent: meter.spent(),
        reserved: meter.reserved(),
        limit,
        left: limit.map(|limit| limit.saturating_sub(used)),
        resets_in: meter.resets_in(book.budget.window, now),
        waiting: account.waiting(),
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger").field("budgets", &self.core.budgets).finish_non_exhaustive()
    }
}
