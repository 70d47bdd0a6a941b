//! The slots: one atomic word while nobody waits, and a queue under a lock once somebody does.
//!
//! What holds whenever the lock is free:
//!
//! 1. `queued` in the word is the number of waiters in the queue. Only a holder of the lock changes it.
//! 2. Somebody waits only while `in_flight >= limit`, or while somebody who made room, by giving back or by a higher limit,
//!    is about to take the lock and to give it to those who wait.
//! 3. While `queued > 0` only a holder of the lock raises `in_flight`. So a newcomer never overtakes, and a slot that was
//!    given back cannot be taken by anybody but the next in line.
//! 4. Each slot counted in `in_flight` belongs to exactly one permit, or to one waiter whose fate is [`Fate::Granted`] and
//!    who has neither seen it nor left.
//!
//! A waiter's fate is written once, under the lock. So one who leaves under the lock knows for certain whether it was
//! granted, and hands the slot on if it was.

use std::ops::Deref;
use std::task::Waker;

use super::queue::{Next, Place, Queue};
use crate::call::Priority;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, lock};
use crate::time::Instant;

pub(super) struct Slots {
    /// `[queued: 32 | in_flight: 32]`: admission looks at both in one step.
    word: Alone,
    /// Written under the lock.
    limit: AtomicU32,
    /// Whether somebody waits: what readiness asks, so that it leaves the word to those who change it. Written under the
    /// lock, and of one moment like every look at the word.
    waits: AtomicBool,
    /// How many may wait; `None` is as many as may run.
    queue: Option<u32>,
    line: Mutex<Queue<Waiter>>,
}

/// On lines of its own: all else here is only read, as long as nobody waits.
#[repr(align(128))]
struct Alone(AtomicU64);

impl Deref for Alone {
    type Target = AtomicU64;

    #[inline]
    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

/// A waiter, as the queue sees it.
struct Waiter {
    /// `None` until it is polled for the first time.
    waker: Option<Waker>,
    fate: Arc<AtomicU8>,
}

/// A waiter's own hold on its place. It must be given to [`Slots::leave`], unless its fate was seen.
pub(super) struct Ticket {
    place: Place,
    fate: Arc<AtomicU8>,
}

/// What became of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Waiting,
    /// A slot is its own.
    Granted,
    /// Its turn came too late.
    Late,
    /// The limit became zero.
    Closed,
}

pub(super) enum Entry {
    Taken,
    Queued(Ticket),
    Full,
}

#[derive(Clone, Copy)]
struct Word(u64);

const RUNNING: u64 = 1;
const QUEUED: u64 = 1 << 32;

impl Word {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
    const fn in_flight(self) -> u32 {
        self.0 as u32
    }

    const fn queued(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn has_room(self, limit: u32) -> bool {
        self.queued() == 0 && self.in_flight() < limit
    }
}

impl Slots {
    pub(super) fn new(limit: u32, queue: Option<u32>) -> Self {
        Self {
            word: Alone(AtomicU64::new(0)),
            limit: AtomicU32::new(limit),
            waits: AtomicBool::new(false),
            queue,
            line: Mutex::new(Queue::new()),
        }
    }

    #[inline]
    fn word(&self) -> Word {
        #[cfg(all(test, seawall_loom))]
        super::models::see(|| self.word.fetch_add(0, Ordering::Relaxed));
        Word(self.word.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.word().in_flight()
    }

    pub(super) fn queued(&self) -> u32 {
        self.word().queued()
    }

    /// Whether neither a slot nor a place in the queue is free.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let limit = self.limit();
        let queue = self.queue.unwrap_or(limit);
        // A queue is full only if somebody is in it.
        let may_be = limit == 0 || queue == 0 || self.waits.load(Ordering::Relaxed);
        may_be && self.refuses(self.word(), limit)
    }

    /// Called by who holds the lock and has changed the queue.
    fn changed(&self) {
        self.waits.store(self.word().queued() > 0, Ordering::Relaxed);
    }

    #[inline]
    fn refuses(&self, word: Word, limit: u32) -> bool {
        limit == 0 || (word.in_flight() >= limit && word.queued() >= self.queue.unwrap_or(limit))
    }

    /// Takes a slot if one is free and nobody waits for it.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        let mut word = self.word();
        while word.has_room(self.limit()) {
            // Acquires what those did who gave the slot back, as a lock would.
            let taken = self.word.compare_exchange_weak(
                word.0,
                word.0 + RUNNING,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match taken {
                Ok(_) => return true,
                Err(now) => word = Word(now),
            }
        }
        false
    }

    /// Takes a slot, or else a place in the queue.
    pub(super) fn enter(&self, priority: Priority, by: Option<Instant>) -> Entry {
        let fate = Arc::new(AtomicU8::new(Fate::Waiting as u8));
        let mut line = lock(&self.line);
        let limit = self.limit();
        loop {
            let word = self.word();
            let room = word.has_room(limit);
            if !room && self.refuses(word, limit) {
                return Entry::Full;
            }
            // The word must still be what was judged: a slot given back meanwhile must not be waited for.
            let step = if room { RUNNING } else { QUEUED };
            let entered =
                self.word.compare_exchange(word.0, word.0 + step, Ordering::Acquire, Ordering::Relaxed);
            match entered {
                Err(_) => {}
                Ok(_) if room => return Entry::Taken,
                Ok(_) => {
                    self.changed();
                    let waiter = Waiter { waker: None, fate: fate.clone() };
                    return Entry::Queued(Ticket { place: line.push(priority, by, waiter), fate });
                }
            }
        }
    }

    /// Gives a slot back: to the next in line, if there is one. The clock is read only then.
    #[inline]
    pub(super) fn give_back(&self, now: impl FnOnce() -> Instant) {
        // In one step, and without a look before it: the look would fetch the word twice from who changed it last.
        // Releases to whoever takes the slot what was done while it was held.
        if Word(self.word.fetch_sub(RUNNING, Ordering::Release)).queued() > 0 {
            self.hand_on(now());
        }
    }

    /// Serves those who waited when a slot was given back.
    #[cold]
    fn hand_on(&self, now: Instant) {
        let woken = {
            let mut line = lock(&self.line);
            let woken = self.serve(&mut line, now);
            self.changed();
            woken
        };
        wake(woken);
    }

    /// Changes the limit, and admits as many waiters as it makes room for. Zero sends them away.
    pub(super) fn set_limit(&self, limit: u32, now: impl FnOnce() -> Instant) {
        let now = now();
        let woken = {
            let mut line = lock(&self.line);
            self.limit.store(limit, Ordering::Relaxed);
            let woken = if limit == 0 { self.send_away(&mut line) } else { self.serve(&mut line, now) };
            self.changed();
            woken
        };
        wake(woken);
    }

    /// Gives free slots to waiters. Those that can no longer make use of one are told so on the way.
    fn serve(&self, line: &mut Queue<Waiter>, now: Instant) -> Vec<Waker> {
        let limit = self.limit();
        let mut woken = Vec::new();
        loop {
            let word = self.word();
            if word.queued() == 0 || word.in_flight() >= limit {
                return woken;
            }
            match line.pop(now) {
                Some(Next::Turn(waiter)) => {
                    self.word.fetch_sub(QUEUED - RUNNING, Ordering::AcqRel);
                    woken.extend(waiter.decide(Fate::Granted));
                }
                Some(Next::Late(waiter)) => {
                    self.word.fetch_sub(QUEUED, Ordering::AcqRel);
                    woken.extend(waiter.decide(Fate::Late));
                }
                None => return woken,
            }
        }
    }

    fn send_away(&self, line: &mut Queue<Waiter>) -> Vec<Waker> {
        let leaving = line.clear();
        let mut woken = Vec::new();
        for waiter in leaving {
            self.word.fetch_sub(QUEUED, Ordering::AcqRel);
            woken.extend(waiter.decide(Fate::Closed));
        }
        woken
    }

    /// What became of the waiter; as long as it waits, this waker is told.
    pub(super) fn poll(&self, ticket: &Ticket, waker: &Waker) -> Fate {
        let fate = ticket.fate();
        if fate != Fate::Waiting {
            return fate;
        }
        // A waker is the executor's code: cloned before the lock is taken, and the old one dropped after it is free.
        let waker = waker.clone();
        let mut line = lock(&self.line);
        let old = line.get_mut(ticket.place).and_then(|waiter| waiter.waker.replace(waker));
        let fate = ticket.fate();
        drop(line);
        drop(old);
        fate
    }

    /// Gives up the place, and says what had become of the waiter before: a slot that was granted is still its own.
    pub(super) fn leave(&self, ticket: &Ticket) -> Fate {
        let mut line = lock(&self.line);
        let left = line.remove(ticket.place);
        if left.is_some() {
            self.word.fetch_sub(QUEUED, Ordering::AcqRel);
            self.changed();
        }
        let fate = ticket.fate();
        drop(line);
        drop(left);
        fate
    }
}

impl Waiter {
    fn decide(self, fate: Fate) -> Option<Waker> {
        self.fate.store(fate as u8, Ordering::Release);
        self.waker
    }
}

impl Ticket {
    fn fate(&self) -> Fate {
        match self.fate.load(Ordering::Acquire) {
            fate if fate == Fate::Granted as u8 => Fate::Granted,
            fate if fate == Fate::Late as u8 => Fate::Late,
            fate if fate == Fate::Closed as u8 => Fate::Closed,
            _ => Fate::Waiting,
        }
    }
}

/// Called when the lock is free.
fn wake(woken: Vec<Waker>) {
    for waker in woken {
        waker.wake();
    }
}
