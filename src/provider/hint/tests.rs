use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::provider::fixtures::WALL;

const HOUR: u64 = 3_600;

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// The wait in milliseconds that a head asks for outright.
fn asked_by(fields: &[(&'static str, &str)]) -> Option<u64> {
    of_headers(&headers(fields), WALL).map(millis)
}

/// The wait in milliseconds that a head with an error body asks for.
fn read_from(fields: &[(&'static str, &str)], body: &str) -> Option<u64> {
    read(&headers(fields), body.as_bytes(), WALL).map(millis)
}

fn millis(wait: Duration) -> u64 {
    assert_eq!(wait.subsec_nanos() % 1_000_000, 0, "whole milliseconds");
    u64::try_from(wait.as_millis()).unwrap()
}

#[test]
fn b155_negative_waits_are_malformed() {
    for field in [("retry-after", "-1"), ("retry-after", "-5"), ("retry-after-ms", "-1")] {
        assert_eq!(asked_by(&[field]), None, "{field:?}");
    }
    // And hide no good value.
    assert_eq!(asked_by(&[("retry-after-ms", "-1"), ("retry-after", "3")]), Some(3_000));
}

#[test]
fn b157_a_date_counts_forward_from_the_date_of_the_response() {
    let wait = |date, retry| asked_by(&[("date", date), ("retry-after", retry)]);
    assert_eq!(wait("Sun, 29 Nov 2026 12:00:00 GMT", "Sun, 29 Nov 2026 12:00:42 GMT"), Some(42_000));
    assert_eq!(wait("Tue, 01 Dec 2026 23:59:30 GMT", "Wed, 02 Dec 2026 00:00:12 GMT"), Some(42_000));
    assert_eq!(wait("Mon, 28 Feb 2028 23:59:30 GMT", "Tue, 29 Feb 2028 00:00:12 GMT"), Some(42_000));
    assert_eq!(wait("Sun, 29 Nov 2026 12:00:42 GMT", "Sun, 29 Nov 2026 12:00:00 GMT"), None, "past");
    // Without a date in the response, or with a broken one, the wall clock serves.
    assert_eq!(asked_by(&[("retry-after", "Sun, 29 Nov 2026 12:00:42 GMT")]), Some(42_000));
    assert_eq!(wait("soon", "Sun, 29 Nov 2026 12:00:42 GMT"), Some(42_000));
}

#[test]
fn b158_decimals_are_rounded_up_and_other_notations_are_malformed() {
    let wait = |text| asked_by(&[("retry-after", text)]);
    assert_eq!(wait("0.503"), Some(503));
    assert_eq!(wait("299.997"), Some(299_997));
    assert_eq!(wait("2.0"), Some(2_000));
    assert_eq!(wait("0.0001"), Some(1));
    assert_eq!(wait("11.382867097855"), Some(11_383));
    assert_eq!(wait("1.00000000000000000000000000000001"), Some(1_001));
    for text in ["1e3", "inf", "nan", "NaN", "1e10000", "1.", ".5", "1.2.3", "1,5", "0x10", "", " ", "5 s"] {
        assert_eq!(wait(text), None, "{text}");
    }
}

#[test]
fn b160_milliseconds_go_before_seconds_if_they_are_valid() {
    assert_eq!(asked_by(&[("retry-after", "1"), ("retry-after-ms", "250")]), Some(250));
    assert_eq!(asked_by(&[("retry-after", "1"), ("retry-after-ms", "25O")]), Some(1_000));
    assert_eq!(asked_by(&[("retry-after-ms", "250")]), Some(250));
    assert_eq!(asked_by(&[("retry-after-ms", "0"), ("retry-after", "1")]), Some(1_000));
}

#[test]
fn b161_a_unix_time_where_seconds_are_due_is_beyond_any_patience() {
    let date = ("date", "Wed, 18 Feb 2026 08:49:00 GMT");
    assert_eq!(of_headers(&headers(&[date, ("retry-after", "1771404540")]), WALL), Some(LONGEST));
}

#[test]
fn b163_a_wait_at_a_cap_is_exact_and_zero_is_none() {
    assert_eq!(asked_by(&[("retry-after", "60")]), Some(60_000));
    for zero in ["0", "0.0", "00"] {
        assert_eq!(asked_by(&[("retry-after", zero)]), None, "{zero}");
    }
}

#[test]
fn b164_what_is_neither_number_nor_date_is_none() {
    for text in ["-3", "+3", "soon", "Jan 1 2030", "Sep 2027", "Wed, 32 Oct 2027 07:28:00 GMT"] {
        assert_eq!(asked_by(&[("retry-after", text)]), None, "{text}");
    }
    assert_eq!(asked_by(&[("retry-after", "1.5")]), Some(1_500), "a number, and no date");
    let past = asked_by(&[("retry-after", "Thu, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "7")]);
    assert_eq!(past, Some(7_000), "a wrong weekday hides no good value");
}

#[test]
fn b167_of_several_values_the_longest_valid_one_counts() {
    for (first, second, wait) in [("5", "120", 120_000), ("soon", "5", 5_000), ("5", "5", 5_000)] {
        for (one, two) in [(first, second), (second, first)] {
            assert_eq!(asked_by(&[("retry-after", one), ("retry-after", two)]), Some(wait));
        }
    }
}

#[test]
fn b169_should_retry_is_true_or_false_exactly() {
    let says = |values: &[&str]| {
        let fields: Vec<_> = values.iter().map(|value| ("x-should-retry", *value)).collect();
        should_retry(&headers(&fields))
    };
    assert_eq!(says(&["false"]), Some(false));
    assert_eq!(says(&["true"]), Some(true));
    assert_eq!(says(&["maybe"]), None);
    assert_eq!(says(&["True"]), None);
    assert_eq!(says(&["true", "false"]), Some(false));
    assert_eq!(says(&["false", "true"]), Some(false));
    assert_eq!(says(&["maybe", "true"]), Some(true));
}

#[test]
fn kinds_of_asking_have_an_order() {
    let body = r#"{"error": {"message": "Please try again in 4s.", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.0001s"}]}}"#;
    let all = [
        ("x-ms-retry-after-ms", "1000"),
        ("retry-after", "2"),
        ("x-amz-retry-after", "2500"),
        ("x-ratelimit-retry-after", "2.75"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "60"),
    ];
    let waits = [1_000, 2_000, 2_500, 2_750, 3_001, 3_001];
    for (skipped, wait) in waits.into_iter().enumerate() {
        assert_eq!(read_from(&all[skipped..], body), Some(wait), "{skipped}");
    }
    let sentence = r#"{"error": {"message": "Please try again in 4s."}}"#;
    assert_eq!(read_from(&all[4..], sentence), Some(4_000));
    assert_eq!(read_from(&all[4..], "{}"), Some(60_000));
    assert_eq!(read_from(&[], "{}"), None);
}

#[test]
fn sentences_tell_a_wait_in_three_ways_and_no_other() {
    let wait =
        |sentence: &str| read_from(&[], &serde_json::json!({"error": {"message": sentence}}).to_string());
    assert_eq!(wait("Rate limit reached. Please try again in 1.146s."), Some(1_146));
    assert_eq!(wait("Please try again in 84ms. Visit us."), Some(84));
    assert_eq!(wait("Please try again in 2m59.56s"), Some(179_560));
    assert_eq!(wait("exceeded token rate limit. Please retry after 37 seconds."), Some(37_000));
    assert_eq!(wait("Quota exceeded. Please retry in 18.523s."), Some(18_523));
    for sentence in [
        "Please try again later",
        "Please try again in -5s",
        "Please try again in a minute",
        "Please retry after 5 tokens",
        "Please try again in ",
        "we retry in 5s",
    ] {
        assert_eq!(wait(sentence), None, "{sentence}");
    }
    // Only the error's own sentence is read.
    assert_eq!(read_from(&[], r#"{"input": "Please try again in 5s", "error": {"message": ""}}"#), None);
}

#[test]
fn a_router_hands_limits_on_inside_the_body() {
    let wait =
        |headers: &str| read_from(&[], &format!(r#"{{"error": {{"metadata": {{"headers": {headers}}}}}}}"#));
    let reset = (WALL.as_millis() + 5_000).to_string();
    assert_eq!(wait(&format!(r#"{{"X-RateLimit-Reset": "{reset}"}}"#)), Some(5_000));
    assert_eq!(wait(&format!(r#"{{"X-RateLimit-Reset": {reset}}}"#)), Some(5_000));
    assert_eq!(wait(r#"{"Retry-After": "9", "X-RateLimit-Reset": "60"}"#), Some(9_000));
    assert_eq!(wait(r#"{"X-RateLimit-Reset": "1"}"#), Some(1_000));
    assert_eq!(wait(r#"{"X-RateLimit-Reset": null}"#), None);
    assert_eq!(wait(r#""X-RateLimit-Reset""#), None);
}

#[test]
fn a_reset_is_read_in_every_form() {
    let epoch = |unit: u128| (WALL.as_nanos() / unit + 45 * (1_000_000_000 / unit)).to_string();
    let forms = [
        "45".to_owned(),
        "45s".to_owned(),
        "44.9999s".to_owned(),
        epoch(1_000_000_000),
        epoch(1_000_000),
        epoch(1_000),
        epoch(1),
        "2026-11-29T12:00:45Z".to_owned(),
        "Sun, 29 Nov 2026 12:00:45 GMT".to_owned(),
    ];
    for form in forms {
        let fields = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", form.as_str())];
        assert_eq!(read_from(&fields, ""), Some(45_000), "{form}");
    }
    for form in ["1m2x", "-1m", "-45", "1700000000", "0", "", "soon", "Sun Nov 29 2026 12:00:45 GMT+0000"] {
        let fields = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", form)];
        assert_eq!(read_from(&fields, ""), None, "{form}");
    }
}

#[test]
fn of_several_limits_the_one_of_which_nothing_is_left_counts() {
    let of_the_day = ("x-ratelimit-reset-requests-day", "60");
    let of_the_minute = ("x-ratelimit-reset-tokens-minute", "5");
    let empty = ("x-ratelimit-remaining-tokens-minute", "0");
    assert_eq!(read_from(&[of_the_day, of_the_minute, empty], ""), Some(5_000));
    assert_eq!(read_from(&[of_the_day, of_the_minute], ""), Some(60_000), "any may be the one");
}

#[test]
fn a_sentence_tells_its_unit_in_a_word() {
    let said = |sentence: &str| read_from(&[], &format!(r#"{{"error":{{"message":"{sentence}"}}}}"#));
    assert_eq!(said("Please retry after 2 minutes."), Some(120_000));
    assert_eq!(said("Please retry in 1 minute, or so."), Some(60_000));
    assert_eq!(said("Please try again in 30 milliseconds."), Some(30));
    assert_eq!(said("Please try again in 1 millisecond"), Some(1));
    assert_eq!(said("Please try again in 3 seconds."), Some(3_000));
    assert_eq!(said("Please try again in 3 days."), None);
}

#[test]
fn a_value_may_have_64_bytes_and_as_many_digits_as_that() {
    let text = |length: usize| HeaderValue::from_str(&"0".repeat(length)).unwrap();
    assert_eq!([64, 65].map(|length| value::text(&text(length)).is_some()), [true, false]);
    let minute = Time::Seconds(60 * u128::from(SECOND));
    assert_eq!(value::time("00000000000000000000060", WALL), Some(minute));
    assert_eq!(value::decimal("0.0000000000001", SECOND), Some(1), "rounded up");
    assert_eq!(value::decimal("1.0000000000000000", SECOND), Some(u128::from(SECOND)));
}

#[test]
fn units_are_summed_and_milliseconds_are_no_minutes() {
    let nanos = |text| value::units(text);
    assert_eq!(nanos("6m0s"), Some(360 * u128::from(SECOND)));
    assert_eq!(nanos("1h2m3s"), Some(3_723 * u128::from(SECOND)));
    assert_eq!(nanos("120ms"), Some(120_000_000));
    assert_eq!(nanos("1.5us"), Some(1_500));
    assert_eq!(nanos("3\u{b5}s2ns"), Some(3_002));
    for text in ["", "s", "1", "1m2x", "-1m", "1 m", "1.m", "1e3s"] {
        assert_eq!(nanos(text), None, "{text}");
    }
}

#[test]
fn only_the_limit_of_which_nothing_is_left_asks_for_its_reset() {
    let day = [("x-ratelimit-remaining-requests-day", "120"), ("x-ratelimit-reset-requests-day", "33011.38")];
    let minute = |left| {
        [("x-ratelimit-remaining-tokens-minute", left), ("x-ratelimit-reset-tokens-minute", "11.3801")]
    };
    assert_eq!(read_from(&[day, minute("0")].concat(), ""), Some(11_381));
    assert_eq!(read_from(&[day, minute("7")].concat(), ""), None, "both have something left");
    let empty = [("x-ratelimit-remaining-requests-day", "0"), day[1]];
    assert_eq!(read_from(&[empty, minute("0")].concat(), ""), Some(33_011_380), "both must pass");
}

#[test]
fn the_time_until_a_bucket_is_full_is_no_wait() {
    let tokens = [
        ("x-ratelimit-limit-tokens", "50000"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "1m0s"),
    ];
    assert_eq!(read_from(&tokens, ""), None, "how much the next one needs is not known");
    let requests = [
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1m0s"),
    ];
    assert_eq!(read_from(&requests, ""), Some(120), "one of them is back after this");
}

#[test]
fn absurd_resets_are_nothing_unless_their_window_is_long() {
    let reset = |name, days: u64| {
        read_from(&[("x-ratelimit-remaining", "0"), (name, &(days * 24 * HOUR).to_string())], "")
    };
    assert_eq!(reset("x-ratelimit-reset", 7), Some(7 * 24 * HOUR * 1_000));
    assert_eq!(reset("x-ratelimit-reset", 8), None);
    assert_eq!(reset("x-ratelimit-reset-month", 20), Some(20 * 24 * HOUR * 1_000));
}

#[test]
fn long_values_and_huge_numbers_are_no_information() {
    let long = "9".repeat(64 * 1024);
    for name in ["retry-after", "retry-after-ms", "x-amz-retry-after", "x-ratelimit-reset", "date"] {
        assert_eq!(read_from(&[(name, &long)], ""), None, "{name}");
        assert_eq!(read_from(&[(name, &long[..40])], ""), None, "{name}");
    }
    let zeros = format!("{}s", "0".repeat(64 * 1024));
    assert_eq!(read_from(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &zeros)], ""), None);
}

fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "date",
        "retry-after",
        "retry-after-ms",
        "x-ms-retry-after-ms",
        "x-amz-retry-after",
        "x-ratelimit-retry-after",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-reset-requests",
        "x-ratelimit-reset-tokens-minute",
        "anthropic-ratelimit-requests-reset",
        "ratelimit",
        "ratelimit-policy",
        "x-should-retry",
    ])
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[-+.0-9smhnuTZ:eE\" ,;=rtqw]{0,24}".prop_map(String::into_bytes),
        "[0-9]{1,22}(\\.[0-9]{1,30})?".prop_map(String::into_bytes),
        "[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn b164_no_bytes_make_a_hint_panic_or_leave_its_range(
        fields in prop::collection::vec((any_name(), any_value()), 0..6),
        body in prop::collection::vec(any::<u8>(), 0..64),
        wall in any::<u32>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, bytes) in fields {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.append(name, value);
            }
        }
        let hint = read(&headers, &body, Duration::from_secs(u64::from(wall)));
        prop_assert!(hint.is_none_or(|wait| !wait.is_zero() && wait <= LONGEST));
        let _ = should_retry(&headers);
    }

    #[test]
    fn a_decimal_is_never_read_as_less_than_it_is(whole in 0_u32..1_000_000, fraction in "[0-9]{1,20}") {
        let text = format!("{whole}.{fraction}");
        let wait = asked_by(&[("retry-after", &text)]).unwrap_or(0);
        let exact: f64 = text.parse().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let told = wait as f64 / 1_000.0;
        prop_assert!(told >= exact - 1e-9 && told < exact + 0.001 + 1e-9, "{} {}", told, exact);
    }
}
