use proptest::prelude::*;

use super::*;

/// The smallest value that so many thousandths of all do not exceed.
fn truth(sorted: &[u32], share: u64) -> u32 {
    let rank = (sorted.len() as u64 * share).div_ceil(1000).max(1);
    sorted[usize::try_from(rank).unwrap() - 1]
}

/// Within a 1024th above the truth; never below.
fn close(told: u64, truth: u32, bits: u32) -> bool {
    let truth = u64::from(truth);
    told >= truth && told - truth <= truth >> bits
}

fn sum(values: &[u32]) -> u64 {
    values.iter().map(|micros| u64::from(*micros)).sum()
}

const SHARES: [u64; 4] = [500, 900, 950, 990];

fn percentiles(closed: &Closed) -> ([u64; 4], u64) {
    let mut sum = Sum::default();
    sum.add(closed.entries(), closed.totals());
    sum.percentiles(SHARES)
}

#[test]
fn each_value_falls_into_a_bucket_that_is_a_thousandth_wide() {
    for micros in (0..5_000).chain([65_535, 65_536, 1_000_000, 60_000_000, u32::MAX - 1, u32::MAX]) {
        let top = top(bucket(micros));
        assert!(top >= u64::from(micros), "{micros}");
        assert!(top - u64::from(micros) <= u64::from(micros) / 1024, "{micros}: {top}");
    }
    assert_eq!(usize::from(bucket(u32::MAX)) + 1, BUCKETS);
    assert!((1..BUCKETS).all(|at| value(at) > value(at - 1)), "buckets rise");
}

#[test]
fn nothing_has_no_percentiles() {
    assert_eq!(percentiles(&Closed::with_room(100)), ([0; 4], 0));
}

#[test]
fn a_longer_wait_than_can_be_told_is_the_longest() {
    let mut live = Live::default();
    live.record(u32::MAX);
    let mut closed = Closed::with_room(100);
    live.close_into(&mut closed, &mut Vec::new());
    assert_eq!(percentiles(&closed).1, u64::from(u32::MAX));
}

#[test]
fn a_row_has_a_bound_and_keeps_two_digits() {
    let mut live = Live::default();
    // 30 ms to 480 ms: 4 096 buckets.
    let mut values: Vec<u32> = (0..45_000).map(|n| 30_000 + n * 10).collect();
    for &micros in &values {
        live.record(micros);
    }
    let mut closed = Closed::with_room(768);
    live.close_into(&mut closed, &mut Vec::new());
    assert!(closed.row.len() <= 768, "{}", closed.row.len());
    values.sort_unstable();
    let (found, max) = percentiles(&closed);
    for (told, share) in found.into_iter().zip(SHARES) {
        assert!(close(told, truth(&values, share), 6), "{share}: {told}");
    }
    assert!(close(max, values[values.len() - 1], 6));
    assert_eq!(closed.totals(), (45_000, sum(&values)));
}

/// More different values than the row has room for at any coarseness: from 64 µs to an hour, 64 a doubling.
#[test]
fn the_coarsest_row_is_a_thirtysecond_too_long_at_most() {
    let mut live = Live::default();
    let values: Vec<u32> =
        (0..26).flat_map(|doublings| (64..128).map(move |part| part << doublings)).collect();
    for &micros in &values {
        live.record(micros);
    }
    let mut closed = Closed::with_room(100);
    live.close_into(&mut closed, &mut Vec::new());
    assert_eq!(closed.coarse, COARSEST);
    let mut sum = Sum::default();
    sum.add(closed.entries(), closed.totals());
    let worst = (1..=1_000).map(|share| {
        let (told, truth) = (sum.percentiles([share]).0[0], truth(&values, share));
        assert!(told >= u64::from(truth), "{share}: {told} for {truth}");
        let off = told - u64::from(truth);
        assert!(off <= u64::from(truth >> 5).max(31), "{share}: {told} for {truth}");
        if truth < 2_048 { 0 } else { off * 1_000 / u64::from(truth) }
    });
    // What the bound says is reached, so that it is not said too strictly.
    assert!(worst.max().unwrap() >= 20);
}

#[test]
fn a_bucket_can_hold_more_than_a_page_can_count() {
    let mut live = Live::default();
    (0..200_000).for_each(|_| live.record(7));
    live.record(9);
    assert!(live.entries().eq([(7, 200_000), (9, 1)]));
    let mut closed = Closed::with_room(100);
    live.close_into(&mut closed, &mut Vec::new());
    assert!(closed.entries().eq([(7, 200_000), (9, 1)]));
    assert_eq!(live.entries().count(), 0);
}

/// Short ones and long ones, as many.
fn micros() -> impl Strategy<Value = u32> {
    prop_oneof![0..3_000_u32, 3_000..5_000_000_u32, any::<u32>()]
}

proptest! {
    #[test]
    fn percentiles_are_those_of_hdr_histogram_where_nothing_is_coarser(
        values in prop::collection::vec(micros(), 1..300),
        shares in (1_u64..=1_000, 1_u64..=1_000),
    ) {
        let mut oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, u64::from(u32::MAX), 3).unwrap();
        let (mut live, mut closed) = (Live::default(), Closed::with_room(u16::MAX));
        for &micros in &values {
            live.record(micros);
            oracle.record(u64::from(micros)).unwrap();
        }
        live.close_into(&mut closed, &mut Vec::new());
        prop_assert_eq!(closed.coarse, 0);
        let mut sum = Sum::default();
        sum.add(closed.entries(), closed.totals());
        let shares = [shares.0.min(shares.1), shares.0.max(shares.1)];
        let (found, max) = sum.percentiles(shares);
        for (told, share) in found.into_iter().zip(shares) {
            // Half a value short of the rank, so that rounding cannot lead to the next one.
            let count = u32::try_from(values.len()).unwrap();
            let rank = (u64::from(count) * share).div_ceil(1000).max(1);
            let quantile = (f64::from(u32::try_from(rank).unwrap()) - 0.5) / f64::from(count);
            prop_assert_eq!(told, oracle.value_at_quantile(quantile), "{}", share);
        }
        prop_assert_eq!(max, oracle.max());
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values(
        values in prop::collection::vec(0..u32::MAX, 1..300),
        cuts in prop::collection::vec(0_usize..300, 0..5),
    ) {
        // Cut into intervals at will, closed and merged.
        let (mut live, mut scratch) = (Live::default(), Vec::new());
        let mut all = Closed::with_room(u16::MAX);
        for (at, &micros) in values.iter().enumerate() {
            live.record(micros);
            if cuts.contains(&at) {
                let mut one = Closed::with_room(u16::MAX);
                live.close_into(&mut one, &mut scratch);
                all.merge(&one, &mut scratch);
            }
        }
        live.close_into(&mut all, &mut scratch);
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let (found, max) = percentiles(&all);
        for (told, share) in found.into_iter().zip(SHARES) {
            prop_assert!(close(told, truth(&sorted, share), 10), "{}: {} of {:?}", share, told, sorted);
        }
        prop_assert!(close(max, sorted[sorted.len() - 1], 10));
        prop_assert_eq!(all.totals(), (values.len() as u64, sum(&values)));
    }

    #[test]
    fn what_comes_late_counts_as_if_it_had_not(values in prop::collection::vec(0..u32::MAX, 1..60)) {
        let (mut live, mut scratch) = (Live::default(), Vec::new());
        let (mut at_once, mut late) = (Closed::with_room(u16::MAX), Closed::with_room(u16::MAX));
        for &micros in &values {
            live.record(micros);
            late.record(micros, &mut scratch);
        }
        live.close_into(&mut at_once, &mut scratch);
        prop_assert!(at_once.entries().eq(late.entries()));
        prop_assert_eq!(at_once.totals(), late.totals());
    }
}
