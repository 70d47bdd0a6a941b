//! Makes the ledger of one process.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc as StdArc;

use super::{Core, MemoryLedger, of_all};
use crate::config_error::ConfigError;
use crate::cost_guard::budget::Budget;
use crate::cost_guard::ledger::MOST_BUDGETS;
use crate::cost_guard::ledger::desk::Desks;
use crate::cost_guard::ledger::shard::Book;
use crate::cost_guard::window::Window;
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use crate::time::{self, Origin, SystemWall, Wall};

/// Makes a [`MemoryLedger`].
#[must_use]
pub struct MemoryLedgerBuilder {
    budgets: Vec<Budget>,
    most_keys: NonZeroUsize,
    wall: StdArc<dyn Wall>,
    /// Stamps are to hold in another process too.
    lasting: bool,
}

impl MemoryLedgerBuilder {
    pub(super) fn new() -> Self {
        let most_keys = MemoryLedger::DEFAULT_MOST_KEYS;
        Self { budgets: Vec::new(), most_keys, wall: StdArc::new(SystemWall), lasting: false }
    }

    /// Counts the monotonic clock from 1970, so that the stamps of rolling windows mean the same in another process.
    #[cfg(feature = "file-ledger")]
    pub(in crate::cost_guard::ledger) fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// Adds a budget. A call must fit into all that apply to it.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budgets.push(budget);
        self
    }

    pub(in crate::cost_guard) fn first(&self) -> Option<&Budget> {
        self.budgets.first()
    }

    /// How many accounts each budget keeps. Default: 1 000 000. An account with unexpired spending is never forgotten;
    /// where all are such, a new key is refused.
    pub fn most_keys(mut self, keys: NonZeroUsize) -> Self {
        self.most_keys = keys;
        self
    }

    /// Another wall clock than the system's, for calendar windows.
    pub fn wall(mut self, wall: impl Wall + 'static) -> Self {
        self.wall = StdArc::new(wall);
        self
    }

    /// The ledger.
    ///
    /// # Errors
    ///
    /// Where two budgets have one name, or there are more than [`MOST_BUDGETS`].
    pub fn build(self) -> Result<MemoryLedger, ConfigError> {
        if self.budgets.len() > MOST_BUDGETS {
            return Err(ConfigError::new("budgets", "are more than 8"));
        }
        for (at, budget) in self.budgets.iter().enumerate() {
            if self.budgets[..at].iter().any(|other| other.name == budget.name) {
                let problem = format!("two are called {:?}; give one another name", &*budget.name);
                return Err(ConfigError::new("budgets", problem));
            }
        }
        Ok(self.finish())
    }

    pub(super) fn finish(self) -> MemoryLedger {
        let any = |needs: fn(Window) -> bool| self.budgets.iter().any(|b| needs(b.window));
        let needs_wall = any(Window::needs_wall);
        let mut books: Vec<Book> = Vec::with_capacity(self.budgets.len());
        for budget in &self.budgets {
            let drawers = books.last().map_or(0, Book::drawers_end);
            books.push(Book::new(budget.clone(), self.most_keys.get(), drawers));
        }
        let core = Core {
            desks: Desks::new(desks(), books.len(), books.last().map_or(0, Book::drawers_end)),
            books,
            start: Origin::new(),
            since: if self.lasting { time::nanos(self.wall.since_epoch()) } else { 0 },
            wall: self.wall,
            needs_clock: any(Window::needs_clock),
            needs_wall,
            spent: AtomicBool::new(
                self.budgets.iter().any(|budget| of_all(budget) && budget.limit.is_zero()),
            ),
            budgets: self.budgets,
        };
        MemoryLedger { core: Arc::new(core) }
    }
}

/// One for each processor: more threads than that seldom run at once.
#[cfg(not(seawall_loom))]
fn desks() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(seawall_loom)]
fn desks() -> usize {
    2
}

impl fmt::Debug for MemoryLedgerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedgerBuilder").field("budgets", &self.budgets).finish_non_exhaustive()
    }
}
