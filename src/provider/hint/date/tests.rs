use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::{civil_of, days_of, http_date, rfc3339, to_pacific_midnight};
use crate::provider::fixtures::WALL;

fn seconds(text: &str) -> Option<u64> {
    http_date(text, WALL).map(|date| date.as_secs())
}

#[test]
fn b166_all_three_forms_of_a_date_are_read() {
    let all = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];
    for text in all {
        assert_eq!(seconds(text), Some(784_111_777), "{text}");
    }
}

#[test]
fn b166_a_two_digit_year_lies_at_most_fifty_years_ahead() {
    // From November 2026: 2068, 1995, and the border itself.
    assert_eq!(seconds("Saturday, 25-Feb-68 00:00:00 GMT"), seconds("Sat, 25 Feb 2068 00:00:00 GMT"));
    assert!(seconds("Saturday, 25-Feb-68 00:00:00 GMT").is_some());
    assert_eq!(seconds("Saturday, 25-Feb-95 00:00:00 GMT"), seconds("Sat, 25 Feb 1995 00:00:00 GMT"));
    assert!(seconds("Saturday, 25-Feb-95 00:00:00 GMT").is_some());
    assert!(seconds("Saturday, 28-Nov-76 00:00:00 GMT").is_some(), "2076, a day within");
    assert!(seconds("Monday, 30-Nov-76 00:00:00 GMT").is_none(), "2076, a day beyond; Tuesday in 1976");
}

#[test]
fn b166_second_sixty_is_the_next_second() {
    let leap = "Sat, 31 Dec 2016 23:59:60 GMT";
    assert_eq!(seconds(leap), seconds("Sun, 01 Jan 2017 00:00:00 GMT"));
    assert!(seconds("Sat, 31 Dec 2016 23:59:61 GMT").is_none());
}

#[test]
fn b164_what_is_not_exactly_a_date_is_none() {
    let all = [
        "Wed, 32 Oct 2027 07:28:00 GMT",
        "Thu, 21 Oct 2015 07:28:00 GMT",
        "Jan 1 2030",
        "Sep 2027",
        "soon",
        "-3",
        "Mon, 29 Feb 2027 00:00:00 GMT",
        "Sun, 29 Nov 2026 12:01:30",
        "Sun, 29 Nov 2026 12:01:30 UTC",
        "Sun, 29 Nov 2026 24:00:00 GMT",
        "Sun, 29 Nov 2026  2:01:30 GMT",
        "Sun, 29 Nov 2026 12:01:30 GMT ",
        "Sun,",
        "",
    ];
    for text in all {
        assert_eq!(seconds(text), None, "{text}");
    }
    assert!(seconds("Wed, 21 Oct 2015 07:28:00 GMT").is_some(), "with its own weekday");
}

#[test]
fn rfc_3339_knows_offsets_and_fractions() {
    let utc = rfc3339("2026-11-29T12:00:02Z").unwrap();
    assert_eq!(utc, WALL + Duration::from_secs(2));
    assert_eq!(rfc3339("2026-11-29T13:30:02+01:30"), Some(utc));
    assert_eq!(rfc3339("2026-11-29T04:00:02.5-08:00"), Some(utc + Duration::from_millis(500)));
    for text in ["2026-11-29T12:00:02", "2026-11-29", "2026-13-29T12:00:02Z", "2026-11-29T12:00:02.Z", "T"] {
        assert_eq!(rfc3339(text), None, "{text}");
    }
}

#[test]
fn the_day_of_a_quota_ends_at_midnight_in_california() {
    let wait = |text| to_pacific_midnight(rfc3339(text).unwrap()).unwrap().as_secs();
    assert_eq!(wait("2026-11-29T12:00:00Z"), 20 * 3600, "winter: 08:00 UTC");
    assert_eq!(wait("2026-07-01T06:59:59Z"), 1, "summer: 07:00 UTC");
    assert_eq!(wait("2026-07-01T07:00:00Z"), 24 * 3600);
    // The night of the change: its midnight is still the old time's, the next one the new time's.
    assert_eq!(wait("2026-03-08T07:00:00Z"), 3600);
    assert_eq!(wait("2026-03-08T08:00:00Z"), 23 * 3600);
    assert_eq!(wait("2026-11-01T07:00:00Z"), 25 * 3600);
    assert_eq!(wait("2026-11-02T07:00:00Z"), 3600);
}

#[test]
fn a_two_digit_year_beyond_the_end_of_time_is_no_date() {
    // The century was taken from a clock near the largest duration, and the seconds of its days overflowed.
    let read = |year: &u32| {
        super::WEEKDAYS.iter().any(|weekday| {
            http_date(&format!("{weekday}, 31-Dec-{year:02} 00:00:00 GMT"), Duration::MAX).is_some()
        })
    };
    let years = (0..100).filter(read).count();
    assert!((50..60).contains(&years), "fifty years would lie ahead: {years}");
}

#[test]
fn no_midnight_comes_after_the_end_of_time() {
    // The product of days and seconds overflowed.
    let last = Duration::MAX;
    assert_eq!(to_pacific_midnight(last), None);
    assert_eq!(
        to_pacific_midnight(last.checked_sub(Duration::from_secs(10 * 86_400)).unwrap())
            .map(|wait| wait.as_secs() < 90_000),
        Some(true)
    );
    assert_eq!(to_pacific_midnight(Duration::ZERO), None);
}

#[test]
fn the_edges_of_fields_and_of_months_are_exact() {
    assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    for text in [
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Mon, 00 Dec 2026 00:00:00 GMT",
        "Fri, 31 Apr 2026 00:00:00 GMT",
        "Sun, 29 Nov 2026 12:60:30 GMT",
        "Sun, 29 Nov 2026 12:01:3 GMT",
        "Sun, 29 Nov 2026 12:01:+3 GMT",
        "Sun NovX 6 08:49:37 1994",
        "Sun Nov  6X08:49:37 1994",
        "Sun Nov  6 08:49:37X1994",
    ] {
        assert_eq!(seconds(text), None, "{text}");
    }
    // The last day of 400 years.
    assert_eq!((days_of(2000, 2, 29), civil_of(11_016)), (Some(11_016), (2000, 2, 29)));
}

#[test]
fn each_day_of_400_years_is_itself() {
    for days in 0..=146_097 {
        let (year, month, day) = civil_of(days);
        assert_eq!(days_of(year, month, day), Some(days), "{year}-{month}-{day}");
    }
}

#[test]
fn a_two_digit_year_of_exactly_fifty_years_ahead_lies_ahead_and_late_in_a_century_the_next_one_counts() {
    let ahead = seconds("Sunday, 29-Nov-76 00:00:00 GMT");
    assert!(ahead.is_some() && ahead == seconds("Sun, 29 Nov 2076 00:00:00 GMT"));
    let in_2090 = Duration::from_secs(3_799_958_400);
    let next = http_date("Sunday, 25-Feb-20 00:00:00 GMT", in_2090);
    assert!(next.is_some() && next == http_date("Sun, 25 Feb 2120 00:00:00 GMT", in_2090));
}

#[test]
fn offsets_go_up_to_a_minute_before_a_day() {
    let read = |offset: &str| rfc3339(&format!("2026-11-29T12:00:02{offset}"));
    assert!(read("+23:59").is_some());
    assert_eq!(["+24:00", "+00:60", "-99:00"].map(read), [None; 3]);
}

#[test]
fn the_clocks_of_california_change_on_their_sundays() {
    // The second Sunday of March, the first of November.
    for (year, march, november) in
        [(2024, 10, 3), (2025, 9, 2), (2026, 8, 1), (2027, 14, 7), (2028, 12, 5), (2029, 11, 4)]
    {
        // At seven UTC it is midnight in summer, and eleven at night in winter.
        let begins = |month: u32, day: u32| {
            let now = rfc3339(&format!("{year}-{month:02}-{day:02}T06:59:59Z")).unwrap();
            to_pacific_midnight(now) == Some(Duration::from_secs(1))
        };
        for day in 1..=30 {
            assert_eq!(begins(3, day), day > march, "{year}, March {day}");
            assert_eq!(begins(11, day), day <= november, "{year}, November {day}");
        }
        assert!(begins(4, 1) && begins(10, 31) && !begins(12, 1) && !begins(2, 28));
    }
}

proptest! {
    #[test]
    fn days_are_a_calendar(days in 0_u64..2_932_896) {
        let (year, month, day) = civil_of(days);
        prop_assert_eq!(days_of(year, month, day), Some(days));
    }

    #[test]
    fn a_date_that_another_reader_reads_is_read_alike(seconds in 0_u64..250_000_000_000) {
        let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        prop_assert_eq!(http_date(&text, WALL), Some(Duration::from_secs(seconds)));
    }

    #[test]
    fn no_text_makes_a_date_panic(text in "\\PC{0,40}", now in any::<u64>()) {
        let now = Duration::from_secs(now >> 8);
        let _ = (http_date(&text, now), rfc3339(&text), to_pacific_midnight(now));
    }
}
