//! The slots by themselves: what is seen of them from outside only in a race.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use crate::bulkhead::slots::{Entry, Fate, Slots, Ticket};
use crate::call::Priority;
use crate::time;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), count.into())
}

fn queued(slots: &Slots) -> Ticket {
    match slots.enter(Priority::default(), None) {
        Entry::Queued(ticket) => ticket,
        Entry::Taken | Entry::Full => panic!("there is a place, and no slot"),
    }
}

#[test]
fn a_slot_that_came_free_on_the_way_to_the_line_is_taken_and_not_waited_for() {
    let slots = Slots::new(1, None);
    assert!(matches!(slots.enter(Priority::default(), None), Entry::Taken));
    assert_eq!((slots.in_flight(), slots.queued()), (1, 0));
}

#[test]
fn who_waits_is_woken_once_by_its_newest_waker_when_its_slot_comes() {
    let slots = Slots::new(1, None);
    assert!(slots.try_take());
    let ticket = queued(&slots);
    let ((old, old_waker), (new, new_waker)) = (counted(), counted());
    assert_eq!(slots.poll(&ticket, &old_waker), Fate::Waiting);
    assert_eq!(slots.poll(&ticket, &new_waker), Fate::Waiting);
    assert_eq!((old.woken(), new.woken()), (0, 0));
    slots.give_back(time::now);
    assert_eq!((old.woken(), new.woken()), (0, 1));
    assert_eq!(slots.poll(&ticket, &new_waker), Fate::Granted);
    assert_eq!((slots.in_flight(), slots.queued()), (1, 0));
}

#[test]
fn all_that_wait_are_woken_when_the_limit_becomes_zero() {
    let slots = Slots::new(1, Some(2));
    assert!(slots.try_take());
    let tickets = [queued(&slots), queued(&slots)];
    let (count, waker) = counted();
    assert!(tickets.iter().all(|ticket| slots.poll(ticket, &waker) == Fate::Waiting));
    slots.set_limit(0, time::now);
    assert_eq!(count.woken(), 2);
    assert!(tickets.iter().all(|ticket| slots.poll(ticket, &waker) == Fate::Closed));
}

#[test]
fn a_slot_that_nobody_waits_for_comes_back_without_a_look_at_the_clock() {
    let slots = Slots::new(1, None);
    assert!(slots.try_take());
    slots.give_back(|| panic!("the clock was read"));
    assert_eq!(slots.in_flight(), 0);
}
