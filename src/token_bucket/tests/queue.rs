//! The line, with time in hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use crate::token_bucket::bucket::{Bucket, NEVER, Rate, TICKS};
use crate::token_bucket::core::Core;
use crate::token_bucket::queue::{Joined, Polled, Waiter};
use crate::token_bucket::tests::support::few;

const SECOND: u64 = 1_000_000_000 * TICKS;

/// One unit a second, this many at once.
fn core(burst: u64) -> Core {
    Core::new(Bucket::new(Rate { interval: SECOND, burst }, &[]), 100)
}

fn waiter(cost: u64) -> Waiter {
    Waiter::new(few(&[cost]), NEVER, u32::MAX / 2)
}

fn ticket(joined: Joined) -> u64 {
    match joined {
        Joined::Waits { ticket, .. } => ticket,
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), count.into())
}

fn drained(burst: u64) -> Core {
    let core = core(burst);
    core.take(0, &few(&[burst])).unwrap().unwrap();
    core
}

#[test]
fn each_is_told_when_it_is_served_and_then_is() {
    let core = drained(10);
    let times: Vec<_> = [3, 10, 1]
        .map(|cost| match core.join(0, waiter(cost)).unwrap() {
            Joined::Waits { ticket, at } => (ticket, at),
            other => panic!("{other:?}"),
        })
        .into();
    assert_eq!(times.iter().map(|(_, at)| at / SECOND).collect::<Vec<_>>(), [3, 13, 14]);
    for (ticket, at) in times {
        assert!(matches!(core.poll(at - 1, ticket, Waker::noop().clone()), Polled::Pending(_)));
        assert!(matches!(core.poll(at, ticket, Waker::noop().clone()), Polled::Granted(..)));
    }
}

#[test]
fn a_newcomer_does_not_overtake() {
    let core = drained(10);
    let heavy = ticket(core.join(0, waiter(10)).unwrap());
    assert!(core.take(5 * SECOND, &few(&[1])).is_none(), "five units are there, but somebody waits for ten");
    let Joined::Waits { at, .. } = core.join(5 * SECOND, waiter(1)).unwrap() else { panic!("waits") };
    assert_eq!(at, 11 * SECOND);
    assert!(matches!(core.poll(10 * SECOND, heavy, Waker::noop().clone()), Polled::Granted(..)));
}

#[test]
fn a_waiter_whose_task_sleeps_on_holds_up_nobody() {
    let core = drained(1);
    let first = ticket(core.join(0, waiter(1)).unwrap());
    let second = ticket(core.join(0, waiter(1)).unwrap());
    assert!(
        matches!(core.poll(SECOND, second, Waker::noop().clone()), Polled::Pending(at) if at == 2 * SECOND)
    );
    assert!(matches!(core.poll(2 * SECOND, second, Waker::noop().clone()), Polled::Granted(..)));
    assert!(matches!(core.poll(9 * SECOND, first, Waker::noop().clone()), Polled::Granted(..)));
}

#[test]
fn those_behind_one_who_leaves_move_up_and_are_woken() {
    let core = drained(10);
    let heavy = ticket(core.join(0, waiter(10)).unwrap());
    let light = ticket(core.join(0, waiter(2)).unwrap());
    let (count, waker) = counted();
    assert!(matches!(core.poll(3 * SECOND, light, waker.clone()), Polled::Pending(at) if at == 12 * SECOND));
    core.leave(3 * SECOND, heavy, false);
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "three units are there, and it wants two");
    assert!(matches!(core.poll(3 * SECOND, light, waker), Polled::Granted(..)));
    assert_eq!(core.waiters(), 0);
}

#[test]
fn a_refund_wakes_the_first_in_line() {
    let core = core(10);
    core.take(0, &few(&[10])).unwrap().unwrap();
    let first = ticket(core.join(0, waiter(5)).unwrap());
    let (count, waker) = counted();
    assert!(matches!(core.poll(0, first, waker), Polled::Pending(_)));
    core.settle(0, 0, (0, 10), 4, false);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(matches!(core.poll(0, first, Waker::noop().clone()), Polled::Granted(..)));
}

#[test]
fn a_granted_place_that_is_given_up_comes_back() {
    let core = drained(1);
    let first = ticket(core.join(0, waiter(1)).unwrap());
    let second = ticket(core.join(0, waiter(1)).unwrap());
    let (count, waker) = counted();
    assert!(matches!(core.poll(0, second, waker), Polled::Pending(_)));
    // The second one's poll grants the first in its name, and then the first leaves.
    assert!(matches!(core.poll(SECOND, second, counted().1), Polled::Pending(_)));
    core.leave(SECOND, first, false);
    assert!(matches!(core.poll(SECOND, second, Waker::noop().clone()), Polled::Granted(..)));
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "woken as it became the first");
    assert_eq!((core.waiters(), core.take(SECOND, &few(&[1])).unwrap().is_err()), (0, true));
}

#[test]
fn whoever_would_be_served_too_late_is_refused_at_once_and_takes_no_place() {
    let core = drained(10);
    let mut late = waiter(5);
    late.latest = 5 * SECOND - 1;
    let Joined::Refused(short) = core.join(0, late).unwrap() else { panic!("too late") };
    assert_eq!(short.wait, 5 * SECOND);
    assert_eq!(core.waiters(), 0);
    let mut just = waiter(5);
    just.latest = 5 * SECOND;
    assert!(matches!(core.join(0, just).unwrap(), Joined::Waits { .. }));
}

#[test]
fn a_debt_refuses_those_who_can_no_longer_be_served_in_time() {
    let core = core(10);
    core.take(0, &few(&[10])).unwrap().unwrap();
    let mut patient = waiter(5);
    patient.latest = 30 * SECOND;
    let mut hasty = waiter(5);
    hasty.latest = 12 * SECOND;
    let patient = ticket(core.join(0, patient).unwrap());
    let hasty = ticket(core.join(0, hasty).unwrap());
    let (count, waker) = counted();
    assert!(matches!(core.poll(0, hasty, waker), Polled::Pending(_)));
    core.settle(0, 0, (0, 10), 20, false);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    let Polled::Refused(short) = core.poll(0, hasty, Waker::noop().clone()) else { panic!("too late") };
    assert_eq!(short.wait, 20 * SECOND, "ten of debt, five before it, five of its own");
    assert!(matches!(core.poll(0, patient, Waker::noop().clone()), Polled::Pending(at) if at == 15 * SECOND));
}

#[test]
fn there_are_no_more_waiters_than_the_bound() {
    let core = Core::new(Bucket::new(Rate { interval: SECOND, burst: 1 }, &[]), 2);
    core.take(0, &few(&[1])).unwrap().unwrap();
    core.join(0, waiter(1)).unwrap();
    core.join(0, waiter(1)).unwrap();
    let full = core.join(0, waiter(1)).unwrap_err();
    assert_eq!((full.wait, core.waiters()), (3 * SECOND, 2));
}

#[test]
fn after_a_pause_those_who_waited_come_one_by_one_and_not_as_a_herd() {
    let core = core(100);
    core.pause(0, 10 * SECOND, 4 * SECOND);
    let tickets: Vec<_> = (0..20_u32)
        .map(|index| {
            let mut waiter = waiter(1);
            // Any numbers will do that are spread over the range.
            waiter.jitter = index.wrapping_mul(0x9E37_79B9);
            ticket(core.join(SECOND, waiter).unwrap())
        })
        .collect();
    let mut waiting = tickets;
    let mut most = 0;
    for tick in 0..=140_u64 {
        let now = tick * SECOND / 10;
        let before = waiting.len();
        waiting.retain(|&ticket| matches!(core.poll(now, ticket, Waker::noop().clone()), Polled::Pending(_)));
        let came = before - waiting.len();
        assert!(came == 0 || now >= 10 * SECOND, "nobody comes before the pause is over");
        most = most.max(came);
    }
    assert!(waiting.is_empty(), "{} still wait after pause and spread", waiting.len());
    assert!(most <= 5, "{most} of 20 came at once");
}

#[test]
fn resuming_serves_those_who_wait() {
    let core = core(10);
    core.pause(0, NEVER, 0);
    let first = ticket(core.join(0, waiter(1)).unwrap());
    assert!(matches!(core.poll(SECOND, first, Waker::noop().clone()), Polled::Pending(NEVER)));
    core.resume(SECOND);
    assert!(matches!(core.poll(SECOND, first, Waker::noop().clone()), Polled::Granted(..)));
}
