//! The wait that the upstream asks for.

use http::StatusCode;
use tower::{Layer, ServiceExt};

use super::*;
use crate::call::Call;

type Headers = &'static [(&'static str, &'static str)];

/// The waits after a first answer with these headers, then good ones; the status and cause of the end.
async fn waits(
    policy: RetryPolicy,
    status: u16,
    headers: Headers,
    another_target: bool,
) -> (Vec<Duration>, StatusCode, String) {
    let script = [Reply::Says(status, headers), Reply::Says(200, &[])];
    let (upstream, told) = (Upstream::new(script), Told::default());
    let mut request = post();
    request.extensions_mut().insert(Call { another_target, ..Call::default() });
    let response = told.layer(policy).layer(upstream.clone()).oneshot(request).await.unwrap();
    (upstream.gaps(), response.status(), told.last())
}

async fn wait(status: u16, headers: Headers) -> Vec<Duration> {
    waits(steady().build().unwrap(), status, headers, false).await.0
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_waited_out_to_the_millisecond_and_not_a_nanosecond_less() {
    // The own backoff is shorter here, so that it hides nothing.
    let short = || {
        let backoff = Backoff::fixed(ms(10)).jitter(Jitter::None);
        RetryPolicy::builder().backoff(backoff).build().unwrap()
    };
    let (gaps, status, _) = waits(short(), 429, &[("retry-after", "0.847")], false).await;
    assert_eq!((gaps, status), (vec![ms(847)], StatusCode::OK));
    for _ in 0..50 {
        let (gaps, ..) = waits(RetryPolicy::llm(), 429, &[("retry-after", "0.847")], false).await;
        assert!(gaps[0] >= ms(847) && gaps[0] <= ms(847 + 212), "jitter only upwards: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b163_zero_is_the_own_backoff_with_a_floor() {
    assert_eq!(wait(429, &[("retry-after", "0")]).await, [ms(500)]);
    let tiny = || RetryPolicy::builder().ambiguous(true).backoff(Backoff::fixed(ms(1)).jitter(Jitter::None));
    for status in [429, 503] {
        let upstream = Upstream::new([Reply::Says(status, &[("retry-after", "0")])]);
        let policy = tiny().attempts(11).build().unwrap();
        let _ = RetryLayer::new(policy).layer(upstream.clone()).oneshot(post()).await;
        let least = if status == 429 { ms(100) } else { ms(1) };
        assert_eq!(upstream.gaps(), vec![least; 10], "{status}: no hot loop");
    }
}

#[tokio::test(start_paused = true)]
async fn b163_sixty_seconds_are_waited_and_sixty_one_are_not() {
    assert_eq!(wait(429, &[("retry-after", "60")]).await, [secs(60)]);
    let start = time::now();
    let (gaps, status, why) = waits(steady().build().unwrap(), 429, &[("retry-after", "61")], false).await;
    assert_eq!((gaps.len(), status.as_u16(), why.as_str()), (0, 429, "1 Impatient"), "the 429 as it is");
    assert_eq!(time::now(), start, "at once");
    // A unix time where seconds are due, b161, is no wait for a call either.
    assert!(wait(503, &[("retry-after", "1771404540")]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn while_another_target_is_left_two_seconds_are_waited_and_four_are_not() {
    let another = async |headers| waits(steady().build().unwrap(), 429, headers, true).await;
    assert_eq!(another(&[("retry-after", "2")]).await.0, [secs(2)]);
    assert_eq!(another(&[("retry-after", "3")]).await.0, [secs(3)]);
    let (gaps, status, why) = another(&[("retry-after", "4")]).await;
    assert_eq!((gaps.len(), status.as_u16(), why.as_str()), (0, 429, "1 Impatient"));
    assert_eq!(wait(429, &[("retry-after", "4")]).await, [secs(4)], "the last target waits");
    // A long own backoff is no reason either to keep the other target waiting.
    let slow = steady().slow_recovery().build().unwrap();
    assert_eq!(waits(slow, 503, &[], true).await.2, "1 Impatient");
}

#[tokio::test(start_paused = true)]
async fn a_hint_past_the_deadline_stops_at_once() {
    let mut request = post();
    request.extensions_mut().insert(crate::Deadline::within(secs(5)));
    let (upstream, told) = (Upstream::new([Reply::Says(429, &[("retry-after", "5")])]), Told::default());
    let start = time::now();
    let layer = told.layer(steady().build().unwrap());
    let response = layer.layer(upstream.clone()).oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), upstream.calls(), told.last().as_str()), (429, 1, "1 Deadline"));
    assert_eq!((time::now(), response.headers()["retry-after"].as_bytes()), (start, &b"5"[..]));
}

#[tokio::test(start_paused = true)]
async fn the_spread_above_a_hint_gives_way_to_the_deadline() {
    for _ in 0..500 {
        let mut request = post();
        request.extensions_mut().insert(crate::Deadline::within(ms(4010)));
        let upstream = Upstream::new([Reply::Says(429, &[("retry-after", "4")]), Reply::Says(200, &[])]);
        let response =
            RetryLayer::new(RetryPolicy::llm()).layer(upstream.clone()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(upstream.gaps()[0] < ms(4010));
    }
}

#[tokio::test(start_paused = true)]
async fn b155_b158_b164_what_is_no_hint_is_the_own_backoff() {
    let malformed: [Headers; 12] = [
        &[("retry-after", "-1")],
        &[("retry-after", "-5")],
        &[("retry-after-ms", "-1")],
        &[("retry-after", "1e3")],
        &[("retry-after", "inf")],
        &[("retry-after", "nan")],
        &[("retry-after", "1e10000")],
        &[("retry-after", "+3")],
        &[("retry-after", "soon")],
        &[("retry-after", "Jan 1 2030")],
        &[("retry-after", "Wed, 32 Oct 2027 07:28:00 GMT")],
        &[("retry-after", "")],
    ];
    for headers in malformed {
        assert_eq!(wait(503, headers).await, [ms(500)], "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b157_b158_b160_b166_b167_hints_in_all_their_forms() {
    let right: [(Headers, u64); 10] = [
        (&[("retry-after", "2.0")], 2000),
        (&[("retry-after", "1.503")], 1503),
        (&[("retry-after", "59.997")], 59_997),
        (&[("retry-after", "1"), ("retry-after-ms", "750")], 750),
        (&[("retry-after", "1"), ("retry-after-ms", "soon")], 1000),
        (&[("retry-after-ms", "750")], 750),
        (&[("retry-after", "5"), ("retry-after", "12")], 12_000),
        (&[("retry-after", "soon"), ("retry-after", "5")], 5000),
        (
            &[("date", "Wed, 28 Feb 2024 23:59:30 GMT"), ("retry-after", "Thu, 29 Feb 2024 00:00:12 GMT")],
            42_000,
        ),
        (&[("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun Nov  6 08:50:19 1994")], 42_000),
    ];
    for (headers, millis) in right {
        assert_eq!(wait(503, headers).await, [ms(millis)], "{headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b169_should_retry_goes_before_the_class() {
    let calls = async |status, headers: Headers| {
        let upstream = Upstream::new([Reply::Says(status, headers)]);
        let _ = RetryLayer::new(steady().build().unwrap()).layer(upstream.clone()).oneshot(post()).await;
        upstream.calls()
    };
    assert_eq!(calls(503, &[("x-should-retry", "false")]).await, 1);
    assert_eq!(calls(400, &[("x-should-retry", "true")]).await, 3);
    assert_eq!(calls(503, &[("x-should-retry", "maybe")]).await, 3);
    assert_eq!(calls(400, &[("x-should-retry", "maybe")]).await, 1);
    assert_eq!(calls(503, &[("x-should-retry", "true"), ("x-should-retry", "false")]).await, 1);
}
