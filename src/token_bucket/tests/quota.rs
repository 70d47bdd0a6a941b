//! Quotas as rates: exact figures, and the last that can be built.

use std::time::Duration;

use crate::token_bucket::Quota;
use crate::token_bucket::bucket::{Rate, TICKS};
use crate::token_bucket::quota::WHOLE;
use crate::token_bucket::tests::support::n;

const SECOND: u64 = 1_000_000_000 * TICKS;
const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// What an unsaid burst is worth.
const TEN: Duration = Duration::from_secs(10);

fn rate(quota: Quota) -> Rate {
    quota.rate(WHOLE, TEN).unwrap()
}

fn field(quota: Quota) -> Option<String> {
    quota.rate(WHOLE, TEN).err().map(|error| error.field().to_owned())
}

#[test]
fn a_quota_is_an_interval_and_a_burst() {
    let of = |interval, burst| Rate { interval, burst };
    assert_eq!(rate(Quota::per_minute(n(60))), of(SECOND, 10), "what flows in within ten seconds");
    assert_eq!(rate(Quota::per_second(n(5))), of(SECOND / 5, 5), "no more than the amount");
    assert_eq!(rate(Quota::per_hour(n(60))), of(60 * SECOND, 1), "never nothing");
    assert_eq!(rate(Quota::per_day(n(24)).burst(n(7))), of(3_600 * SECOND, 7));
    assert_eq!(rate(Quota::one_every(TEN * 9).unwrap()), of(90 * SECOND, 1));
    assert_eq!(Quota::one_every(Duration::ZERO), None);
}

#[test]
fn headroom_is_a_share_of_both() {
    let half = |quota: Quota| quota.rate(WHOLE / 2, TEN).unwrap();
    assert_eq!(half(Quota::per_minute(n(60)).burst(n(10))), Rate { interval: 2 * SECOND, burst: 5 });
    assert_eq!(half(Quota::per_minute(n(60))), Rate { interval: 2 * SECOND, burst: 5 });
    assert_eq!(half(Quota::per_minute(n(60)).burst(n(1))).burst, 1);
}

#[test]
fn a_strict_quota_has_its_burst_from_its_amount() {
    let a_minute = Quota::per_minute(n(60)).strict();
    assert_eq!(rate(a_minute), Rate { interval: SECOND, burst: 1 });
    let of_ten = Rate { interval: (60 * SECOND).div_ceil(51), burst: 10 };
    assert_eq!(rate(a_minute.burst(n(10))), of_ten);
    let half = a_minute.burst(n(10)).rate(WHOLE / 2, TEN).unwrap();
    assert_eq!(
        half,
        Rate { interval: (60 * SECOND).div_ceil(21), burst: 10 },
        "a cost is no share of anything"
    );
    assert_eq!(rate(a_minute.burst(n(60))), Rate { interval: 60 * SECOND, burst: 60 });
    assert_eq!(field(a_minute.burst(n(61))).as_deref(), Some("burst"));
}

#[test]
fn the_fastest_and_the_longest_can_be_and_what_is_beyond_is_named() {
    assert_eq!(rate(Quota::per_second(n(1_000_000_000))).interval, TICKS);
    assert_eq!(field(Quota::per_second(n(2_000_000_000))).as_deref(), Some("amount"));
    assert_eq!(rate(Quota::one_every(YEAR).unwrap()), Rate { interval: 365 * 86_400 * SECOND, burst: 1 });
    let longer = Quota::one_every(YEAR + Duration::from_nanos(1)).unwrap();
    assert_eq!(field(longer).as_deref(), Some("burst"));
    assert_eq!(field(Quota::per_day(n(1)).burst(n(365))), None);
    assert_eq!(field(Quota::per_day(n(1)).burst(n(366))).as_deref(), Some("burst"));
}

#[test]
fn what_an_upstream_says_counts_where_its_window_is_ours() {
    let quota = Quota::per_minute(n(60)).burst(n(20));
    let learned = |limit, window| quota.learned(limit, window, WHOLE, TEN);
    let minute = Duration::from_secs(60);
    assert_eq!(learned(30, minute), Some(Rate { interval: 2 * SECOND, burst: 20 }));
    assert_eq!(learned(10, minute), Some(Rate { interval: 6 * SECOND, burst: 10 }));
    assert_eq!(learned(0, minute), None);
    let (least, most) = (54_000_000_000, 66_000_000_000);
    let near = |nanos| learned(30, Duration::from_nanos(nanos)).is_some();
    assert_eq!([least, most].map(near), [true, true], "within a tenth of it");
    assert_eq!([least - 1, most + 1].map(near), [false, false]);
}

#[test]
fn the_nearest_changes_no_more_than_it_must() {
    let nearest = |quota: Quota| rate(quota.nearest(TEN));
    let sound = Quota::per_minute(n(60)).burst(n(7));
    assert_eq!(sound.nearest(TEN), sound);
    let fastest = Rate { interval: TICKS, burst: 1_000_000_000 };
    assert_eq!(nearest(Quota::per_second(n(u64::MAX))), fastest);
    let year = Rate { interval: 365 * 86_400 * SECOND, burst: 1 };
    assert_eq!(nearest(Quota::one_every(Duration::MAX).unwrap()), year);
    assert_eq!(nearest(Quota::one_every(Duration::MAX).unwrap().burst(n(9)).strict()), year);
    assert_eq!(nearest(Quota::per_day(n(1)).burst(n(1_000))), Rate { interval: 86_400 * SECOND, burst: 365 });
    let of_six = Rate { interval: 10 * SECOND, burst: 1 };
    assert_eq!(nearest(Quota::per_minute(n(6)).burst(n(9)).strict()), of_six, "its burst leaves no rate");
}

#[test]
fn it_says_what_it_was_made_of() {
    let quota = Quota::per_minute(n(6));
    assert_eq!((quota.amount(), quota.period()), (n(6), Duration::from_secs(60)));
    assert!(!quota.has_burst() && quota.burst(n(2)).has_burst());
    assert!(!quota.is_strict() && quota.strict().is_strict());
    assert_eq!(quota.to_string(), "6 per 60s");
    assert_eq!(format!("{quota:?}"), "Quota(6 per 60s: 0.1/s)");
    assert_eq!(
        format!("{:?}", Quota::per_minute(n(100)).burst(n(2))),
        "Quota(100 per 60s: 1.667/s, burst 2)"
    );
    assert_eq!(format!("{:?}", Quota::per_hour(n(60)).strict()), "Quota(60 per 3600s: 60/h, strict)");
}
