//! What the file holds: spending by account and window, and the holds that are not settled.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use redb::{Database, DatabaseError, ReadableTable, TableDefinition, WriteTransaction};
use rustc_hash::FxHashMap;

use super::Orphaned;
use super::ticket::Ticket;
use crate::call::Key;
use crate::config_error::ConfigError;
use crate::cost_guard::budget::Budget;
use crate::cost_guard::window::{Moment, Stamp};
use crate::money::Usd;
use crate::refusal::BoxError;

/// Budget, window, key → what was spent in its windows, as pairs of stamp and nano-dollars.
const ACCOUNTS: TableDefinition<'_, (&str, &str, &str), &[u8]> = TableDefinition::new("accounts");
/// Identity → a JSON array of budget, window, key, stamp and nano-dollars for each of its accounts.
const HOLDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("holds");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FORMAT: (&str, u64) = ("format", 1);
/// The last batch that was written, so that one whose end nobody saw is not written twice.
const BATCH: &str = "batch";

/// Rows that each batch looks at, to remove what is over.
const SWEEP: usize = 16;
const CACHE_BYTES: usize = 32 << 20;

/// How the file is opened, each time anew after it failed.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

pub(super) fn opener(path: &Path) -> Opener {
    let path = path.to_owned();
    Box::new(move || {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES).create_with_file_format_v3(true).create(&path)
    })
}

/// What a hold or a charge has in one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cost_guard::ledger) struct Written {
    pub(in crate::cost_guard::ledger) book: usize,
    pub(in crate::cost_guard::ledger) key: Key,
    pub(in crate::cost_guard::ledger) stamp: Stamp,
    pub(in crate::cost_guard::ledger) amount: Usd,
}

/// What is written together.
#[derive(Default)]
pub(super) struct Batch {
    /// Reservations, and who waits for each to be written.
    pub(super) opened: FxHashMap<u64, (Vec<Written>, Arc<Ticket>)>,
    /// Reservations that are over.
    pub(super) closed: Vec<u64>,
    pub(super) resets: Vec<(usize, Key)>,
    /// By account and window, summed.
    pub(super) spent: HashMap<(usize, Key), FxHashMap<Stamp, Usd>>,
    /// Who waits for everything before to be written.
    pub(super) flushes: Vec<Arc<Ticket>>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.opened.is_empty()
            && self.closed.is_empty()
            && self.resets.is_empty()
            && self.spent.is_empty()
            && self.flushes.is_empty()
    }

    pub(super) fn spend(&mut self, entries: Vec<Written>, amount: Usd) {
        if amount.is_zero() {
            return;
        }
        for Written { book, key, stamp, .. } in entries {
            let sum = self.spent.entry((book, key)).or_default().entry(stamp).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    pub(super) fn reset(&mut self, book: usize, key: Key) {
        self.spent.remove(&(book, key.clone()));
        self.resets.push((book, key));
    }

    /// Who waits for it to be written is told whether it was.
    pub(super) fn answer(&self, written: bool) {
        for ticket in self.opened.values().map(|(_, ticket)| ticket).chain(&self.flushes) {
            ticket.answer(written);
        }
    }
}

/// The windows of one account in which something was spent, oldest first.
pub(super) type Slots = Vec<(Stamp, u64)>;

/// An account as it was found in the file.
pub(super) type Found = (usize, Key, Slots);

/// The open file.
pub(super) struct Store {
    db: Database,
    budgets: Vec<(Budget, String)>,
    /// Where the sweep goes on.
    hand: Option<(String, String, String)>,
}

impl Store {
    pub(super) fn open(open: &Opener, budgets: &[Budget]) -> Result<Self, BoxError> {
        let db = open()?;
        let txn = db.begin_write()?;
        {
            let mut meta = txn.open_table(META)?;
            let format = meta.get(FORMAT.0)?.map(|format| format.value());
            if format.is_some_and(|format| format != FORMAT.1) {
                return Err("is of another version of this crate".into());
            }
            meta.insert(FORMAT.0, FORMAT.1)?;
            txn.open_table(HOLDS)?;
            txn.open_table(ACCOUNTS)?;
        }
        txn.commit()?;
        let budgets = budgets.iter().map(|budget| (budget.clone(), budget.window.code())).collect();
        Ok(Self { db, budgets, hand: None })
    }

    /// The number of the last batch that was written.
    pub(super) fn last_batch(&self) -> Result<u64, BoxError> {
        let txn = self.db.begin_read()?;
        let meta = txn.open_table(META)?;
        Ok(meta.get(BATCH)?.map_or(0, |batch| batch.value()))
    }

    /// Charges what dead processes left unsettled, all of it in one step, and reads what is spent.
    pub(super) fn recover(&self, rule: Orphaned) -> Result<Vec<Found>, BoxError> {
        let txn = self.db.begin_write()?;
        {
            let mut holds = txn.open_table(HOLDS)?;
            let mut accounts = txn.open_table(ACCOUNTS)?;
            while let Some((_, row)) = holds.pop_first()? {
                for (budget, window, key, stamp, nanos) in read_entries(row.value())? {
                    if rule == Orphaned::Bound {
                        let budget = (&*budget, &*window, &*key);
                        update(&mut accounts, budget, |slots| add(slots, stamp, nanos))?;
                    }
                }
            }
        }
        txn.commit()?;
        self.accounts()
    }

    fn accounts(&self) -> Result<Vec<Found>, BoxError> {
        let txn = self.db.begin_read()?;
        let mut found = Vec::new();
        for row in txn.open_table(ACCOUNTS)?.iter()? {
            let (name, slots) = row?;
            let (budget, window, key) = name.value();
            // What another configuration has spent stays in the file, in case it comes back.
            if let Some(book) = self.book(budget, window) {
                found.push((book, Key::from(key), slots_of(slots.value())?));
            }
        }
        Ok(found)
    }

    fn book(&self, name: &str, window: &str) -> Option<usize> {
        self.budgets.iter().position(|(budget, code)| budget.name == name && code == window)
    }

    fn name<'n>(&'n self, book: usize, key: &'n Key) -> (&'n str, &'n str, &'n str) {
        let (budget, window) = &self.budgets[book];
        (&budget.name, window, key.as_str())
    }

    /// Writes a batch in one step, once: what is written under its number already is not written again.
    pub(super) fn write(&mut self, batch: &Batch, number: u64, now: Moment) -> Result<(), BoxError> {
        let txn = self.db.begin_write()?;
        {
            let mut meta = txn.open_table(META)?;
            meta.insert(BATCH, number)?;
            let mut holds = txn.open_table(HOLDS)?;
            for id in &batch.closed {
                holds.remove(id)?;
            }
            for (id, (entries, _)) in &batch.opened {
                holds.insert(id, &*self.write_entries(entries)?)?;
            }
            let mut accounts = txn.open_table(ACCOUNTS)?;
            for (book, key) in &batch.resets {
                accounts.remove(self.name(*book, key))?;
            }
            for ((book, key), sums) in &batch.spent {
                update(&mut accounts, self.name(*book, key), |slots| {
                    for (&stamp, sum) in sums {
                        add(slots, stamp, sum.as_nanos());
                    }
                    self.budgets[*book].0.window.forget_old(slots);
                })?;
            }
        }
        self.sweep(&txn, now)?;
        txn.commit()?;
        Ok(())
    }

    /// Removes a few accounts whose windows are all over.
    fn sweep(&mut self, txn: &WriteTransaction, now: Moment) -> Result<(), BoxError> {
        let mut accounts = txn.open_table(ACCOUNTS)?;
        let hand = self.hand.take();
        let from = hand.as_ref().map_or(("", "", ""), |(budget, window, key)| (&**budget, &**window, &**key));
        let (mut over, mut next) = (Vec::new(), None);
        for (count, row) in accounts.range(from..)?.enumerate() {
            let (name, slots) = row?;
            let (budget, window, key) = name.value();
            let name = || (budget.to_owned(), window.to_owned(), key.to_owned());
            if count == SWEEP {
                next = Some(name());
                break;
            }
            let window = self.book(budget, window).map(|book| self.budgets[book].0.window);
            if window.is_some_and(|window| slots_of(slots.value()).is_ok_and(|s| window.is_over(&s, now))) {
                over.push(name());
            }
        }
        for (budget, window, key) in &over {
            accounts.remove((&**budget, &**window, &**key))?;
        }
        self.hand = next;
        Ok(())
    }

    fn write_entries(&self, entries: &[Written]) -> Result<Vec<u8>, BoxError> {
        let rows: Vec<_> = entries
            .iter()
            .map(|Written { book, key, stamp, amount }| {
                let (budget, window, key) = self.name(*book, key);
                (budget, window, key, *stamp, amount.as_nanos())
            })
            .collect();
        Ok(serde_json::to_vec(&rows)?)
    }
}

type Row = (String, String, String, Stamp, u64);

fn read_entries(row: &[u8]) -> Result<Vec<Row>, BoxError> {
    Ok(serde_json::from_slice(row)?)
}

type Accounts<'txn> = redb::Table<'txn, (&'static str, &'static str, &'static str), &'static [u8]>;

fn update(
    accounts: &mut Accounts<'_>,
    name: (&str, &str, &str),
    change: impl FnOnce(&mut Slots),
) -> Result<(), BoxError> {
    let mut slots = match accounts.get(name)? {
        Some(slots) => slots_of(slots.value())?,
        None => Slots::new(),
    };
    change(&mut slots);
    let bytes: Vec<u8> = slots
        .iter()
        .flat_map(|(stamp, nanos)| stamp.to_le_bytes().into_iter().chain(nanos.to_le_bytes()))
        .collect();
    accounts.insert(name, &*bytes)?;
    Ok(())
}

fn add(slots: &mut Slots, stamp: Stamp, nanos: u64) {
    match slots.binary_search_by_key(&stamp, |slot| slot.0) {
        Ok(at) => slots[at].1 = slots[at].1.saturating_add(nanos),
        Err(at) => slots.insert(at, (stamp, nanos)),
    }
}

fn slots_of(bytes: &[u8]) -> Result<Slots, BoxError> {
    let (pairs, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err("has an account that cannot be read".into());
    }
    Ok(pairs
        .iter()
        .map(|pair| {
            let number = u128::from_le_bytes(*pair);
            #[expect(clippy::cast_possible_truncation, reason = "the two halves of the pair")]
            let (stamp, nanos) = (number as u64, (number >> 64) as u64);
            (stamp.cast_signed(), nanos)
        })
        .collect())
}

/// What is wrong with a file that cannot be opened.
pub(super) fn unusable(error: &BoxError) -> ConfigError {
    let problem = match error.downcast_ref::<DatabaseError>() {
        Some(DatabaseError::DatabaseAlreadyOpen) => {
            "is in use: one process at a time has a ledger".to_owned()
        }
        _ => format!("cannot be used: {error}"),
    };
    ConfigError::new("path", problem)
}
