//! What an upstream says of its limits, and what is made of it.

use std::time::Duration;

use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};

use crate::BoxError;
use crate::refusal::RefusalKind;
use crate::token_bucket::tests::support::{advance, millis, n, refusal};
use crate::token_bucket::{
    Level, Quota, ReadLimits, RetryAfter, Said, Stated, TokenBucket, TokenBucketLayer,
};
use crate::{Class, Verdict};

type Head = Response<http_body_util::Empty<bytes::Bytes>>;

/// Answers with this status and these headers.
fn answering(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
) -> impl Service<Request<()>, Response = Head, Error = BoxError, Future: Send> + Clone {
    tower::service_fn(move |_: Request<()>| async move {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        Ok(response.body(http_body_util::Empty::new())?)
    })
}

fn hint(headers: &'static [(&'static str, &'static str)]) -> Option<Duration> {
    let mut response = Response::new(());
    for (name, value) in headers {
        response.headers_mut().append(*name, value.parse().unwrap());
    }
    let mut wait = None;
    RetryAfter.read(&response, Verdict::new(Class::Throttled), &mut |said| match said {
        Said::Wait(said) => wait = Some(said),
        Said::Limit(_) | Said::Used(_) => unreachable!(),
    });
    RetryAfter.read(&response, Verdict::SUCCESS, &mut |_| panic!("a good answer throttles nobody"));
    wait
}

#[test]
fn b155_b158_b161_b163_what_is_malformed_is_no_hint_and_decimals_round_up() {
    for text in ["-1", "-5", "+3", "1e3", "inf", "nan", "1e10000", "", "soon", "1771404540", "0", "1,5", "."]
    {
        let headers: &'static _ = Box::leak(Box::new([("retry-after", text)]));
        assert_eq!(hint(headers), None, "{text}");
    }
    assert_eq!(hint(&[("retry-after-ms", "-1")]), None);
    assert_eq!(hint(&[("retry-after", "0.503")]), Some(millis(503)));
    assert_eq!(hint(&[("retry-after", "299.997")]), Some(millis(299_997)));
    assert_eq!(hint(&[("retry-after", "0.0000000001")]), Some(Duration::from_nanos(1)));
}

#[test]
fn b160_b167_milliseconds_go_first_and_the_longest_of_several_counts() {
    assert_eq!(hint(&[("retry-after", "1"), ("retry-after-ms", "250")]), Some(millis(250)));
    assert_eq!(hint(&[("retry-after", "1"), ("retry-after-ms", "x")]), Some(millis(1_000)));
    assert_eq!(hint(&[("retry-after", "5"), ("retry-after", "120")]), Some(Duration::from_secs(120)));
    assert_eq!(hint(&[("retry-after", "soon"), ("retry-after", "5")]), Some(Duration::from_secs(5)));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_answer_pauses_everybody_until_its_hint_is_over() {
    let layer = TokenBucketLayer::builder().requests(Quota::per_second(n(100))).refuse().build().unwrap();
    let throttled = layer.layer(answering(429, &[("retry-after", "20")]));
    let fine = layer.layer(answering(200, &[("retry-after", "20")]));
    fine.clone().oneshot(Request::new(())).await.unwrap();
    fine.clone().oneshot(Request::new(())).await.unwrap();
    throttled.oneshot(Request::new(())).await.unwrap();
    let error = refusal(&fine.clone().oneshot(Request::new(())).await.unwrap_err());
    let wait = error.retry_after().unwrap();
    assert_eq!((error.kind(), error.dimension()), (RefusalKind::RateLimited, None));
    assert!((Duration::from_secs(20)..=Duration::from_millis(21_250)).contains(&wait), "{wait:?}");
    advance(wait.saturating_sub(Duration::from_nanos(1))).await;
    assert!(fine.clone().oneshot(Request::new(())).await.is_err());
    advance(Duration::from_nanos(1)).await;
    assert!(fine.oneshot(Request::new(())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn those_a_pause_held_up_come_back_one_by_one() {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_second(n(100)))
        .max_wait(Duration::from_secs(60))
        .build()
        .unwrap();
    layer.layer(answering(429, &[("retry-after", "20")])).oneshot(Request::new(())).await.unwrap();
    let started = crate::time::now();
    let fine = layer.layer(answering(200, &[]));
    let calls = (0..50).map(|_| {
        let fine = fine.clone();
        tokio::spawn(async move {
            fine.oneshot(Request::new(())).await.map(drop).unwrap();
            started.elapsed()
        })
    });
    let mut times = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        times.push(call.await.unwrap());
    }
    assert!(times.iter().all(|time| *time >= Duration::from_secs(20)));
    let spread = times.last().unwrap().saturating_sub(times[0]);
    assert!((Duration::from_secs(1)..Duration::from_secs(7)).contains(&spread), "{spread:?}");
    times.dedup_by_key(|time| time.as_millis() / 100);
    assert!(times.len() >= 15, "{} tenths of a second for 50 calls", times.len());
}

#[tokio::test(start_paused = true)]
async fn other_failures_and_absurd_hints_pause_nobody() {
    let layer = TokenBucketLayer::builder().requests(Quota::per_second(n(100))).refuse().build().unwrap();
    for (status, headers) in [
        (503, &[("retry-after", "20")][..]),
        (400, &[("retry-after", "20")]),
        (429, &[]),
        (429, &[("retry-after", "1771404540")]),
    ] {
        layer.layer(answering(status, headers)).oneshot(Request::new(())).await.unwrap();
        assert_eq!(layer.gate().paused_for(), Duration::ZERO, "{status} {headers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_hint_pauses_no_longer_than_allowed() {
    let builder = TokenBucketLayer::builder().requests(Quota::per_second(n(100)));
    let layer = builder.max_pause(Duration::from_secs(60)).build().unwrap();
    layer.layer(answering(429, &[("retry-after", "86400")])).oneshot(Request::new(())).await.unwrap();
    assert!(layer.gate().paused_for() < Duration::from_secs(65));
    layer.gate().resume();
    assert_eq!(layer.gate().paused_for(), Duration::ZERO);
}

/// A bucket of 60 requests a minute whose upstream states `stated` in its next answer.
async fn after(stated: Stated<'static>) -> (Level, TokenBucket<impl Sized, impl Sized>) {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(60)).burst(n(60)))
        .limits(move |_: &Head, _: Verdict, say: &mut dyn FnMut(Said<'_>)| say(Said::Limit(stated)))
        .build()
        .unwrap();
    layer.layer(answering(200, &[])).oneshot(Request::new(())).await.unwrap();
    (layer.gate().level("requests").unwrap(), layer.gate().clone())
}

fn stated(limit: Option<u64>, remaining: Option<u64>, window: Option<u64>) -> Stated<'static> {
    let window = window.map(Duration::from_secs);
    Stated { window, limit, remaining, ..Stated::new("requests") }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_upstream_lowers_the_level_and_never_raises_it() {
    let (level, bucket) = after(stated(None, Some(5), None)).await;
    assert_eq!(level.available, 5);
    advance(Duration::from_secs(10)).await;
    assert_eq!(bucket.level("requests").unwrap().available, 15, "and it fills again");
    assert_eq!(after(stated(Some(60), Some(60), Some(60))).await.0.available, 59);
    assert_eq!(after(stated(None, Some(0), Some(60))).await.0.available, 0);
    assert_eq!(after(stated(None, Some(3), Some(86_400))).await.0.available, 3, "of the day");
    assert_eq!(after(stated(None, Some(3), Some(1))).await.0.available, 59, "of a second");
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_upstream_lowers_rate_and_burst_and_a_higher_one_changes_nothing() {
    let (level, _) = after(stated(Some(30), None, Some(60))).await;
    assert_eq!((level.burst, level.unit_every), (30, Duration::from_secs(2)));
    let (level, _) = after(stated(Some(600), None, Some(60))).await;
    assert_eq!((level.burst, level.unit_every, level.available), (60, Duration::from_secs(1), 59));
    let (level, _) = after(stated(Some(14_400), None, Some(86_400))).await;
    assert_eq!(level.unit_every, Duration::from_secs(1), "the day's limit is no rate by the minute");
}

#[tokio::test(start_paused = true)]
async fn nonsense_changes_nothing() {
    for nonsense in [
        stated(Some(0), Some(0), Some(60)),
        stated(Some(5), Some(6), Some(60)),
        stated(Some(u64::MAX), Some(2), Some(60)),
        stated(Some(5), Some(2), Some(0)),
        Stated { remaining: Some(0), ..Stated::new("tokens") },
    ] {
        let (level, _) = after(nonsense).await;
        assert_eq!((level.available, level.burst), (59, 60), "{nonsense:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_learned_limit_goes_back_up_to_the_configuration_and_no_further() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let limit = Arc::new(AtomicU64::new(30));
    let said = limit.clone();
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(60)))
        .limits(move |_: &Head, _: Verdict, say: &mut dyn FnMut(Said<'_>)| {
            say(Said::Limit(stated(Some(said.load(Ordering::Relaxed)), None, Some(60))));
        })
        .build()
        .unwrap();
    let service = layer.layer(answering(200, &[]));
    for (limit_now, unit_every) in [(30, 2), (6_000, 1), (15, 4), (60, 1)] {
        limit.store(limit_now, Ordering::Relaxed);
        service.clone().oneshot(Request::new(())).await.unwrap();
        assert_eq!(layer.gate().level("requests").unwrap().unit_every, Duration::from_secs(unit_every));
    }
}
