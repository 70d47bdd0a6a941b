use proptest::prelude::*;

use super::*;
use crate::monitor::words::class_index;
use crate::verdict::Class;

fn done(class: Class, head: u32) -> Done {
    Done {
        class: u8::try_from(class_index(class)).unwrap(),
        refused: None,
        times: [head, NONE, head],
        tokens: [3, 2, 1],
        retry: false,
        fallback: false,
    }
}

/// Counts and latency sums of the four spans.
fn read(spans: &mut Spans, tick: u64, scratch: &mut Scratch) -> [(u64, u64); 4] {
    spans.advance(tick, scratch);
    let mut found = [(0, 0); 4];
    let mut sum = Sum::default();
    let mut counts = Counts::default();
    for (found, part) in found.iter_mut().zip(spans.parts()) {
        part.add_counts(&mut counts);
        part.add_times(0, &mut sum);
        let count = counts.outcomes.iter().sum();
        assert_eq!(sum.totals().0, count, "each has a latency");
        *found = (count, sum.totals().1);
    }
    found
}

#[test]
fn a_minute_is_over_after_a_minute_and_an_interval() {
    let (mut spans, mut scratch) = (Spans::default(), Scratch::default());
    spans.done(0, &done(Class::Success, 7), &mut scratch);
    assert_eq!(
        read(&mut spans, 6, &mut scratch),
        [(1, 7); 4],
        "60 s later it may have been within the minute"
    );
    assert_eq!(read(&mut spans, 7, &mut scratch), [(0, 0), (1, 7), (1, 7), (1, 7)]);
    assert_eq!(read(&mut spans, 35, &mut scratch)[1], (1, 7));
    assert_eq!(read(&mut spans, 36, &mut scratch), [(0, 0), (0, 0), (1, 7), (1, 7)]);
    assert_eq!(read(&mut spans, 389, &mut scratch)[2], (1, 7));
    assert_eq!(read(&mut spans, 390, &mut scratch), [(0, 0), (0, 0), (0, 0), (1, 7)]);
}

#[test]
fn intervals_are_bounded() {
    let (mut spans, mut scratch) = (Spans::default(), Scratch::default());
    for tick in 0..2_000 {
        spans.done(tick, &done(Class::Success, 5), &mut scratch);
        let [ticks, minutes, fives] = spans.slots();
        assert!(ticks <= 6 && minutes <= 6 && fives <= 13, "{ticks} {minutes} {fives}");
    }
    assert_eq!(read(&mut spans, 2_000, &mut scratch)[3].0, 2_000);
}

#[test]
fn tokens_and_money_are_summed() {
    let (mut spans, mut scratch) = (Spans::default(), Scratch::default());
    spans.done(1, &done(Class::Success, 1), &mut scratch);
    spans.charge(1, Charge { spent: 10, reserved: 40, extra: true }, &mut scratch);
    spans.charge(9, Charge { spent: 5, reserved: 6, extra: false }, &mut scratch);
    let mut last = Counts::default();
    spans.parts().iter().for_each(|part| part.add_counts(&mut last));
    assert_eq!((last.input, last.output, last.cached), (3, 2, 1));
    assert_eq!((last.charged, last.spent, last.reserved, last.extra), (2, 15, 46, 10));
}

/// All its intervals full, with head, content and end that spread over a factor of 64.
#[test]
fn a_busy_series_takes_no_more_than_100_kb() {
    let mut scratch = Scratch::default();
    let mut run = |spans: &mut Spans, ticks: std::ops::Range<u64>| {
        for (tick, n) in ticks.flat_map(|tick| (0..400).map(move |n| (tick, n))) {
            let spread = (u32::try_from(tick).unwrap() * 400 + n).wrapping_mul(2_654_435_761) >> 8;
            let micros = (50_000 << (spread % 6)) + (spread % 49_999) * (1 << (spread % 6));
            let done = Done { times: [micros, micros + 1_000, micros * 2], ..done(Class::Success, 1) };
            spans.done(tick, &done, &mut scratch);
        }
    };
    run(&mut Spans::default(), 0..100);
    let mut spans = Spans::default();
    let counted = allocation_counter::measure(|| run(&mut spans, 0..500));
    let bytes = counted.bytes_current + i64::try_from(size_of::<Spans>()).unwrap();
    assert!((50_000..=100_000).contains(&bytes), "{bytes} bytes");
}

proptest! {
    /// Against a list of all that happened, whatever order it is told in.
    #[test]
    fn spans_are_those_of_a_list(events in prop::collection::vec((0_u64..60, 0_u64..90, 1_u32..1_000_000), 1..200)) {
        let (mut spans, mut scratch) = (Spans::default(), Scratch::default());
        let (mut list, mut now) = (Vec::new(), 0);
        for (step, late, micros) in events {
            now += step;
            // Told late, though never from before the last one was read: `now` only grows when it is told on time.
            let tick = now.saturating_sub(if late > 60 { late * 5 } else { 0 });
            spans.done(tick, &done(Class::Success, micros), &mut scratch);
            list.push((tick, u64::from(micros)));
            let tick_now = now.max(spans.tick);
            let found = read(&mut spans, tick_now, &mut scratch);
            let [minute, five, hour] = begins(tick_now);
            for (found, begin) in found.into_iter().zip([minute, five, hour, 0]) {
                let within = list.iter().filter(|(tick, _)| *tick >= begin);
                let truth = within.fold((0, 0), |(count, sum), (_, micros)| (count + 1, sum + micros));
                prop_assert_eq!(found, truth, "from {} on, at {}", begin, tick_now);
            }
        }
    }
}
