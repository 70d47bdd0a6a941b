//! A ledger that a restart does not empty.

mod builder;
mod store;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
mod ticket;
mod wait;
mod worker;

use std::fmt;
use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;

pub use builder::{FileLedgerBuilder, Orphaned};
pub(in crate::cost_guard::ledger) use store::Written;
pub use wait::FileWait;

use crate::call::Key;
use crate::config_error::ConfigError;
use crate::cost_guard::budget::{Budget, Spender};
use crate::cost_guard::ledger::{
    AccountState, Ask, Audit, Cause, Denied, Ledger, Marks, MemoryHold, MemoryLedger, Reservation,
};
use crate::money::Usd;
use ticket::Ticket;
use wait::Writing;
use worker::Shared;

/// Keeps accounts in memory and in a file: a restart or a kill forgets nothing that was spent. Feature `file-ledger`.
///
/// A reservation is written and synced *before* its call is sent, so a call of a process that died is known to the next
/// one, which charges it by a [rule](Orphaned): by default all that was reserved. What a call cost is written after it,
/// with the next reservations, and in the same step in which its reservation is removed: nothing is freed twice. One thread
/// of its own writes; whatever comes in while it does is written together next, so many calls share one sync.
///
/// # Errors at run time
///
/// Where the file fails (the disk is full, or gone) reservations are refused with [`LedgerUnavailable`] until it works
/// again, unless the guard [fails open](crate::cost_guard::CostGuardBuilder::fail_open). What calls under way cost stays in
/// memory meanwhile, and is written then. The same refusal meets calls beyond [`most_holds`](FileLedgerBuilder::most_holds).
///
/// # What is kept
///
/// What is spent, by budget name, window and key. Limits are those of the configuration, those for one key included: set
/// them again after a start. A budget under another name or with another window begins at nothing, and finds its
/// old sums again if it is changed back. Rolling windows go by the wall clock from one process to the next.
///
/// One process at a time can have a file. The last clone that is dropped lets the worker write what there is and end;
/// await [`close`](FileLedger::close) before a process ends or another opens the file.
///
/// ```no_run
/// use seawall::cost_guard::ledger::FileLedger;
/// use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ledger = FileLedger::open("spending.redb", Budget::new(Usd::dollars(10), Window::DAY))?;
/// let prices = PriceTable::new().model("gpt-4o", Price::per_million("2.50", "10")?);
/// let layer = CostGuardLayer::builder().prices(prices).ledger(ledger).build()?;
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
///
/// [`LedgerUnavailable`]: crate::RefusalKind::LedgerUnavailable
#[derive(Clone)]
pub struct FileLedger {
    memory: MemoryLedger,
    shared: Arc<Shared>,
    /// The worker ends when the last of them is gone.
    _handle: Arc<Handle>,
}

struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.shut(None);
    }
}

impl FileLedger {
    /// A ledger of this budget alone, in this file, which is made if it is not there. Reads the file, and so blocks.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened, made or read, or another process has it.
    pub fn open(path: impl AsRef<Path>, budget: Budget) -> Result<Self, ConfigError> {
        Self::builder().budget(budget).open(path)
    }

    /// A ledger of several budgets, or with other settings.
    pub fn builder() -> FileLedgerBuilder {
        FileLedgerBuilder::new()
    }

    /// As [`MemoryLedger::account`].
    #[must_use]
    pub fn account(&self, budget: &str, key: &str) -> Option<AccountState> {
        self.memory.account(budget, key)
    }

    /// As [`MemoryLedger::accounts`].
    #[must_use]
    pub fn accounts(&self, budget: &str) -> Vec<(Key, AccountState)> {
        self.memory.accounts(budget)
    }

    /// As [`MemoryLedger::set_limit`], for this process.
    ///
    /// # Errors
    ///
    /// Where no budget is called so.
    pub fn set_limit(&self, budget: &str, limit: Option<Usd>) -> Result<(), ConfigError> {
        self.memory.set_limit(budget, limit)
    }

    /// As [`MemoryLedger::set_limit_of`], for this process.
    ///
    /// # Errors
    ///
    /// Where no budget is called so, or it has no room for the key.
    pub fn set_limit_of(&self, budget: &str, key: &str, limit: Option<Usd>) -> Result<(), ConfigError> {
        self.memory.set_limit_of(budget, key, limit)
    }

    /// As [`MemoryLedger::reset`]; what is forgotten is forgotten in the file too.
    ///
    /// # Errors
    ///
    /// Where no budget is called so, or it has no room for the key.
    pub fn reset(&self, budget: &str, key: &str) -> Result<(), ConfigError> {
        let Some(book) = self.memory.position(budget) else { return self.memory.reset(budget, key) };
        self.shared.reset(book, key, || self.memory.reset(budget, key))
    }

    /// As [`MemoryLedger::audit`].
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.memory.audit()
    }

    /// Reservations whose end is not in the file yet.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.shared.holds()
    }

    /// Waits until all that was settled, released, charged and reset before is in the file.
    ///
    /// # Errors
    ///
    /// `Unavailable` where the file fails, or the ledger is closed. Nothing is lost by that: it is written later.
    pub async fn flush(&self) -> Result<(), Denied> {
        done(&self.shared.flush()).await
    }

    /// Writes what there is, and lets go of the file. Clones refuse from now on; what is still reserved by them is charged
    /// by the [rule](Orphaned) when the file is opened again.
    ///
    /// # Errors
    ///
    /// `Unavailable` where the file fails, so that some of what was spent could not be written: those calls are charged by
    /// the rule.
    pub async fn close(self) -> Result<(), Denied> {
        let ticket = Arc::new(Ticket::default());
        self.shared.shut(Some(&ticket));
        done(&ticket).await
    }
}

async fn done(ticket: &Ticket) -> Result<(), Denied> {
    let written = poll_fn(|cx| ticket.poll(cx)).await;
    if written { Ok(()) } else { Err(Denied::new(Cause::Unavailable)) }
}

impl Ledger for FileLedger {
    type Hold = MemoryHold;
    type Later = FileWait;

    fn budgets(&self) -> &[Budget] {
        self.memory.budgets()
    }

    fn reserve(&self, ask: &Ask<'_>) -> Reservation<MemoryHold, FileWait> {
        let Some(place) = self.shared.place() else {
            return Reservation::Now(Err(Denied::new(Cause::Unavailable)));
        };
        match self.memory.reserve(ask) {
            Reservation::Now(Ok(granted)) => match Writing::begin(self.clone(), granted, place) {
                Ok(writing) => Reservation::Later(FileWait::writing(writing)),
                Err(denied) => Reservation::Now(Err(denied)),
            },
            Reservation::Now(Err(denied)) => Reservation::Now(Err(denied)),
            Reservation::Later(wait) => Reservation::Later(FileWait::contended(self.clone(), wait, place)),
        }
    }

    fn settle(&self, hold: &MemoryHold, amount: Usd, marks: Option<&mut Marks>) {
        self.memory.settle(hold, amount, marks);
        self.shared.close(hold.id(), amount);
    }

    fn charge(&self, spender: &Spender<'_>, amount: Usd) {
        self.shared.charge(self.memory.charge_entries(spender, amount), amount);
    }

    fn is_spent(&self) -> bool {
        self.memory.is_spent()
    }
}

impl fmt::Debug for FileLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLedger").field("budgets", &self.budgets()).finish_non_exhaustive()
    }
}
