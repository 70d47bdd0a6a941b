//! The one thread that writes, and what it shares with all who have something to write.

use std::collections::hash_map::Entry;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::store::{Batch, Opener, Store, Written};
use super::ticket::Ticket;
use crate::call::Key;
use crate::cost_guard::ledger::{HoldId, Ledger, MemoryLedger};
use crate::money::Usd;
use crate::refusal::BoxError;

/// How long the worker waits before it opens a file again that failed, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Shared {
    desk: Mutex<Desk>,
    work: Condvar,
    most_holds: usize,
}

/// What is to be written next, and what the file has or will have.
struct Desk {
    batch: Batch,
    /// Reservations whose end is not written yet. `None`: their end is on its way.
    live: FxHashMap<u64, Option<Vec<Written>>>,
    /// Places taken by calls that have no reservation yet.
    promised: usize,
    state: State,
    /// Who waits for the worker to be gone.
    closers: Vec<Arc<Ticket>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Working,
    /// The file failed: nothing is reserved until it is open again.
    Down,
    /// Everything is to be written, and then no more.
    Closing,
    Closed,
}

/// A place in the queue of the worker: who has one can write the end of a reservation at any time.
pub(super) struct Place(Option<Arc<Shared>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.desk().promised -= 1;
        }
    }
}

impl Shared {
    pub(super) fn new(most_holds: usize) -> Self {
        let desk = Desk {
            batch: Batch::default(),
            live: FxHashMap::default(),
            promised: 0,
            state: State::Working,
            closers: Vec::new(),
        };
        Self { desk: Mutex::new(desk), work: Condvar::new(), most_holds }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, if the file works and there is room for one more reservation.
    pub(super) fn place(self: &Arc<Self>) -> Option<Place> {
        let mut desk = self.desk();
        if desk.state != State::Working || desk.live.len() + desk.promised >= self.most_holds {
            return None;
        }
        desk.promised += 1;
        Some(Place(Some(self.clone())))
    }

    /// Has a reservation written; its ticket says when it is. `None`: the file has failed meanwhile.
    pub(super) fn open(&self, id: HoldId, legs: Vec<Written>, mut place: Place) -> Option<Arc<Ticket>> {
        let ticket = Arc::new(Ticket::default());
        let mut desk = self.desk();
        if place.0.take().is_some() {
            desk.promised -= 1;
        }
        if desk.state != State::Working {
            return None;
        }
        let Desk { batch, live, .. } = &mut *desk;
        match live.entry(id.get()) {
            // Asked before, and the answer was lost.
            Entry::Occupied(_) => batch.flushes.push(ticket.clone()),
            Entry::Vacant(free) => {
                free.insert(Some(legs.clone()));
                batch.opened.insert(id.get(), (legs, ticket.clone()));
            }
        }
        drop(desk);
        self.work.notify_one();
        Some(ticket)
    }

    /// Has the end of a reservation written, once.
    pub(super) fn close(&self, id: HoldId, amount: Usd) {
        let mut desk = self.desk();
        let Some(entries) = desk.live.get_mut(&id.get()).and_then(Option::take) else { return };
        if desk.batch.opened.remove(&id.get()).is_some() {
            // Whoever waited for it has left: no trace of the reservation is needed, only of what it cost.
            desk.live.remove(&id.get());
        } else {
            desk.batch.closed.push(id.get());
        }
        desk.batch.spend(entries, amount);
        drop(desk);
        self.work.notify_one();
    }

    pub(super) fn charge(&self, entries: Vec<Written>, amount: Usd) {
        self.desk().batch.spend(entries, amount);
        self.work.notify_one();
    }

    /// Both under one lock, so that what is settled after the reset in memory is written after it too.
    pub(super) fn reset<E>(
        &self,
        book: usize,
        key: &str,
        reset: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut desk = self.desk();
        reset()?;
        desk.batch.reset(book, Key::from(key));
        drop(desk);
        self.work.notify_one();
        Ok(())
    }

    /// A ticket for everything that was given to be written so far.
    pub(super) fn flush(&self) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::default());
        let mut desk = self.desk();
        if desk.state == State::Working {
            desk.batch.flushes.push(ticket.clone());
        } else {
            ticket.answer(false);
        }
        drop(desk);
        self.work.notify_one();
        ticket
    }

    /// The worker writes what there is, lets go of the file and ends.
    pub(super) fn shut(&self, closer: Option<&Arc<Ticket>>) {
        let mut desk = self.desk();
        match (desk.state, closer) {
            (State::Closed, Some(closer)) => closer.answer(true),
            (_, closer) => desk.closers.extend(closer.cloned()),
        }
        if desk.state != State::Closed {
            desk.state = State::Closing;
        }
        drop(desk);
        self.work.notify_one();
    }

    pub(super) fn holds(&self) -> usize {
        self.desk().live.len()
    }
}

/// Writes until the ledger is closed. Whatever comes in while one batch is written makes the next one.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) store: Option<Store>,
    pub(super) opener: Opener,
    pub(super) memory: MemoryLedger,
    /// The last batch that was written.
    pub(super) number: u64,
}

impl Worker {
    pub(super) fn run(mut self) {
        while let Some(batch) = self.next() {
            self.number += 1;
            match self.write(&batch) {
                Ok(()) => self.written(&batch),
                Err(_) => self.failed(batch),
            }
        }
        self.store = None;
        let mut desk = self.shared.desk();
        let saved = desk.batch.is_empty();
        desk.state = State::Closed;
        let (batch, closers) = (mem::take(&mut desk.batch), mem::take(&mut desk.closers));
        drop(desk);
        batch.answer(false);
        for closer in closers {
            closer.answer(saved);
        }
    }

    /// What is to be written, when there is something.
    fn next(&self) -> Option<Batch> {
        let mut desk = self.shared.desk();
        while desk.batch.is_empty() {
            if matches!(desk.state, State::Closing | State::Closed) {
                return None;
            }
            desk = self.shared.work.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        (desk.state != State::Closed).then(|| mem::take(&mut desk.batch))
    }

    fn write(&mut self, batch: &Batch) -> Result<(), BoxError> {
        let now = self.memory.now();
        let Some(store) = &mut self.store else { return Err("the file is not open".into()) };
        // A panic of the store is one of its failures: it must not leave everybody waiting.
        catch_unwind(AssertUnwindSafe(|| store.write(batch, self.number, now)))
            .unwrap_or_else(|_| Err("the store panicked".into()))
    }

    fn written(&self, batch: &Batch) {
        let mut desk = self.shared.desk();
        for id in &batch.closed {
            desk.live.remove(id);
        }
        drop(desk);
        batch.answer(true);
    }

    /// Refuses whoever waits, and then tries until all that was spent is written: nothing is lost.
    fn failed(&mut self, mut batch: Batch) {
        self.refuse(&batch);
        let refused: Vec<u64> = mem::take(&mut batch.opened).into_keys().collect();
        batch.flushes.clear();
        let mut pause = FIRST_PAUSE;
        loop {
            // An error may leave the store unusable; only one that is opened anew says what it has.
            self.store = None;
            let closing = self.pause(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            if self.try_again(&batch).is_ok() {
                self.written(&batch);
                let mut desk = self.shared.desk();
                desk.batch.closed.extend(&refused);
                if desk.state == State::Down {
                    desk.state = State::Working;
                }
                return;
            }
            if closing {
                // Holds stay in the file, and are charged by the rule when it is opened again.
                let mut desk = self.shared.desk();
                desk.state = State::Closed;
                desk.batch.closed.extend(batch.closed);
                return;
            }
        }
    }

    /// Opens the file, and writes the batch unless it has it already.
    fn try_again(&mut self, batch: &Batch) -> Result<(), BoxError> {
        let opened = catch_unwind(AssertUnwindSafe(|| Store::open(&self.opener, self.memory.budgets())));
        let store = opened.unwrap_or_else(|_| Err("the store panicked".into()))?;
        let landed = store.last_batch()? >= self.number;
        self.store = Some(store);
        if landed { Ok(()) } else { self.write(batch) }
    }

    fn refuse(&self, batch: &Batch) {
        let mut desk = self.shared.desk();
        if desk.state == State::Working {
            desk.state = State::Down;
        }
        let opened = mem::take(&mut desk.batch.opened);
        let flushes = mem::take(&mut desk.batch.flushes);
        let waiting = Batch { opened, flushes, ..Batch::default() };
        for id in batch.opened.keys().chain(waiting.opened.keys()) {
            desk.live.remove(id);
        }
        drop(desk);
        batch.answer(false);
        waiting.answer(false);
    }

    /// Waits, and says whether the ledger is to be closed.
    fn pause(&self, pause: Duration) -> bool {
        let desk = self.shared.desk();
        let waited = self
            .shared
            .work
            .wait_timeout_while(desk, pause, |desk| !matches!(desk.state, State::Closing | State::Closed));
        let (desk, _) = waited.unwrap_or_else(PoisonError::into_inner);
        matches!(desk.state, State::Closing | State::Closed)
    }
}
