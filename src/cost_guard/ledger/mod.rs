//! Where spending is written down.
//!
//! A ledger owns budgets and their accounts. A guard asks it to *reserve* the most that a call can cost, in all of the
//! call's accounts or in none, and later to *settle* what it did cost, or to *release* it. Each reservation has an
//! identity, and is settled or released once: whatever comes after changes nothing.

mod account;
mod desk;
#[cfg(feature = "file-ledger")]
mod file;
mod holds;
mod memory;
#[cfg(all(test, seawall_loom))]
mod models;
mod shard;
#[cfg(all(test, not(seawall_loom)))]
mod tests;
mod wait;

use std::cell::Cell;
use std::future::Future;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "file-ledger")]
pub use file::{FileLedger, FileLedgerBuilder, FileWait, Orphaned};
pub use memory::{AccountState, Audit, MemoryHold, MemoryLedger, MemoryLedgerBuilder};
pub use wait::MemoryWait;

use crate::cost_guard::budget::{Budget, Spender};
use crate::money::Usd;
use crate::refusal::{Label, Refusal, RefusalKind};
use crate::stripes::thread_number;
use desk::MOST_DESKS;

/// The most budgets that one ledger has.
pub const MOST_BUDGETS: usize = 8;

/// Identifies a reservation within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(NonZeroU64);

const DESK_BITS: u32 = MOST_DESKS.trailing_zeros();
/// So many identities a thread takes at once, so that no counter is fought over.
const BLOCK: u64 = 1_024;

#[cold]
fn first_of_block() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(BLOCK);
    // Wrapped around, a number would come again after thousands of years.
    let thread = thread_number() % MOST_DESKS;
    (NEXT.fetch_add(BLOCK, Ordering::Relaxed) << DESK_BITS) | thread as u64
}

impl HoldId {
    /// One that nobody in this process had before.
    #[must_use]
    #[inline]
    pub fn fresh() -> Self {
        thread_local! { static NEXT: Cell<u64> = const { Cell::new(0) }; }
        NEXT.with(|next| {
            let mut id = next.get();
            // A thread counts in steps that leave its own number in the lowest bits.
            if id % (BLOCK << DESK_BITS) < 1 << DESK_BITS {
                id = first_of_block();
            }
            next.set(id.wrapping_add(1 << DESK_BITS));
            Self::known(id).unwrap_or(Self(NonZeroU64::MIN))
        })
    }

    /// A fresh one of this desk.
    #[cfg(test)]
    fn fresh_at(desk: usize) -> Self {
        let others = Self::fresh().get() >> DESK_BITS << DESK_BITS;
        Self::known(others | (desk % MOST_DESKS) as u64).expect("a sequence is above zero")
    }

    fn known(id: u64) -> Option<Self> {
        NonZeroU64::new(id).map(Self)
    }

    /// The number of the thread that made it, modulo the most desks.
    const fn desk(self) -> usize {
        (self.get() % (1 << DESK_BITS)) as usize
    }

    /// Those that one thread makes follow each other.
    const fn sequence(self) -> usize {
        (self.get() >> DESK_BITS) as usize
    }
    /// As a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// What a guard asks of a ledger.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ask<'a> {
    /// The identity of the reservation. Asking twice with one identity reserves once.
    pub id: HoldId,
    /// Whose accounts.
    pub spender: Spender<'a>,
    /// The most that the call can cost.
    pub amount: Usd,
    /// How long to wait, in the order of coming, for calls under way to give back what they hold. Zero: not at all.
    pub patience: Duration,
    /// Reserve whatever the limits say, and report what they would have said.
    pub force: bool,
}

impl<'a> Ask<'a> {
    /// To reserve this much, now or not at all.
    #[must_use]
    pub fn new(spender: Spender<'a>, amount: Usd) -> Self {
        Self { id: HoldId::fresh(), spender, amount, patience: Duration::ZERO, force: false }
    }
}

/// A reservation that was made.
#[derive(Debug)]
#[non_exhaustive]
pub struct Granted<H> {
    /// The reservation.
    pub hold: H,
    /// What would have been said, had the ask not been [forced](Ask::force).
    pub denied: Option<Denied>,
    /// Whether it waited for calls under way to give back what they held.
    pub waited: bool,
}

impl<H> Granted<H> {
    /// A reservation within all limits.
    pub const fn new(hold: H) -> Self {
        Self { hold, denied: None, waited: false }
    }

    /// The same, after a wait for calls under way.
    #[must_use]
    pub fn after_wait(mut self) -> Self {
        self.waited = true;
        self
    }
}

/// A ledger's answer, now or later.
#[derive(Debug)]
pub enum Reservation<H, W> {
    /// At once.
    Now(Result<Granted<H>, Denied>),
    /// When this future says so. Dropping it gives up, and what it may have reserved already is released.
    Later(W),
}

/// Why a ledger reserved nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// Why.
    pub cause: Cause,
    /// Which budget, and which of its accounts.
    pub label: Option<Arc<Label>>,
}

/// Why a ledger reserved nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// What is left after all that was *spent* is too little. It fits after this time, where that is known.
    Exhausted(Option<Duration>),
    /// Calls under way hold what would be enough.
    Contended,
    /// A new key, and no room for it: no account of this budget may be forgotten.
    TooManyKeys,
    /// The ledger's store did not answer.
    Unavailable,
}

impl Denied {
    /// For this cause.
    #[must_use]
    pub const fn new(cause: Cause) -> Self {
        Self { cause, label: None }
    }

    pub(crate) fn to_refusal(&self) -> Refusal {
        let refusal = match self.cause {
            Cause::Exhausted(None) => Refusal::new(RefusalKind::BudgetExhausted),
            Cause::Exhausted(Some(wait)) => Refusal::new(RefusalKind::BudgetExhausted).with_retry_after(wait),
            Cause::Contended => Refusal::new(RefusalKind::BudgetContended),
            Cause::TooManyKeys => Refusal::new(RefusalKind::TooManyKeys),
            Cause::Unavailable => Refusal::new(RefusalKind::LedgerUnavailable),
        };
        match &self.label {
            Some(label) => refusal.with_label(label.clone()),
            None => refusal,
        }
    }
}

/// A mark that spending has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// Which budget, and which of its accounts.
    pub label: Arc<Label>,
    /// The mark, in percent of the limit.
    pub percent: u8,
    /// What is spent in this window.
    pub spent: Usd,
    /// The limit.
    pub limit: Usd,
}

/// The marks passed by one settlement: at most one a budget.
pub type Marks = [Option<Mark>; MOST_BUDGETS];

/// Writes down what is reserved and spent.
///
/// [`MemoryLedger`] is one; one of your own can keep its accounts in a store that several processes share. All its
/// operations are safe to repeat. `settle` and `release` are called from drops too: they must not block and cannot fail, so a ledger
/// with a store behind it queues them; what its queue cannot take it settles at the full amount, rather than lose it.
///
/// ```
/// use seawall::cost_guard::ledger::{Ask, Ledger, Marks, MemoryLedger, Reservation};
/// use seawall::cost_guard::{Budget, CostGuardLayer, PriceTable, Spender, Usd, Window};
///
/// /// Accounts in memory, and a line in a journal for each settlement.
/// #[derive(Clone)]
/// struct Journal(MemoryLedger);
///
/// impl Ledger for Journal {
///     type Hold = <MemoryLedger as Ledger>::Hold;
///     type Later = <MemoryLedger as Ledger>::Later;
///
///     fn budgets(&self) -> &[Budget] { self.0.budgets() }
///     fn is_spent(&self) -> bool { self.0.is_spent() }
///     fn reserve(&self, ask: &Ask<'_>) -> Reservation<Self::Hold, Self::Later> { self.0.reserve(ask) }
///     fn release(&self, hold: &Self::Hold) { self.0.release(hold) }
///     fn charge(&self, spender: &Spender<'_>, cost: Usd) { self.0.charge(spender, cost) }
///     fn settle(&self, hold: &Self::Hold, cost: Usd, marks: Option<&mut Marks>) {
///         println!("{} cost {cost}", hold.id().get()); // over a network: send it to a queue, and return
///         self.0.settle(hold, cost, marks);
///     }
/// }
///
/// let ledger = MemoryLedger::builder().budget(Budget::new(Usd::dollars(10), Window::DAY)).build()?;
/// let layer = CostGuardLayer::builder().prices(PriceTable::new()).ledger(Journal(ledger)).build()?;
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
pub trait Ledger: Clone + Send + Sync + 'static {
    /// A reservation, with its identity and amount.
    type Hold: Send + 'static;
    /// An answer that takes time.
    type Later: Future<Output = Result<Granted<Self::Hold>, Denied>> + Send + 'static;

    /// The budgets it keeps.
    fn budgets(&self) -> &[Budget];

    /// Reserves the amount in all accounts of the spender, or in none.
    fn reserve(&self, ask: &Ask<'_>) -> Reservation<Self::Hold, Self::Later>;

    /// The call is over and cost so much, which may be more than was reserved. Never refused.
    ///
    /// Marks that this passed go into `marks`, from where the guard tells of them; `None` if nobody listens.
    fn settle(&self, hold: &Self::Hold, amount: Usd, marks: Option<&mut Marks>);

    /// The call was never sent, or cost nothing: all is given back.
    fn release(&self, hold: &Self::Hold) {
        self.settle(hold, Usd::ZERO, None);
    }

    /// Writes down what was spent beside any reservation: a correction, or a cost learned of later. Never refused.
    fn charge(&self, spender: &Spender<'_>, amount: Usd);

    /// Whether some budget of all calls is known to be spent: then the guard is shut.
    fn is_spent(&self) -> bool {
        false
    }
}
