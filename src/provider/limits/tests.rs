use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::provider::fixtures::{self, WALL};

const MINUTE: Duration = Duration::from_secs(60);

fn read(fields: &[(&'static str, &str)]) -> Limits {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    Limits::read(&headers, WALL)
}

fn sample(file: &str) -> Limits {
    Limits::read(&fixtures::load(file).headers, Duration::ZERO)
}

/// Dimension, window in seconds, limit and what is left, in a stable order.
type Short = (Dimension, Option<u64>, Option<u64>, Option<u64>);

fn short(limits: &Limits) -> Vec<Short> {
    let mut all: Vec<_> = limits.iter().map(of_one).collect();
    all.sort_by_key(|short| (format!("{:?}", short.0), short.1));
    all
}

fn of_one(limit: &Limit) -> Short {
    (limit.dimension, limit.window.map(|window| window.as_secs()), limit.limit, limit.remaining)
}

fn only(fields: &[(&'static str, &str)]) -> Limit {
    let limits = read(fields);
    assert_eq!(limits.iter().count(), 1, "{limits:?}");
    *limits.iter().next().unwrap()
}

use Dimension::{InputTokens, OutputTokens, Requests, Tokens, UncachedInputTokens};

#[test]
fn openai_tells_levels_and_with_them_the_windows() {
    let limits = sample("openai-chat-ok-go-durations.http");
    let day = Some(86_400);
    assert_eq!(
        short(&limits),
        [(Requests, day, Some(240), Some(239)), (Tokens, Some(60), Some(200_000), Some(199_933))]
    );
    let requests = limits.of(Requests).next().unwrap();
    assert_eq!(requests.reset, Some(Reset::Full(Duration::from_secs(360))));
    assert_eq!(requests.refill(), Some(Refill { units: 240, per: Duration::from_secs(86_400) }));
}

#[test]
fn the_same_names_can_be_a_day_at_one_provider_and_a_minute_at_another() {
    let limits = sample("groq-429-daily-requests.http");
    assert_eq!(
        short(&limits),
        [(Requests, Some(86_400), Some(14_400), Some(0)), (Tokens, Some(60), Some(18_000), Some(15_702)),]
    );
}

#[test]
fn a_level_that_is_mostly_rounding_tells_no_rate() {
    let limit = only(&[
        ("x-ratelimit-limit-tokens", "200000"),
        ("x-ratelimit-remaining-tokens", "199996"),
        ("x-ratelimit-reset-tokens", "1ms"),
    ]);
    assert_eq!((limit.window, limit.refill()), (None, None));
}

#[test]
fn an_odd_window_still_tells_the_rate() {
    // 10 of 100 are back after 30 s: a window of five minutes.
    let limit = only(&[
        ("x-ratelimit-limit-requests", "100"),
        ("x-ratelimit-remaining-requests", "90"),
        ("x-ratelimit-reset-requests", "30s"),
    ]);
    assert_eq!(limit.window, None);
    assert_eq!(limit.refill(), Some(Refill { units: 10, per: Duration::from_secs(30) }));
}

#[test]
fn anthropic_names_the_kind_first_and_dates_its_levels() {
    let limits = sample("anthropic-429-retry-after.http");
    assert_eq!(
        short(&limits),
        [
            (InputTokens, Some(60), Some(30_000), Some(0)),
            (OutputTokens, Some(60), Some(8_000), Some(8_000)),
            (Requests, Some(60), Some(50), Some(48)),
            (Tokens, Some(60), Some(38_000), Some(8_000)),
        ]
    );
    let input = limits.of(InputTokens).next().unwrap();
    assert_eq!(input.reset, Some(Reset::Full(MINUTE)));
    // Subscriptions have other headers under the same beginning.
    assert!(read(&[("anthropic-ratelimit-unified-5h-reset", "1770685200")]).is_empty());
}

#[test]
fn azure_says_unknown_with_numbers_that_cannot_be() {
    assert!(
        read(&[
            ("x-ratelimit-limit-tokens", "-1"),
            ("x-ratelimit-remaining-tokens", "-1"),
            ("x-ratelimit-reset-tokens", "0"),
        ])
        .is_empty()
    );
    assert!(read(&[("x-ratelimit-limit-requests", "0"), ("x-ratelimit-remaining-requests", "0")]).is_empty());
    let limit = only(&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "20")]);
    assert_eq!(limit.reset, Some(Reset::Window(Duration::from_secs(20))), "whole seconds are a wait");
    assert_eq!(limit.remaining, Some(0), "nothing left is no unknown");
}

#[test]
fn mistral_names_the_window_or_counts_by_size() {
    let limits = sample("mistral-429-capacity.http");
    assert_eq!(
        short(&limits),
        [(Requests, Some(60), Some(60), Some(59)), (Tokens, Some(60), Some(50_000), Some(48_700)),]
    );
    let limit = only(&[
        ("ratelimitbysize-limit", "500000"),
        ("ratelimitbysize-remaining", "0"),
        ("ratelimitbysize-reset", "28"),
        ("ratelimitbysize-query-cost", "1300"),
    ]);
    assert_eq!(limit.reset, Some(Reset::Window(Duration::from_secs(28))));
    assert_eq!(
        short(&read(&[("x-ratelimitbysize-limit-month", "9"), ("x-ratelimit-limit-tokens-5-minute", "7")])),
        [(Tokens, Some(300), Some(7), None), (Tokens, Some(2_592_000), Some(9), None),]
    );
}

#[test]
fn cerebras_resets_are_waits_in_decimal_seconds() {
    let limits = sample("cerebras-429-float-seconds.http");
    assert_eq!(
        short(&limits),
        [(Requests, Some(86_400), Some(14_400), Some(120)), (Tokens, Some(60), Some(60_000), Some(0)),]
    );
    let reset = limits.of(Tokens).next().unwrap().reset;
    assert!(matches!(reset, Some(Reset::Window(wait)) if wait.as_millis() == 11_382));
}

#[test]
fn together_counts_by_the_second() {
    let limits = read(&[
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "9"),
        ("x-ratelimit-reset", "1"),
        ("x-tokenlimit-limit", "3000"),
        ("x-tokenlimit-remaining", "2900"),
    ]);
    assert_eq!(
        short(&limits),
        [(Requests, Some(1), Some(10), Some(9)), (Tokens, Some(1), Some(3_000), Some(2_900)),]
    );
}

#[test]
fn fireworks_splits_the_prompt_and_serves_beyond_the_limit() {
    let limits = read(&[
        ("x-ratelimit-limit-requests", "600"),
        ("x-ratelimit-limit-tokens-prompt", "3600000"),
        ("x-ratelimit-limit-tokens-cache-adjusted-prompt", "900000"),
        ("x-ratelimit-remaining-tokens-generated", "36000"),
        ("x-ratelimit-over-limit", "yes"),
    ]);
    assert_eq!(
        short(&limits),
        [
            (InputTokens, None, Some(3_600_000), None),
            (OutputTokens, None, None, Some(36_000)),
            (Requests, None, Some(600), None),
            (UncachedInputTokens, None, Some(900_000), None),
        ]
    );
    assert!(limits.is_over_limit());
    assert!(!read(&[("x-ratelimit-over-limit", "no")]).is_over_limit());
}

#[test]
fn xai_and_generic_servers_use_the_plain_names() {
    assert_eq!(
        short(&read(&[("x-ratelimit-limit-requests", "480"), ("x-ratelimit-remaining-requests", "479")])),
        [(Requests, None, Some(480), Some(479))]
    );
    let limit = only(&[
        ("x-rate-limit-limit-minute", "100, 100;window=60"),
        ("x-rate-limit-remaining-minute", "4"),
        ("x-rate-limit-reset-minute", "30s"),
    ]);
    assert_eq!(of_one(&limit), (Requests, Some(60), Some(100), Some(4)));
    let bare = only(&[("x-ratelimit-limit", "100"), ("x-ratelimit-reset", "30s")]);
    assert_eq!(bare.reset, Some(Reset::Window(Duration::from_secs(30))), "no level without a dimension");
}

#[test]
fn the_drafts_of_the_ietf_are_read_each_in_its_grammar() {
    let third = only(&[
        ("ratelimit-limit", "10, 10;w=1, 50;w=60"),
        ("ratelimit-remaining", "9"),
        ("ratelimit-reset", "36000"),
    ]);
    assert_eq!(of_one(&third), (Requests, Some(1), Some(10), Some(9)));
    assert_eq!(third.reset, Some(Reset::Window(Duration::from_secs(36_000))));

    let seventh = only(&[
        ("ratelimit", "limit=100, remaining=50, reset=5"),
        ("ratelimit-policy", "100;w=10, 1000;w=3600"),
    ]);
    assert_eq!(of_one(&seventh), (Requests, Some(10), Some(100), Some(50)));

    let tenth = sample("ietf-429-draft10.http");
    assert_eq!(
        short(&tenth),
        [(Requests, Some(60), Some(50), Some(0)), (Requests, Some(86_400), Some(1_000), Some(600)),]
    );
    // Over two lines, with a comma inside a name, a partition, and a unit that is no rate.
    let split = read(&[
        ("ratelimit", r#""a,b";r=3;t=4;pk=:cHM=:"#),
        ("ratelimit", r#""busy";r=1"#),
        ("ratelimit-policy", r#""a,b";q=5;w=60, "busy";q=2;qu="concurrent-requests""#),
    ]);
    assert_eq!(short(&split), [(Requests, Some(60), Some(5), Some(3))]);
}

#[test]
fn a_malformed_field_of_the_ietf_is_ignored_whole() {
    for field in [
        r#""a";r=-1;t=5"#,
        r#""a";r=1;t=5, "#,
        r#""a;r=1;t=5"#,
        r#""a";r=1.5;t=5"#,
        "limit=100, remaining=x",
        "limit=10000000000000000",
        "\u{e9}",
        "",
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("ratelimit", HeaderValue::from_bytes(field.as_bytes()).unwrap());
        assert!(Limits::read(&headers, WALL).is_empty(), "{field}");
    }
}

#[test]
fn what_cannot_be_is_not_said() {
    let limit = only(&[("x-ratelimit-limit-requests", "10"), ("x-ratelimit-remaining-requests", "11")]);
    assert_eq!(limit.remaining, None, "more than the limit");
    for text in ["-5", "1e9", "NaN", "inf", "", "12abc", "99999999999999999999999", "1000000000000001"] {
        let limits =
            read(&[("x-ratelimit-limit-tokens", text), ("x-ratelimit-remaining-input-tokens", text)]);
        assert!(limits.is_empty(), "{text}");
    }
    for name in ["x-ratelimit-limit-project-tokens", "x-ratelimit-limit-tokens_usage_based", "x-ratelimit-"] {
        assert!(read(&[(name, "5")]).is_empty(), "{name}: another bucket");
    }
}

#[test]
fn of_several_values_the_cautious_one_counts() {
    let limit = only(&[
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-limit", "60"),
        ("x-ratelimit-remaining", "4"),
        ("x-ratelimit-remaining", "40"),
        ("x-ratelimit-reset", "5"),
        ("x-ratelimit-reset", "50"),
        ("x-ratelimit-reset", "soon"),
    ]);
    assert_eq!(of_one(&limit), (Requests, None, Some(60), Some(4)));
    assert_eq!(limit.reset, Some(Reset::Window(Duration::from_secs(50))));
}

#[test]
fn long_fields_and_many_members_stay_bounded() {
    let long = format!("\"{}\";r=1", "a".repeat(64 * 1024));
    assert!(read(&[("ratelimit", &long)]).is_empty());
    let many = vec!["\"a\";r=1"; 500].join(",");
    assert_eq!(read(&[("ratelimit", &many)]).iter().count(), MOST);
}

#[test]
fn a_full_bucket_tells_no_rate_and_the_shortest_time_that_is_no_rounding_does() {
    let of = |limit, left, reset| {
        only(&[
            ("x-ratelimit-limit-requests", limit),
            ("x-ratelimit-remaining-requests", left),
            ("x-ratelimit-reset-requests", reset),
        ])
    };
    let full = of("100", "100", "30s");
    assert_eq!((full.window, full.refill()), (None, None));
    assert_eq!(of("6000", "5999", "10ms").window, Some(MINUTE));
    assert!(!read(&[("x-ratelimit-limit-requests", "100")]).is_empty());
}

#[test]
fn a_reset_of_more_than_a_week_is_for_windows_of_a_day_or_more() {
    let reset = |name, limit| only(&[(limit, "10"), (name, "800000")]).reset;
    assert_eq!(reset("x-ratelimit-reset-requests-hour", "x-ratelimit-limit-requests-hour"), None);
    let long = Some(Reset::Window(Duration::from_secs(800_000)));
    assert_eq!(reset("x-ratelimit-reset-requests-day", "x-ratelimit-limit-requests-day"), long);
}

#[test]
fn of_two_equal_times_the_first_counts() {
    let resets = |first, second| {
        let name = "x-ratelimit-reset-requests";
        only(&[("x-ratelimit-limit-requests", "5"), (name, first), (name, second)]).reset
    };
    assert_eq!(resets("60s", "60"), Some(Reset::Full(MINUTE)));
    assert_eq!(resets("60", "60s"), Some(Reset::Window(MINUTE)));
}

#[test]
fn policies_that_say_nothing_of_now_are_limits_too() {
    let limits = read(&[
        ("ratelimit", r#""a";r=5;t=10"#),
        ("ratelimit-policy", r#""a";q=10;w=60, "b";q=100;w=3600, "c";q=7;w=0"#),
    ]);
    let all = [
        (Requests, None, Some(7), None),
        (Requests, Some(60), Some(10), Some(5)),
        (Requests, Some(3_600), Some(100), None),
    ];
    assert_eq!(short(&limits), all);
    let resets: Vec<_> = limits.iter().filter_map(|limit| limit.reset).collect();
    assert_eq!(resets, [Reset::Window(Duration::from_secs(10))]);
    assert_eq!(only(&[("ratelimit-limit", "10, 10;w=0")]).window, None);
    let nothing = only(&[("ratelimit", "limit=0, remaining=0, reset=5")]);
    assert_eq!((nothing.limit, nothing.remaining), (None, Some(0)), "a limit of nothing is unknown");
}

#[test]
fn numbers_of_fields_have_up_to_15_digits_and_quotes_hold_what_they_hold() {
    let limit =
        |policy: &str| read(&[("ratelimit-policy", policy)]).iter().next().and_then(|limit| limit.limit);
    assert_eq!(limit(r#""a";q=100000000000000"#), Some(100_000_000_000_000));
    for malformed in [r#""a";q=0000000000000005"#, r#""a";q=+5"#, r#""a";q="#, r#""a";q=5x"#] {
        assert_eq!(limit(malformed), None, "{malformed}");
    }
    assert_eq!(limit(r#""a\",b";q=5;w=60"#), Some(5));
    assert_eq!(limit(r#""a;q=1,b";q=5;w=60"#), Some(5));
}

#[test]
fn windows_and_limits_are_known_by_their_names() {
    for (name, window) in [
        ("x-ratelimit-limit-requests-second", 1),
        ("x-ratelimit-limit-requests-minute", 60),
        ("x-ratelimit-limit-requests-5-minute", 300),
        ("x-ratelimit-limit-requests-hour", 3_600),
        ("x-ratelimit-limit-requests-day", 86_400),
        ("x-ratelimit-limit-requests-month", 30 * 86_400),
        ("x-endpoint-monthly-call-limit", 30 * 86_400),
    ] {
        assert_eq!(of_one(&only(&[(name, "9")])), (Requests, Some(window), Some(9), None), "{name}");
    }
    let trial = only(&[("x-trial-endpoint-call-limit", "20"), ("x-trial-endpoint-call-remaining", "5")]);
    assert_eq!(of_one(&trial), (Requests, None, Some(20), Some(5)));
}

fn any_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-limit",
        "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
        "anthropic-ratelimit-tokens-reset",
        "ratelimitbysize-limit",
        "x-tokenlimit-limit",
    ])
}

fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[-0-9,;=\"a-z .rtqw]{0,40}".prop_map(String::into_bytes),
        "[0-9]{1,22}(ms|s|m|h)?".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_a_limit_panic_or_lie(
        fields in prop::collection::vec((any_name(), any_value()), 0..8),
    ) {
        let mut headers = HeaderMap::new();
        for (name, bytes) in fields {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.append(name, value);
            }
        }
        for limit in Limits::read(&headers, WALL).iter() {
            prop_assert!(limit.limit != Some(0));
            prop_assert!(limit.limit.zip(limit.remaining).is_none_or(|(limit, left)| left <= limit));
            prop_assert!(limit.refill().is_none_or(|refill| refill.units > 0 && !refill.per.is_zero()));
            let _ = limit.wait();
        }
    }
}

#[test]
fn whatever_says_something_is_seen_by_the_quick_look() {
    for name in [
        "x-ratelimit-limit-requests",
        "x-rate-limit-remaining-minute",
        "x-ratelimitbysize-remaining",
        "ratelimitbysize-limit",
        "ratelimit-limit",
        "ratelimit",
        "anthropic-ratelimit-tokens-limit",
        "x-tokenlimit-limit",
        "x-endpoint-monthly-call-limit",
        "x-trial-endpoint-call-limit",
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        assert!(!Limits::may_be_in(&headers));
        headers.insert(name, "1".parse().unwrap());
        assert!(Limits::may_be_in(&headers), "{name}");
    }
}
