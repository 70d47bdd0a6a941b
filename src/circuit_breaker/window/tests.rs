//! Both windows slide. (The state machine's model checks them against lists.)

use super::*;

const BUCKET: u64 = 100;

fn time() -> Window {
    Window::new(WindowKind::Time { bucket: BUCKET })
}

#[test]
fn a_bucket_leaves_as_a_whole_ten_widths_after_it_began() {
    let mut window = time();
    window.record(0, true, false);
    window.record(BUCKET - 1, false, true);
    assert_eq!(window.counts_at(10 * BUCKET - 1), Counts { calls: 2, failed: 1, slow: 1 });
    assert_eq!(window.counts_at(10 * BUCKET), Counts::default());
}

#[test]
fn a_long_silence_empties_it() {
    let mut window = time();
    for now in 0..10 {
        window.record(now * BUCKET, true, true);
    }
    assert_eq!(window.record(1 << 60, false, false), Counts { calls: 1, failed: 0, slow: 0 });
}

#[test]
fn what_is_absorbed_belongs_to_the_present_bucket() {
    let mut window = time();
    window.record(3 * BUCKET, true, false);
    assert_eq!(window.bucket_end(), 4 * BUCKET);
    window.absorb(5);
    assert_eq!(window.counts_at(13 * BUCKET - 1).calls, 6);
    assert_eq!(window.counts_at(13 * BUCKET).calls, 0);
}

#[test]
fn time_that_steps_back_stays_in_the_present_bucket() {
    let mut window = time();
    window.record(5 * BUCKET, true, false);
    assert_eq!(window.record(0, true, false).failed, 2);
    assert_eq!(window.counts_at(15 * BUCKET).failed, 0);
}

#[test]
fn the_longest_window_never_slides() {
    let mut window = Window::new(WindowKind::Time { bucket: u64::MAX / 10 });
    window.record(0, true, false);
    assert_eq!(window.counts_at(1 << 62).failed, 1);
    assert!(window.bucket_end() > 1 << 60);
}

#[test]
fn a_count_window_holds_the_last_calls_over_the_bounds_of_its_words() {
    for capacity in [1, 63, 64, 65, 128, 200] {
        let mut window = Window::new(WindowKind::Calls(capacity));
        let mut all = Vec::new();
        for call in 0..500_u64 {
            let (failed, slow) = (call % 3 == 0, call % 7 == 0);
            all.push((failed, slow));
            let counts = window.record(0, failed, slow);
            let last: Vec<_> = all.iter().rev().take(capacity as usize).collect();
            let failed = last.iter().filter(|(failed, _)| *failed).count() as u64;
            let slow = last.iter().filter(|(_, slow)| *slow).count() as u64;
            assert_eq!(counts, Counts { calls: last.len() as u64, failed, slow }, "{capacity}, {call}");
        }
        window.clear();
        assert_eq!(window.record(0, true, false), Counts { calls: 1, failed: 1, slow: 0 });
    }
}
