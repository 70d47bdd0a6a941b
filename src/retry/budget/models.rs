//! Models of the bucket under every order of its steps.

use loom::thread;

use super::Budget;
use super::bucket::{Bucket, TOKEN, Terms};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

const NO_TIME: Terms = Terms { deposit: 200, per_second: 0, cap: 2 * TOKEN };

#[test]
fn loom_no_overdraft_however_many_take() {
    loom::model(|| {
        let bucket = Arc::new(Bucket::full(&NO_TIME));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let bucket = bucket.clone();
                thread::spawn(move || (0..2).filter(|_| bucket.take(&NO_TIME, || 0).is_some()).count())
            })
            .collect();
        let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(taken, 2);
        assert_eq!(bucket.left(&NO_TIME, || 0), 0);
    });
}

#[test]
fn loom_deposits_and_takes_conserve_the_total() {
    loom::model(|| {
        let bucket = Arc::new(Bucket::full(&NO_TIME));
        assert!(bucket.take(&NO_TIME, || 0).is_some());
        let other = bucket.clone();
        let depositor = thread::spawn(move || {
            other.deposit(&NO_TIME, || 0);
            other.deposit(&NO_TIME, || 0);
        });
        assert!(bucket.take(&NO_TIME, || 0).is_some());
        depositor.join().unwrap();
        assert_eq!(bucket.left(&NO_TIME, || 0), 400, "2000 - 2 × 1000 + 2 × 200");
    });
}

#[test]
fn loom_a_span_of_time_is_paid_out_once() {
    const TIMED: Terms = Terms { deposit: 0, per_second: 1000, cap: 4 * TOKEN };
    loom::model(|| {
        let bucket = Arc::new(Bucket::full(&TIMED));
        while bucket.take(&TIMED, || 0).is_some() {}
        let other = bucket.clone();
        let taker = thread::spawn(move || usize::from(other.take(&TIMED, || 1000).is_some()));
        let taken = usize::from(bucket.take(&TIMED, || 1000).is_some()) + taker.join().unwrap();
        assert_eq!(taken, 1, "one second pays for one token");
    });
}

#[test]
fn loom_no_deposit_overlooks_a_bucket_that_was_tapped() {
    loom::model(|| {
        let budget = Budget::builder().ratio(0.5).reserve(1).build().unwrap();
        let other = budget.clone();
        let taker = thread::spawn(move || {
            assert!(other.try_take(None));
            other.arrive(None);
        });
        budget.arrive(None);
        taker.join().unwrap();
        let left = budget.left_in_thousandths(None);
        assert!(left == 500 || left == 1000, "its own deposit counts, the other if it came after: {left}");
        assert_eq!(budget.0.tapped.load(Ordering::Relaxed), usize::from(left < 1000));
    });
}
