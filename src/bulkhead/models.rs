//! Every interleaving of two or three threads at the slots.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize as Count, Ordering::SeqCst};
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

use super::slots::{Entry, Fate, Slots, Ticket};
use crate::call::Priority;
use crate::time;

thread_local! {
    static AS_WRITES: Cell<bool> = const { Cell::new(false) };
}

/// Runs a model twice.
///
/// The checker remembers only the last access to an atomic. A thread that loads it and then changes it so hides that it
/// raced with an earlier load of another thread, and the other order is never tried. Where each load comes with a
/// write that changes nothing, all orders are; but no load can then see an old value, as a relaxed one may. So: once
/// with such writes, once without.
fn explore(model: impl Fn() + Copy + Send + Sync + 'static) {
    for as_writes in [false, true] {
        AS_WRITES.set(as_writes);
        loom::model(model);
    }
}

/// Called before each load of the word.
pub(super) fn see<T>(write: impl FnOnce() -> T) {
    if AS_WRITES.get() {
        write();
    }
}

/// Slots of which one is taken.
fn one_taken(limit: u32) -> Arc<Slots> {
    let slots = Arc::new(Slots::new(limit, None));
    assert!(slots.try_take());
    slots
}

fn enter(slots: &Slots) -> Entry {
    slots.enter(Priority::default(), None)
}

fn queued(slots: &Slots) -> Ticket {
    let Entry::Queued(ticket) = enter(slots) else { panic!("the slot is taken and the queue has room") };
    ticket
}

fn give_back(slots: &Slots) {
    slots.give_back(time::now);
}

/// What the drop of a wait does.
fn drop_wait(slots: &Slots, ticket: &Ticket) {
    if slots.leave(ticket) == Fate::Granted {
        give_back(slots);
    }
}

fn assert_at_rest(slots: &Slots) {
    assert_eq!((slots.in_flight(), slots.queued()), (0, 0));
}

struct Woken(Count);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn loom_a_slot_is_never_two_calls_at_once() {
    explore(|| {
        let slots = Arc::new(Slots::new(1, None));
        let inside = Arc::new(AtomicUsize::new(0));
        let run = |slots: &Slots, inside: &AtomicUsize| {
            if slots.try_take() {
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two calls in one slot");
                inside.fetch_sub(1, SeqCst);
                give_back(slots);
            }
        };
        let other = {
            let (slots, inside) = (slots.clone(), inside.clone());
            thread::spawn(move || run(&slots, &inside))
        };
        run(&slots, &inside);
        other.join().unwrap();
        assert_at_rest(&slots);
    });
}

#[test]
fn loom_a_newcomer_never_overtakes_one_who_waits() {
    explore(|| {
        let slots = one_taken(1);
        let ticket = queued(&slots);
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        assert!(!slots.try_take(), "the slot belongs to the waiter all the time");
        giver.join().unwrap();
        assert_eq!(slots.leave(&ticket), Fate::Granted);
    });
}

#[test]
fn loom_a_slot_given_back_while_a_call_enqueues_is_not_missed() {
    explore(|| {
        let slots = one_taken(1);
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        let entry = enter(&slots);
        giver.join().unwrap();
        if let Entry::Queued(ticket) = entry {
            assert_eq!(slots.leave(&ticket), Fate::Granted, "nobody else is left to wake it");
        }
        give_back(&slots);
        assert_at_rest(&slots);
    });
}

#[test]
fn loom_a_limit_raised_while_a_call_enqueues_is_not_missed() {
    explore(|| {
        let slots = one_taken(1);
        let raiser = {
            let slots = slots.clone();
            thread::spawn(move || slots.set_limit(2, time::now))
        };
        let entry = enter(&slots);
        raiser.join().unwrap();
        if let Entry::Queued(ticket) = entry {
            assert_eq!(slots.leave(&ticket), Fate::Granted, "the higher limit has room for it");
        }
        assert_eq!((slots.in_flight(), slots.queued()), (2, 0));
    });
}

#[test]
fn loom_a_waiter_dropped_at_the_instant_it_is_granted_hands_its_slot_on() {
    explore(|| {
        let slots = one_taken(1);
        slots.set_limit(1, time::now);
        let first = queued(&slots);
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        drop_wait(&slots, &first);
        giver.join().unwrap();
        assert_at_rest(&slots);
        assert!(slots.try_take(), "the capacity is whole");
    });
}

#[test]
fn loom_the_next_in_line_gets_the_slot_of_one_who_leaves_as_it_is_granted() {
    explore(|| {
        let slots = Arc::new(Slots::new(1, Some(2)));
        assert!(slots.try_take());
        let (first, second) = (queued(&slots), queued(&slots));
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        drop_wait(&slots, &first);
        giver.join().unwrap();
        assert_eq!(slots.leave(&second), Fate::Granted, "a slot was free, and it was the only one to wait");
        give_back(&slots);
        assert_at_rest(&slots);
    });
}

#[test]
fn loom_a_waiter_that_saw_no_slot_is_woken_for_it() {
    explore(|| {
        let slots = one_taken(1);
        let ticket = queued(&slots);
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        let woken = std::sync::Arc::new(Woken(Count::new(0)));
        let seen = slots.poll(&ticket, &Waker::from(woken.clone()));
        giver.join().unwrap();
        if seen == Fate::Waiting {
            assert_eq!(woken.0.load(SeqCst), 1, "it went to sleep, and nobody else will wake it");
        }
        assert_eq!(slots.poll(&ticket, &Waker::from(woken)), Fate::Granted);
        give_back(&slots);
        assert_at_rest(&slots);
    });
}

#[test]
fn loom_closing_races_with_a_slot_given_back_and_loses_nobody() {
    explore(|| {
        let slots = one_taken(1);
        let ticket = queued(&slots);
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        slots.set_limit(0, time::now);
        giver.join().unwrap();
        match slots.leave(&ticket) {
            Fate::Granted => give_back(&slots),
            fate => assert_eq!(fate, Fate::Closed),
        }
        assert_at_rest(&slots);
    });
}

#[test]
fn loom_two_slots_given_back_at_once_serve_two_waiters() {
    explore(|| {
        let slots = Arc::new(Slots::new(2, None));
        assert!(slots.try_take() && slots.try_take());
        let (first, second) = (queued(&slots), queued(&slots));
        let giver = {
            let slots = slots.clone();
            thread::spawn(move || give_back(&slots))
        };
        give_back(&slots);
        giver.join().unwrap();
        assert_eq!([slots.leave(&first), slots.leave(&second)], [Fate::Granted; 2]);
        assert_eq!((slots.in_flight(), slots.queued()), (2, 0));
    });
}
