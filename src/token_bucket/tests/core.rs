//! The bucket with its line: pauses, settlements, and what comes to rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use proptest::prelude::*;

use crate::token_bucket::bucket::{Bucket, Meter, Rate, Short, TICKS, nanos_up};
use crate::token_bucket::core::{Core, LAG};
use crate::token_bucket::queue::{Joined, Polled, Waiter};
use crate::token_bucket::tests::support::few;

const SECOND: u64 = 1_000_000_000 * TICKS;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One unit a second, ten at once.
fn core() -> Core {
    Core::new(Bucket::new(Rate { interval: SECOND, burst: 10 }, &[]), 100)
}

fn level(core: &Core, now: u64) -> u64 {
    let meter = core.bucket.meter(0).unwrap();
    meter.rate().level(meter.tat(), now)
}

proptest! {
    /// Two buckets, asked the same: one by an exact clock, the other by one that lags behind before it.
    #[test]
    fn a_clock_that_lags_behind_changes_no_decision(
        steps in prop::collection::vec((0..4 * SECOND, 0..LAG, 1..4_u64, 1..9_u64), 1..200),
        two: bool,
    ) {
        let rates = [Rate { interval: SECOND, burst: 20 }, Rate { interval: SECOND / 2, burst: 40 }];
        let new = || Core::new(Bucket::new(rates[0], if two { &rates[1..] } else { &[] }), 100);
        let (exact, lagging) = (new(), new());
        let mut now = LAG;
        for (pause, lag, cost, other) in steps {
            now += pause;
            let costs = if two { few(&[cost, other]) } else { few(&[cost]) };
            let taken = match lagging.take_coarsely(&costs, || Some(now - lag)) {
                Some(_) => Ok(()),
                None => lagging.take(now, &costs).unwrap(),
            };
            prop_assert_eq!(taken, exact.take(now, &costs).unwrap());
            let full_at = |core: &Core| core.bucket.meters().map(Meter::tat).collect::<Vec<_>>();
            prop_assert_eq!(full_at(&lagging), full_at(&exact));
        }
    }
}

#[test]
fn a_coarse_clock_decides_alone_while_the_bucket_is_in_use() {
    assert_eq!(LAG, SECOND);
    let core = core();
    let at = |seconds: u64| move || Some(seconds * SECOND);
    let unasked = || panic!("a bucket that was full, or short, when last seen needs an exact time");
    assert_eq!(core.take_coarsely(&few(&[1]), unasked), None);
    core.take(0, &few(&[2])).unwrap().unwrap();
    assert_eq!(core.take_coarsely(&few(&[1]), unasked), None);
    core.take(0, &few(&[1])).unwrap().unwrap();
    assert_eq!(core.take_coarsely(&few(&[1]), at(0)), Some(0));
    assert_eq!(core.take_coarsely(&few(&[2]), at(1)), Some(SECOND));
    assert_eq!(core.take_coarsely(&few(&[1]), at(6)), None, "it may be full by now");
    assert_eq!(
        core.take_coarsely(&few(&[6]), at(1)),
        None,
        "it is short, and by how much an exact time says"
    );
    assert_eq!(core.take_coarsely(&few(&[1]), || None), None, "there is no such clock");
    core.pause(SECOND, 3 * SECOND, 0);
    assert_eq!(core.take_coarsely(&few(&[1]), at(1)), None, "nobody passes");
    core.take(3 * SECOND, &few(&[9])).unwrap().unwrap_err();
    assert_eq!(core.take_coarsely(&few(&[1]), unasked), None);
    assert_eq!(core.bucket.meter(0).unwrap().tat(), 6 * SECOND, "what did not pass took nothing");
}

#[test]
fn two_dimensions_are_taken_by_a_coarse_clock_or_neither_is() {
    let rate = |burst| Rate { interval: SECOND, burst };
    let core = Core::new(Bucket::new(rate(10), &[rate(8)]), 100);
    let full_at = || core.bucket.meters().map(|meter| meter.tat() / SECOND).collect::<Vec<_>>();
    core.take(0, &few(&[2, 1])).unwrap().unwrap();
    core.take(0, &few(&[1, 1])).unwrap().unwrap();
    assert_eq!(core.take_coarsely(&few(&[1, 1]), || Some(0)), Some(0), "the second is full in just a second");
    assert_eq!(full_at(), [4, 3]);
    assert_eq!(core.take_coarsely(&few(&[7, 1]), || Some(0)), None, "the first is short");
    assert_eq!(core.take_coarsely(&few(&[1, 6]), || Some(0)), None, "the second is short");
    assert_eq!(core.take_coarsely(&few(&[1, 1]), || Some(3 * SECOND)), None, "the second may be full");
    assert_eq!(full_at(), [4, 3]);
    // Three are too many to go by a coarse clock.
    let core = Core::new(Bucket::new(rate(10), &[rate(10), rate(10)]), 100);
    core.take(0, &few(&[2; 3])).unwrap().unwrap();
    core.take(0, &few(&[2; 3])).unwrap().unwrap();
    assert_eq!(core.take_coarsely(&few(&[1; 3]), || panic!("it is not asked")), None);
}

#[test]
fn a_pause_refuses_until_it_is_over_and_takes_nothing() {
    let core = core();
    assert!(!core.may_be_paused());
    core.pause(0, 10 * SECOND, 0);
    let refused = core.take_or_refuse(4 * SECOND, &few(&[1])).unwrap_err();
    assert_eq!(refused, Short { dimension: Short::NO_DIMENSION, wait: 6 * SECOND });
    assert_eq!(core.paused_for(4 * SECOND), 6 * SECOND, "asking ends no pause");
    assert!(core.may_be_paused() && core.take(4 * SECOND, &few(&[1])).is_none());
    assert_eq!(core.paused_for(10 * SECOND), 0);
    assert!(!core.may_be_paused(), "whoever asks next need not look");
    assert_eq!(core.take_or_refuse(10 * SECOND, &few(&[10])), Ok(()));
    assert_eq!(level(&core, 10 * SECOND), 0);
}

#[test]
fn of_a_pause_and_an_empty_bucket_the_one_that_is_over_later_is_told() {
    let core = core();
    core.take(0, &few(&[10])).unwrap().unwrap();
    core.pause(0, 5 * SECOND, 0);
    let refused = |cost| core.take_or_refuse(0, &few(&[cost])).unwrap_err();
    assert_eq!(refused(4), Short { dimension: Short::NO_DIMENSION, wait: 5 * SECOND });
    assert_eq!(refused(5), Short { dimension: Short::NO_DIMENSION, wait: 5 * SECOND });
    assert_eq!(refused(6), Short { dimension: 0, wait: 6 * SECOND });
}

#[test]
fn what_was_not_used_comes_back_and_what_was_used_beyond_is_charged() {
    let settled = |actual| {
        let core = core();
        core.take(0, &few(&[8])).unwrap().unwrap();
        core.settle(0, 0, (0, 8), actual, false);
        (level(&core, 0), core.bucket.meter(0).unwrap().tat() / SECOND)
    };
    assert_eq!(settled(3), (7, 3));
    assert_eq!(settled(8), (2, 8));
    assert_eq!(settled(9), (1, 9));
    assert_eq!(settled(15), (0, 15), "a debt");
}

#[test]
fn another_rate_holds_from_then_on() {
    let core = core();
    let to = Rate { interval: SECOND / 2, burst: 4 };
    core.set_rate(0, 0, to);
    assert_eq!((core.bucket.meter(0).unwrap().rate(), level(&core, 0)), (to, 4));
    core.set_rate(0, 7, Rate { interval: SECOND, burst: 1 });
    assert_eq!(core.bucket.rates().to_vec(), [to], "there is no seventh dimension");
}

#[test]
fn an_upstream_that_has_less_left_than_we_think_lowers_the_level_and_never_lifts_it() {
    let core = core();
    core.cap(0, 0, 0, 3);
    assert_eq!(level(&core, 0), 3);
    core.cap(0, 0, 0, 8);
    assert_eq!(level(&core, 0), 3);
}

#[test]
fn a_lower_level_refuses_those_who_would_be_served_too_late() {
    let core = core();
    core.take(0, &few(&[10])).unwrap().unwrap();
    let mut hasty = Waiter::new(few(&[5]), 6 * SECOND, 0);
    hasty.latest = 6 * SECOND;
    let Joined::Waits { ticket, at } = core.join(0, hasty).unwrap() else { panic!("it is in time") };
    assert_eq!(at, 5 * SECOND);
    let count = Arc::new(Count::default());
    assert!(matches!(core.poll(0, ticket, count.clone().into()), Polled::Pending(_)));
    core.cap(0, 0, 0, 10);
    assert_eq!(count.0.load(Ordering::Relaxed), 0, "no less is left than we think");
    // What is known to be left is said of a later time: all that flowed in until then is gone.
    core.cap(0, 0, 4 * SECOND, 0);
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "it is told at once, and not when its time has come");
    let Polled::Refused(short) = core.poll(0, ticket, Waker::noop().clone()) else { panic!("too late") };
    assert_eq!(short.wait, 9 * SECOND);
}

#[test]
fn it_is_at_rest_when_it_is_full_and_nothing_pauses() {
    let core = core();
    assert!(core.is_at_rest(0));
    core.take(0, &few(&[3])).unwrap().unwrap();
    assert!(!core.is_at_rest(3 * SECOND - 1));
    assert!(core.is_at_rest(3 * SECOND));
    core.pause(3 * SECOND, 5 * SECOND, 0);
    assert!(!core.is_at_rest(4 * SECOND));
    assert!(core.is_at_rest(5 * SECOND));
}

#[test]
fn a_cost_above_the_burst_is_found_in_its_dimension() {
    let bucket = Bucket::new(Rate { interval: SECOND, burst: 10 }, &[Rate { interval: SECOND, burst: 5 }]);
    assert_eq!(bucket.too_large(&[10, 5]), None);
    assert_eq!(bucket.too_large(&[11, 0]), Some(0));
    assert_eq!(bucket.too_large(&[9, 6]), Some(1));
}

#[test]
fn ticks_are_told_in_nanoseconds_that_are_enough() {
    assert_eq!([0, 1, TICKS, TICKS + 1].map(nanos_up), [0, 1, 1, 2]);
}
