//! Opens the file, and starts the worker.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use super::store::{Opener, Store, opener, unusable};
use super::worker::{Shared, Worker};
use super::{FileLedger, Handle};
use crate::config_error::ConfigError;
use crate::cost_guard::budget::Budget;
use crate::cost_guard::ledger::{Ledger, MemoryLedger, MemoryLedgerBuilder};
use crate::time::Wall;

/// What is charged for the calls of a process that died: their reservations are in the file, what they cost is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Orphaned {
    /// All that was reserved: the upstream may bill it.
    #[default]
    Bound,
    /// Nothing. What they did cost is then missing from the sums.
    Nothing,
}

/// Opens a [`FileLedger`].
#[must_use]
pub struct FileLedgerBuilder {
    memory: MemoryLedgerBuilder,
    most_holds: NonZeroUsize,
    orphaned: Orphaned,
}

const MOST_HOLDS: NonZeroUsize = NonZeroUsize::new(65_536).expect("not zero");

impl FileLedgerBuilder {
    pub(super) fn new() -> Self {
        let memory = MemoryLedger::builder().lasting();
        Self { memory, most_holds: MOST_HOLDS, orphaned: Orphaned::default() }
    }

    /// Adds a budget. A call must fit into all that apply to it.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.memory = self.memory.budget(budget);
        self
    }

    /// How many accounts each budget keeps. Default: 1 000 000. See [`MemoryLedgerBuilder::most_keys`].
    pub fn most_keys(mut self, keys: NonZeroUsize) -> Self {
        self.memory = self.memory.most_keys(keys);
        self
    }

    /// How many reservations may be under way, those included whose end is not written yet; calls beyond are refused.
    /// Default: 65 536.
    pub fn most_holds(mut self, holds: NonZeroUsize) -> Self {
        self.most_holds = holds;
        self
    }

    /// What is charged for the calls of a process that died. Default: all that was reserved.
    pub fn orphaned(mut self, rule: Orphaned) -> Self {
        self.orphaned = rule;
        self
    }

    /// Another wall clock than the system's.
    pub fn wall(mut self, wall: impl Wall + 'static) -> Self {
        self.memory = self.memory.wall(wall);
        self
    }

    /// Opens the file, or makes it; charges what dead processes left unsettled; and starts the worker. Blocks.
    ///
    /// # Errors
    ///
    /// Where two budgets have one name or there are too many, and where the file cannot be opened, made or read, or another
    /// process has it.
    pub fn open(self, path: impl AsRef<Path>) -> Result<FileLedger, ConfigError> {
        self.open_by(opener(path.as_ref()))
    }

    pub(super) fn open_by(self, opener: Opener) -> Result<FileLedger, ConfigError> {
        let memory = self.memory.build()?;
        let store = Store::open(&opener, memory.budgets()).map_err(|error| unusable(&error))?;
        let found = store.recover(self.orphaned).map_err(|error| unusable(&error))?;
        for (book, key, slots) in found {
            memory.restore(book, key.as_str(), &slots);
        }
        let number = store.last_batch().map_err(|error| unusable(&error))?;
        let shared = Arc::new(Shared::new(self.most_holds.get()));
        let worker =
            Worker { shared: shared.clone(), store: Some(store), opener, memory: memory.clone(), number };
        let thread = std::thread::Builder::new().name("seawall-ledger".to_owned());
        thread
            .spawn(move || worker.run())
            .map_err(|error| ConfigError::new("path", format!("has no thread to write it: {error}")))?;
        Ok(FileLedger { memory, _handle: Arc::new(Handle(shared.clone())), shared })
    }
}

impl fmt::Debug for FileLedgerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLedgerBuilder").field("memory", &self.memory).finish_non_exhaustive()
    }
}
