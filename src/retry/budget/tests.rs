use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::bucket::{Bucket, TOKEN, Terms};
use super::*;

fn takes(budget: &Budget, upstream: Option<&Key>) -> usize {
    (0..100_000).take_while(|_| budget.try_take(upstream)).count()
}

fn of(ratio: f64, reserve: u32) -> Budget {
    Budget::builder().ratio(ratio).reserve(reserve).build().unwrap()
}

#[test]
fn ratios_are_exact_to_a_thousandth() {
    for (ratio, per_thousand) in
        [(0.0, 0), (0.001, 1), (0.1, 100), (0.3, 300), (0.6, 600), (0.7, 700), (0.9, 900), (1.0, 1000)]
    {
        let budget = of(ratio, 10_000);
        assert_eq!(takes(&budget, None), 10_000);
        (0..1000).for_each(|_| budget.arrive(None));
        assert_eq!(takes(&budget, None), per_thousand, "ratio {ratio}");
    }
}

#[test]
fn exact_under_eight_threads_without_an_overdraft() {
    let budget = of(0.3, 10_000);
    assert_eq!(takes(&budget, None), 10_000);
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2500 {
                    budget.arrive(None);
                    if budget.try_take(None) {
                        taken.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let (taken, left) = (taken.load(Relaxed), budget.left_in_thousandths(None));
    assert_eq!(taken * 1000 + left as usize, 20_000 * 300, "nothing lost, nothing made up");
}

#[test]
fn b022_a_spent_budget_comes_back_with_calls_that_succeed() {
    let budget = Budget::default();
    assert_eq!(takes(&budget, None), 10);
    assert!(!budget.try_take(None), "and is not waited for");
    (0..1000).for_each(|_| budget.arrive(None));
    assert_eq!(budget.left_in_thousandths(None), 10_000, "up to its reserve");
    assert!(budget.try_take(None));
}

#[tokio::test(start_paused = true)]
async fn b022_time_refills_as_configured_and_any_idle_time_is_one_step() {
    let budget = Budget::builder().ratio(0.0).reserve(5).per_second(0.5).build().unwrap();
    assert_eq!(takes(&budget, None), 5);
    tokio::time::advance(Duration::from_millis(1999)).await;
    assert!(!budget.try_take(None), "1 ms too early");
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(budget.try_take(None));
    tokio::time::advance(Duration::from_secs(40 * 365 * 86_400)).await;
    assert_eq!(takes(&budget, None), 5, "full, and no more");
}

#[test]
fn time_that_passes_in_small_steps_pays_the_same_as_in_one() {
    let terms = Terms { deposit: 0, per_second: 333, cap: 100 * TOKEN };
    let bucket = Bucket::full(&terms);
    (0..100).for_each(|_| assert!(bucket.take(&terms, || 0).is_some()));
    let taken = (0..=30_000).filter(|&now| bucket.take(&terms, || now).is_some()).count();
    assert_eq!(taken, 9, "9.99 tokens in 30 s");
    assert!(
        bucket.take(&terms, || 10).is_none(),
        "a clock that another thread has read earlier pays nothing"
    );
}

#[test]
fn time_while_it_was_full_is_not_saved_up() {
    let terms = Terms { deposit: 0, per_second: 1000, cap: TOKEN };
    let bucket = Bucket::full(&terms);
    assert!(bucket.take(&terms, || 3_600_000).is_some());
    assert!(bucket.take(&terms, || 3_600_000).is_none());
    assert!(bucket.take(&terms, || 3_600_999).is_none());
    assert!(bucket.take(&terms, || 3_601_000).is_some());
}

#[test]
fn each_upstream_has_its_own() {
    let budget = of(0.2, 3);
    let (up, down) = (Key::from("up"), Key::from("down"));
    assert_eq!(takes(&budget, Some(&down)), 3);
    assert_eq!(takes(&budget.clone(), Some(&up)), 3, "a handle is the same budget, another upstream is not");
    assert!(!budget.try_take(Some(&up)) && budget.try_take(None));
    assert_eq!(budget.left_in_thousandths(Some(&Key::from("never called"))), 3000);
    assert_eq!(budget.0.upstreams.len(), 2, "reading makes no state");
}

#[test]
fn a_million_upstreams_are_bounded() {
    let bound = NonZeroUsize::new(100).unwrap();
    let budget = Budget::builder().max_upstreams(bound).build().unwrap();
    let busy = Key::from("busy");
    assert_eq!(takes(&budget, Some(&busy)), 10);
    for n in 0..1_000_000 {
        budget.arrive(Some(&Key::from(n)));
    }
    assert!(budget.0.upstreams.len() <= 100);
    assert!(!budget.try_take(Some(&busy)), "one that is not at rest is not forgotten");
}

#[test]
fn terms_that_cannot_be_are_named() {
    let field = |builder: BudgetBuilder| builder.build().err().map(|error| error.field().to_owned());
    for ratio in [-0.1, 1.001, f64::NAN, f64::INFINITY, 0.0001] {
        assert_eq!(field(Budget::builder().ratio(ratio)).as_deref(), Some("ratio"), "{ratio}");
    }
    for rate in [-1.0, f64::NAN, 10_001.0, 0.0005] {
        assert_eq!(field(Budget::builder().per_second(rate)).as_deref(), Some("per_second"), "{rate}");
    }
    assert_eq!(field(Budget::builder().reserve(10_001)).as_deref(), Some("reserve"));
    assert_eq!(takes(&of(0.2, 0), None), 0, "a reserve of 0 refuses all");
}

proptest::proptest! {
    /// Deposits are skipped while all buckets are full. Against a list that skips none.
    #[test]
    fn no_deposit_is_overlooked(steps in proptest::collection::vec((0..3_usize, proptest::bool::ANY), 0..200)) {
        let budget = of(0.5, 2);
        let upstreams = [None, Some(Key::from("a")), Some(Key::from("b"))];
        let mut naive = [2000_u32; 3];
        for (which, takes) in steps {
            let upstream = upstreams[which].as_ref();
            if takes {
                let left = naive[which].checked_sub(1000);
                assert_eq!(budget.try_take(upstream), left.is_some());
                naive[which] = left.unwrap_or(naive[which]);
            } else {
                budget.arrive(upstream);
                naive[which] = (naive[which] + 500).min(2000);
            }
            assert_eq!(budget.left_in_thousandths(upstream), naive[which]);
            let tapped = naive.iter().filter(|&&left| left < 2000).count();
            assert_eq!(budget.0.tapped.load(Relaxed), tapped);
        }
    }
}

#[test]
fn what_time_pays_ends_at_the_cap_and_no_part_of_it_is_kept() {
    let terms = Terms { deposit: 0, per_second: 1_000, cap: 2 * TOKEN };
    let bucket = Bucket::full(&terms);
    assert!(bucket.take(&terms, || 0).is_some());
    assert_eq!(bucket.left(&terms, || 2_500), 2 * TOKEN, "more was earned than there is room for");
    let slow = Terms { deposit: 0, per_second: 1, cap: TOKEN };
    let bucket = Bucket::full(&slow);
    assert!(bucket.take(&slow, || 0).is_some());
    // The last thousandth fills it a second before, less a millisecond, the next would be earned.
    assert!(bucket.take(&slow, || 1_000_999).is_some());
    assert_eq!((bucket.left(&slow, || 2_000_000), bucket.left(&slow, || 2_000_999)), (TOKEN - 1, TOKEN));
}

#[test]
fn a_full_bucket_makes_way_for_a_new_upstream_and_a_spent_one_does_not() {
    let bound = NonZeroUsize::new(1).unwrap();
    let budget = Budget::builder().max_upstreams(bound).build().unwrap();
    let [calm, spent, shared, late] = ["calm", "spent", "shared", "late"].map(Key::from);
    assert!(budget.try_take(Some(&calm)));
    (0..5).for_each(|_| budget.arrive(Some(&calm)));
    assert_eq!(takes(&budget, Some(&spent)), 10, "it has the place of one that needs none");
    assert_eq!(takes(&budget, Some(&shared)), 10, "what all newcomers share");
    assert_eq!(takes(&budget, Some(&late)), 0);
    assert_eq!(budget.0.upstreams.len(), 1);
}

#[test]
fn it_shows_what_is_left() {
    let budget = of(0.2, 3);
    assert!(budget.try_take(None));
    assert_eq!(format!("{budget:?}"), "Budget { left_in_thousandths: 2000, upstreams: 0, .. }");
}
