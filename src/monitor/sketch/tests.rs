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

proptest! {
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
