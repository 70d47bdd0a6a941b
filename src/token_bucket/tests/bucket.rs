//! The pure core against rational arithmetic.

use proptest::prelude::*;

use crate::token_bucket::Quota;
use crate::token_bucket::bucket::{Bucket, Meter, Rate, Rough, TICKS};
use crate::token_bucket::tests::support::{few, n};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

fn take(bucket: &Bucket, nanos: u64, costs: &[u64]) -> Result<(), u64> {
    let taken = bucket.take(nanos * TICKS, &few(costs));
    taken.map_err(|short| short.wait.div_ceil(TICKS))
}

fn quota() -> impl Strategy<Value = Rate> {
    let amount = prop_oneof![Just(1_u64), Just(7), Just(60), 1..2_000_u64, Just(1_000_000_000)];
    (amount, 1..200_u64).prop_map(|(amount, burst)| {
        let quota = Quota::per_minute(n(amount)).burst(n(burst));
        quota.rate(1_000_000, Duration::ZERO).unwrap()
    })
}

/// (nanoseconds since the last step, cost, what of it is given back later, how much later in steps)
fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let pause = prop_oneof![Just(0_u64), 0..SECOND, 0..200 * SECOND];
    prop::collection::vec((pause, 1..40_u64), 1..80)
}

proptest! {
    /// (a): in every interval of length T, admitted ≤ burst + rate · T; the interval is checked in exact integers.
    #[test]
    fn in_every_interval_no_more_than_burst_and_inflow_is_admitted(rate in quota(), steps in steps()) {
        let bucket = Bucket::new(rate, &[]);
        let (mut now, mut admitted) = (0, Vec::<(u64, u64)>::new());
        for (pause, cost) in steps {
            now += pause;
            if take(&bucket, now, &[cost]).is_ok() {
                admitted.push((now, cost));
            }
        }
        for (first, &(from, _)) in admitted.iter().enumerate() {
            let mut sum = 0_u128;
            for &(to, cost) in &admitted[first..] {
                sum += u128::from(cost);
                let inflow = u128::from(to - from) * u128::from(TICKS);
                let bound = u128::from(rate.burst) * u128::from(rate.interval) + inflow;
                prop_assert!(sum * u128::from(rate.interval) <= bound);
            }
        }
    }

    /// (b) and (c): the wait is exact, and a refusal changes nothing.
    #[test]
    fn after_the_reported_wait_it_passes_and_a_nanosecond_earlier_it_does_not(
        rate in quota(), steps in steps(),
    ) {
        let bucket = Bucket::new(rate, &[]);
        let mut now = 0;
        for (pause, cost) in steps {
            now += pause;
            let cost = cost.min(rate.burst);
            if let Err(wait) = take(&bucket, now, &[cost]) {
                prop_assert!(wait > 0);
                prop_assert!(take(&bucket, now, &[cost]).is_err(), "a refusal changes nothing");
                prop_assert!(take(&bucket, now + wait - 1, &[cost]).is_err());
                prop_assert!(take(&bucket, now + wait, &[cost]).is_ok());
                now += wait;
            }
        }
    }

    /// (d) and (g): n units at once are n single units, and what costs more never passes sooner.
    #[test]
    fn n_units_at_once_are_n_single_units(rate in quota(), steps in steps()) {
        let (whole, single) = (Bucket::new(rate, &[]), Bucket::new(rate, &[]));
        let mut now = 0;
        for (pause, cost) in steps {
            now += pause;
            let dearer = whole.short(now * TICKS, &[cost + 1]).map_or(0, |short| short.wait);
            let wait = whole.short(now * TICKS, &[cost]).map_or(0, |short| short.wait);
            prop_assert!(dearer >= wait);
            if take(&whole, now, &[cost]).is_ok() {
                for _ in 0..cost {
                    prop_assert!(take(&single, now, &[1]).is_ok());
                }
            }
            prop_assert_eq!(level(&whole, now), level(&single, now));
        }
    }

    /// (e): what is given back can be taken again, and no more.
    #[test]
    fn taking_and_giving_back_is_as_if_nothing_was_taken(
        rate in quota(), steps in steps(), undrained: bool,
    ) {
        let meter = Meter::new(rate);
        let mut now = 0;
        for (pause, cost) in steps {
            now += pause * TICKS;
            let before = rate.level(meter.tat(), now);
            if meter.take(now, cost).is_ok() {
                meter.give_back(now, now, cost, cost, undrained);
                prop_assert_eq!(rate.level(meter.tat(), now), before);
                let _ = meter.take(now, cost);
            }
        }
    }

    /// (f): after the clock went back, no more is admitted than at the later instant.
    #[test]
    fn a_clock_that_goes_back_gains_nothing(rate in quota(), back in 0..100 * SECOND) {
        let bucket = Bucket::new(rate, &[]);
        let now = 100 * SECOND;
        let mut passed = 0;
        for step in 0..rate.burst * 3 {
            passed += u64::from(take(&bucket, if step % 2 == 0 { now } else { now - back }, &[1]).is_ok());
        }
        prop_assert_eq!(passed, rate.burst);
    }

    /// Where only what has not flowed in again comes back, the bound holds for what was *really* used, however late that
    /// becomes known.
    #[test]
    fn late_refunds_break_no_bound_where_only_the_undrained_comes_back(
        rate in quota(),
        steps in prop::collection::vec((0..20 * SECOND, 1..40_u64, 0..40_u64, 0..5_usize), 1..60),
    ) {
        let meter = Meter::new(rate);
        let mut now = 0;
        let mut used = Vec::<(u64, u64)>::new();
        let mut open = Vec::new();
        for (pause, cost, unused, later) in steps {
            now += pause;
            if meter.take(now * TICKS, cost).is_ok() {
                let unused = unused.min(cost);
                used.push((now, cost - unused));
                open.push((now, cost, unused));
            }
            if later < open.len() {
                let (since, cost, unused) = open.remove(later);
                meter.give_back(now * TICKS, since * TICKS, cost, unused, true);
            }
        }
        for (first, &(from, _)) in used.iter().enumerate() {
            let mut sum = 0_u128;
            for &(to, cost) in &used[first..] {
                sum += u128::from(cost);
                let inflow = u128::from(to - from) * u128::from(TICKS);
                let bound = u128::from(rate.burst) * u128::from(rate.interval) + inflow;
                prop_assert!(sum * u128::from(rate.interval) <= bound);
            }
        }
    }

    /// An instant that is only roughly known decides where each that it can be decides the same, and nowhere else.
    #[test]
    fn what_a_rough_instant_decides_an_exact_one_decides_too(
        rate in quota(), full_in in 0..400 * SECOND, cost in 0..250_u64, lag in 0..3 * SECOND,
    ) {
        let earliest = 50 * SECOND * TICKS;
        let rough = Rough { earliest, latest: earliest + lag * TICKS };
        let tat = full_in * TICKS;
        let (first, last) = (rate.pass(tat, rough.earliest, cost), rate.pass(tat, rough.latest, cost));
        let decided = rate.pass_roughly(tat, rough, cost);
        if let Some(next) = decided {
            prop_assert_eq!([first, last], [Ok(next); 2]);
            prop_assert_eq!(rate.pass(tat, u64::midpoint(rough.earliest, rough.latest), cost), Ok(next));
        } else {
            // It could be full, or it is short at first; then nothing may be taken unseen.
            prop_assert!(tat < rough.latest || first.is_err());
        }
    }

    /// Several dimensions: all or none.
    #[test]
    fn several_dimensions_are_taken_all_or_none(
        rates in prop::collection::vec(quota(), 2..5),
        steps in prop::collection::vec((0..5 * SECOND, prop::collection::vec(0..30_u64, 4)), 1..60),
    ) {
        let bucket = Bucket::new(rates[0], &rates[1..]);
        let alone: Vec<_> = rates.iter().map(|&rate| Meter::new(rate)).collect();
        let mut now = 0;
        for (pause, costs) in steps {
            now += pause * TICKS;
            let costs = &costs[..rates.len()];
            let all = alone.iter().zip(costs).all(|(meter, &cost)| {
                cost == 0 || meter.rate().pass(meter.tat(), now, cost).is_ok()
            });
            prop_assert_eq!(bucket.take(now, &few(costs)).is_ok(), all);
            if all {
                for (meter, &cost) in alone.iter().zip(costs) {
                    meter.take(now, cost).unwrap();
                }
            }
            for (meter, alone) in bucket.meters().zip(&alone) {
                prop_assert_eq!(meter.rate().level(meter.tat(), now), alone.rate().level(alone.tat(), now));
            }
        }
    }

    /// A change of quota keeps what is in use, as far as the new bucket holds it, and a debt.
    #[test]
    fn a_change_of_quota_neither_grants_nor_locks_out(
        from in quota(), to in quota(), used in 0..300_u64,
    ) {
        let meter = Meter::new(from);
        meter.charge(0, used);
        meter.set_rate(0, to);
        let debt = used.saturating_sub(from.burst);
        let held = used.min(from.burst).min(to.burst);
        // Rounding a TAT to ticks can cost a part of a unit, never grant one.
        let (level, owed) = (to.level(meter.tat(), 0), to.debt(meter.tat(), 0));
        if debt == 0 {
            prop_assert!(level.abs_diff(to.burst - held) <= 1, "{level} of {} with {held} in use", to.burst);
        } else if from.burst >= to.burst {
            prop_assert!(owed.abs_diff(debt) <= 1);
        }
    }
}

#[test]
fn a_rough_instant_decides_from_its_latest_on_and_what_costs_nothing_at_any() {
    let rate = Rate { interval: TICKS, burst: 100 };
    let rough = Rough { earliest: 10 * TICKS, latest: 20 * TICKS };
    assert_eq!(rate.pass_roughly(20 * TICKS - 1, rough, 1), None);
    assert_eq!(rate.pass_roughly(20 * TICKS, rough, 1), Some(21 * TICKS));
    assert_eq!(rate.pass_roughly(0, rough, 0), Some(0));
    assert_eq!(rate.pass_roughly(109 * TICKS, rough, 1), Some(110 * TICKS));
    assert_eq!(rate.pass_roughly(109 * TICKS + 1, rough, 1), None, "at its earliest it is short");
}

fn level(bucket: &Bucket, nanos: u64) -> u64 {
    let meter = bucket.meters().next().unwrap();
    meter.rate().level(meter.tat(), nanos * TICKS)
}

#[test]
fn what_costs_nothing_is_not_held_up_by_a_debt() {
    let rate = Rate { interval: TICKS, burst: 5 };
    let bucket = Bucket::new(rate, &[rate]);
    bucket.meter(1).unwrap().charge(0, 1_000);
    assert!(bucket.take(0, &few(&[1, 0])).is_ok());
    assert_eq!(bucket.take(0, &few(&[1, 1])).unwrap_err().dimension, 1);
}

#[test]
fn a_debt_is_paid_before_anything_passes() {
    let rate = Rate { interval: TICKS * SECOND, burst: 5 };
    let meter = Meter::new(rate);
    meter.charge(0, 15);
    assert_eq!((rate.level(meter.tat(), 0), rate.debt(meter.tat(), 0)), (0, 10));
    assert_eq!(meter.take(0, 1).unwrap_err(), 11 * SECOND * TICKS);
    assert!(meter.take(11 * SECOND * TICKS, 1).is_ok());
}

#[test]
fn the_far_end_of_the_clock_saturates() {
    let rate = Rate { interval: TICKS, burst: 5 };
    let meter = Meter::new(rate);
    meter.charge(u64::MAX - 3, u64::MAX);
    assert!(meter.take(u64::MAX, 1).is_ok(), "nothing lies beyond the end");
    meter.charge(0, u64::MAX);
    assert!(meter.take(0, 1).is_err());
}

#[test]
fn two_threads_never_take_more_than_there_is() {
    let rate = Rate { interval: TICKS * SECOND, burst: 1_000 };
    let bucket = Bucket::new(rate, &[Rate { interval: TICKS * SECOND, burst: 700 }]);
    let passed = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..125_000 {
                    if bucket.take(0, &few(&[1, 1])).is_ok() {
                        passed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 700);
    assert!(bucket.take(0, &few(&[300, 0])).is_ok(), "what was undone is back");
    assert!(bucket.take(0, &few(&[1, 0])).is_err());
}
