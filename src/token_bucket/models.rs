//! Models of what threads may do to each other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use loom::thread;

use crate::sync::Arc;
use crate::token_bucket::bucket::{Bucket, Costs, NEVER, Rate, Rough, TICKS};
use crate::token_bucket::core::Core;
use crate::token_bucket::queue::{Joined, Polled, Waiter};

const SECOND: u64 = 1_000_000_000 * TICKS;

fn core(bursts: &[u64]) -> Arc<Core> {
    let rates: Vec<_> = bursts.iter().map(|&burst| Rate { interval: SECOND, burst }).collect();
    Arc::new(Core::new(Bucket::new(rates[0], &rates[1..]), 8))
}

fn few(costs: &[u64]) -> Costs {
    Costs::from_fn(costs.len(), |index| costs[index])
}

fn waiter(costs: &[u64]) -> Waiter {
    Waiter::new(few(costs), NEVER, 0)
}

/// Wakers run in the thread that wakes; a plain counter is enough to see that they did.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn loom_two_threads_at_the_boundary_take_no_more_than_there_is() {
    loom::model(|| {
        let core = core(&[1]);
        let other = core.clone();
        let taker = thread::spawn(move || other.bucket.take(0, &few(&[1])).is_ok());
        let here = core.bucket.take(0, &few(&[1])).is_ok();
        assert!(here ^ taker.join().unwrap(), "exactly one passes");
    });
}

#[test]
fn loom_two_dimensions_are_taken_all_or_none() {
    loom::model(|| {
        let core = core(&[2, 1]);
        let other = core.clone();
        let taker = thread::spawn(move || u64::from(other.bucket.take(0, &few(&[1, 1])).is_ok()));
        let passed = u64::from(core.bucket.take(0, &few(&[1, 1])).is_ok()) + taker.join().unwrap();
        assert_eq!(passed, 1);
        let first = core.bucket.meter(0).unwrap();
        assert_eq!(first.rate().level(first.tat(), 0), 1, "what was undone is back");
    });
}

#[test]
fn loom_two_dimensions_are_taken_all_or_none_at_a_rough_instant_too() {
    loom::model(|| {
        let core = core(&[2, 1]);
        let rough = Rough { earliest: 0, latest: 0 };
        let other = core.clone();
        let taker = thread::spawn(move || u64::from(other.bucket.take_roughly(rough, &few(&[1, 1]))));
        let passed = u64::from(core.bucket.take_roughly(rough, &few(&[1, 1]))) + taker.join().unwrap();
        assert_eq!(passed, 1);
        let first = core.bucket.meter(0).unwrap();
        assert_eq!(first.rate().level(first.tat(), 0), 1, "what was undone is back");
    });
}

#[test]
fn loom_a_refund_is_not_missed_by_who_begins_to_wait() {
    loom::model(|| {
        let core = core(&[1]);
        core.take(0, &few(&[1])).unwrap().unwrap();
        let other = core.clone();
        let giver = thread::spawn(move || other.give_back_all(0, 0, &few(&[1]), false));
        let joined = core.join(0, waiter(&[1])).unwrap();
        let ticket = match joined {
            Joined::Granted(_) => return giver.join().unwrap(),
            Joined::Waits { ticket, .. } => ticket,
            Joined::Refused(_) => unreachable!("it waits for ever"),
        };
        let count = std::sync::Arc::new(Count::default());
        let polled = core.poll(0, ticket, Waker::from(count.clone()));
        giver.join().unwrap();
        let served = matches!(polled, Polled::Granted(..));
        assert!(served || count.0.load(Ordering::SeqCst) > 0, "neither served nor woken");
        if !served {
            assert!(matches!(core.poll(0, ticket, Waker::noop().clone()), Polled::Granted(..)));
        }
    });
}

#[test]
fn loom_a_waiter_dropped_as_it_is_granted_gives_back_what_it_got() {
    loom::model(|| {
        let core = core(&[1]);
        core.take(0, &few(&[1])).unwrap().unwrap();
        let Ok(Joined::Waits { ticket, .. }) = core.join(0, waiter(&[1])) else { panic!("waits") };
        let other = core.clone();
        let giver = thread::spawn(move || other.give_back_all(0, 0, &few(&[1]), false));
        core.leave(0, ticket, false);
        giver.join().unwrap();
        assert_eq!(core.waiters(), 0);
        assert!(core.take(0, &few(&[1])).unwrap().is_ok(), "all is back");
        assert!(core.take(0, &few(&[1])).unwrap().is_err(), "and no more");
    });
}

#[test]
fn loom_who_is_behind_one_that_leaves_is_served() {
    loom::model(|| {
        let core = core(&[3]);
        core.take(0, &few(&[3])).unwrap().unwrap();
        let Ok(Joined::Waits { ticket: heavy, .. }) = core.join(0, waiter(&[3])) else { panic!("waits") };
        let Ok(Joined::Waits { ticket: light, .. }) = core.join(0, waiter(&[1])) else { panic!("waits") };
        let count = std::sync::Arc::new(Count::default());
        assert!(matches!(core.poll(0, light, Waker::from(count.clone())), Polled::Pending(_)));
        let other = core.clone();
        let giver = thread::spawn(move || other.settle(0, 0, (0, 3), 2, false));
        core.leave(0, heavy, false);
        giver.join().unwrap();
        assert!(count.0.load(Ordering::SeqCst) > 0, "one unit is there, and nobody is before it");
        assert!(matches!(core.poll(0, light, Waker::noop().clone()), Polled::Granted(..)));
    });
}
