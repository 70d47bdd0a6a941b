//! The ledger of one process.

mod builder;
#[cfg(feature = "file-ledger")]
mod journal;
mod settle;
mod take;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc as StdArc;
use std::task::Waker;
use std::time::Duration;

use crate::call::Key;
use crate::config_error::ConfigError;
use crate::cost_guard::budget::{Budget, BudgetKey, Counts, Spender};
use crate::cost_guard::ledger::account::Account;
use crate::cost_guard::ledger::desk::Desks;
use crate::cost_guard::ledger::shard::Book;
use crate::cost_guard::ledger::wait::MemoryWait;
use crate::cost_guard::ledger::{Ask, Granted, HoldId, Ledger, Marks, Reservation};
use crate::cost_guard::window::Moment;
use crate::money::Usd;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::time::{self, Origin, Wall};
pub use builder::MemoryLedgerBuilder;
use settle::is_over;

/// Keeps accounts in memory: the default ledger. Clones share it, and so can several guards.
///
/// A call's accounts are checked and changed in one step, all or none. Accounts with plenty left lend some of it to each
/// thread in advance, so that threads do not meet; it is called back before anything is refused. What is spent is
/// forgotten when the process ends.
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
    desks: Desks,
    start: Origin,
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
}

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
            Some(account) => Some(self.core.state(book, account, now)),
            None if book.budget.key == BudgetKey::All => {
                Some(self.core.state(book, &Account::new(&book.budget, Key::from(""), now), now))
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
            let accounts = shard.accounts.iter();
            all.extend(accounts.map(|account| (account.key.clone(), self.core.state(book, account, now))));
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
        for mut shard in book.shards() {
            for account in &mut shard.accounts {
                self.core.desks.call_back(book.drawer_of(account.key.as_str()), account);
            }
            spent |= shard.accounts.iter().any(|account| is_over(book, account));
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
        let slot = book.open(&self.core.desks, &mut shard, key, now);
        let slot =
            slot.ok_or_else(|| ConfigError::new("key", "has no account, and there is no room for one"))?;
        let account = &mut shard.accounts[slot];
        self.core.desks.call_back(book.drawer_of(key), account);
        account.meter.turn(book.budget.window, now);
        change(account);
        let first = account.first();
        drop(shard);
        self.core.spent.store(false, Ordering::Relaxed);
        wake(first);
        Ok(())
    }

    /// Sums up all holds, and compares them with what the accounts say. Meanwhile nobody reserves or settles.
    #[must_use]
    pub fn audit(&self) -> Audit {
        let core = &*self.core;
        let mut books: Vec<Vec<_>> = core.books.iter().map(|book| book.shards().collect()).collect();
        for (book, shards) in core.books.iter().zip(&mut books) {
            for account in shards.iter_mut().flat_map(|shard| &mut shard.accounts) {
                core.desks.call_back(book.drawer_of(account.key.as_str()), account);
            }
        }
        let mut sums: Vec<Vec<_>> = books
            .iter()
            .map(|shards| shards.iter().map(|shard| vec![(Usd::ZERO, 0_u32); shard.accounts.len()]).collect())
            .collect();
        let mut audit = Audit { holds: 0, reserved: Usd::ZERO, balanced: true };
        for desk in core.desks.lock_all() {
            for (amount, legs) in desk.holds.iter() {
                for (book, leg) in legs.iter().enumerate().filter(|(_, leg)| leg.used) {
                    let shard = usize::from(leg.shard);
                    let (sum, live) = &mut sums[book][shard][leg.slot];
                    *live += 1;
                    if books[book][shard].accounts[leg.slot].meter.counts(leg.stamp) {
                        *sum = sum.saturating_add(amount);
                    }
                    audit.holds += 1;
                }
            }
        }
        let accounts = books.iter().flatten().flat_map(|shard| &shard.accounts);
        for (account, (sum, live)) in accounts.zip(sums.into_iter().flatten().flatten()) {
            audit.balanced &= account.meter.reserved() == sum && account.live == live;
            audit.reserved = audit.reserved.saturating_add(sum);
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
        let now = self.glance();
        // A calendar window asks for it only when the wall clock seems to be wrong, but then it must have been there.
        let clock = if core.needs_wall && !core.needs_clock { core.clock() } else { now.clock };
        Moment { clock, ..now }
    }

    /// What of a moment the windows need at once.
    #[inline]
    fn glance(&self) -> Moment {
        let core = &*self.core;
        Moment {
            clock: if core.needs_clock { core.clock() } else { 0 },
            wall: if core.needs_wall { time::unix_millis(&*core.wall) } else { 0 },
        }
    }
}

impl Ledger for MemoryLedger {
    type Hold = MemoryHold;
    type Later = MemoryWait;

    fn budgets(&self) -> &[Budget] {
        &self.core.budgets
    }

    #[inline]
    fn reserve(&self, ask: &Ask<'_>) -> Reservation<MemoryHold, MemoryWait> {
        if self.take_at_desk(ask) {
            return Reservation::Now(Ok(Granted::new(MemoryHold { id: ask.id })));
        }
        self.reserve_in_accounts(ask)
    }

    #[inline]
    fn settle(&self, hold: &MemoryHold, amount: Usd, marks: Option<&mut Marks>) {
        self.pay(*hold, amount, marks);
    }

    fn charge(&self, spender: &Spender<'_>, amount: Usd) {
        self.charge_each(spender, amount, |_, _| {});
    }

    #[inline]
    fn is_spent(&self) -> bool {
        self.core.spent.load(Ordering::Relaxed)
    }
}

impl Core {
    fn clock(&self) -> u64 {
        self.since.saturating_add(self.start.elapsed())
    }

    /// What an account has, with all that it has lent.
    fn state(&self, book: &Book, account: &Account, now: Moment) -> AccountState {
        let mut meter = account.meter.clone();
        let at = book.drawer_of(account.key.as_str());
        self.desks.used(at, account, |stamp, spent, held| meter.add(stamp, spent, held));
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
