//! The layer in a stack: waits, deadlines, drops, refusals as responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::call::Key;
use crate::monitor::Event;
use crate::refusal::RefusalKind;
use crate::token_bucket::tests::support::{advance, millis, n, ok, per_second, refusal, request};
use crate::token_bucket::{Quota, TokenBucketLayer};
use crate::{BoxError, Deadline};

fn answering<B: Send + 'static>() -> impl Service<
    Request<B>,
    Response = http::Response<http_body_util::Full<bytes::Bytes>>,
    Error = BoxError,
    Future: Send,
> + Clone {
    tower::service_fn(|_: Request<B>| async { Ok(ok()) })
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_order_at_the_rate() {
    let layer = TokenBucketLayer::new(Quota::per_second(n(2)).burst(n(1)));
    let service = layer.layer(answering());
    let started = crate::time::now();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                service.oneshot(request()).await.unwrap();
                started.elapsed()
            })
        })
        .collect();
    for (place, call) in (0_u32..).zip(calls) {
        let at = call.await.unwrap();
        assert!(at.abs_diff(millis(500) * place) <= millis(2) * (place + 1), "{place} at {at:?}");
    }
    assert_eq!(layer.gate().waiters(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_cannot_be_met_is_refused_at_once_and_says_so() {
    let layer = TokenBucketLayer::new(per_second(1, 1));
    let service = layer.layer(answering());
    service.clone().oneshot(request()).await.unwrap();
    let mut hasty = request();
    hasty.extensions_mut().insert(Deadline::within(millis(999)));
    let error = refusal(&service.clone().oneshot(hasty).await.unwrap_err());
    assert_eq!((error.kind(), error.retry_after()), (RefusalKind::Deadline, Some(Duration::from_secs(1))));
    let mut patient = request();
    patient.extensions_mut().insert(Deadline::within(millis(1_001)));
    service.oneshot(patient).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_the_longest_wait_and_the_deadline_the_shorter_one_is_told() {
    let layer = TokenBucketLayer::builder().requests(per_second(1, 1)).max_wait(millis(10)).build().unwrap();
    let service = layer.layer(answering());
    service.clone().oneshot(request()).await.unwrap();
    for (deadline, kind) in [
        (millis(5), RefusalKind::Deadline),
        // Neither fits, and with all the time in the world it would be refused too.
        (millis(500), RefusalKind::RateLimited),
        (millis(5_000), RefusalKind::RateLimited),
    ] {
        let mut hasty = request();
        hasty.extensions_mut().insert(Deadline::within(deadline));
        let error = refusal(&service.clone().oneshot(hasty).await.unwrap_err());
        assert_eq!((error.kind(), error.retry_after()), (kind, Some(Duration::from_secs(1))), "{deadline:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_it_waits_it_holds_no_slot_of_the_inner_service() {
    let layer = TokenBucketLayer::new(per_second(1, 1));
    let inner = ConcurrencyLimit::new(answering(), 1);
    let service = layer.layer(inner.clone());
    drop(service.clone().oneshot(request()).await.unwrap());
    let mut waits = tokio_test::task::spawn(service.clone().oneshot(request()));
    assert!(waits.poll().is_pending());
    assert!(inner.oneshot(request()).await.is_ok(), "the only slot is free");
    advance(Duration::from_secs(2)).await;
    assert!(waits.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn dropped_after_any_number_of_polls_it_leaves_nothing_behind() {
    for polls in 0..6 {
        let events = Arc::new(AtomicU64::new(0));
        let seen = events.clone();
        let layer = TokenBucketLayer::builder()
            .requests(per_second(1, 1))
            .observer(move |event: &Event<'_>| {
                seen.fetch_add(u64::from(matches!(event, Event::Abandoned { .. })), Ordering::Relaxed);
            })
            .build()
            .unwrap();
        let never = tower::service_fn(|_: Request<http_body_util::Full<bytes::Bytes>>| {
            std::future::pending::<Result<http::Response<http_body_util::Full<bytes::Bytes>>, BoxError>>()
        });
        let service = layer.layer(never);
        let first = layer.layer(answering()).oneshot(request()).await.unwrap();
        first.into_body().collect().await.unwrap();
        let mut call = tokio_test::task::spawn(service.oneshot(request()));
        for _ in 0..polls {
            assert!(call.poll().is_pending());
            advance(millis(300)).await;
        }
        drop(call);
        assert_eq!(layer.gate().waiters(), 0, "after {polls} polls");
        advance(Duration::from_secs(1)).await;
        assert_eq!(layer.gate().level("requests").unwrap().available, 1, "after {polls} polls");
        assert_eq!(events.load(Ordering::Relaxed), u64::from(polls > 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_nobody_may_wait_out_does_not_ask_the_inner_service() {
    let layer = TokenBucketLayer::new(per_second(10, 10));
    let busy = ConcurrencyLimit::new(answering(), 0);
    let service = layer.layer(busy);
    layer.gate().pause(Duration::from_secs(3_600));
    let error = refusal(&service.clone().oneshot(request()).await.unwrap_err());
    let wait = error.retry_after().unwrap();
    assert!((Duration::from_secs(3_600)..=Duration::from_secs(3_601)).contains(&wait), "{wait:?}");
    layer.gate().resume();
    assert!(tokio_test::task::spawn(service.oneshot(request())).poll().is_pending(), "busy again");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_quota_is_heard_by_those_who_wait() {
    let layer = TokenBucketLayer::new(Quota::per_minute(n(6)).burst(n(1)));
    let service = layer.layer(answering());
    service.clone().oneshot(request()).await.unwrap();
    let started = crate::time::now();
    let waits = tokio::spawn(service.clone().oneshot(request()));
    tokio::task::yield_now().await;
    layer.gate().set_quota("requests", Quota::per_minute(n(60)).burst(n(1))).unwrap();
    waits.await.unwrap().unwrap();
    assert!(started.elapsed().abs_diff(Duration::from_secs(1)) <= millis(2), "{:?}", started.elapsed());
    let waits = tokio::spawn(service.oneshot(request()));
    tokio::task::yield_now().await;
    layer.gate().set_quota("requests", Quota::per_hour(n(1)).burst(n(1))).unwrap();
    let error = refusal(&waits.await.unwrap().unwrap_err());
    assert_eq!(error.limit(), Some("1 per 3600s"));
    assert!(started.elapsed() < Duration::from_secs(2), "refused at once");
    assert!(layer.gate().set_quota("token", Quota::per_hour(n(1))).is_err());
}

#[tokio::test(start_paused = true)]
async fn b170_a_client_that_waits_as_long_as_the_header_says_passes() {
    for nanos in [400_000_000, 1_200_000_000, 59_999_000_000] {
        let quota = Quota::one_every(Duration::from_nanos(nanos)).unwrap();
        let layer = TokenBucketLayer::builder().requests(quota).refuse().build().unwrap().respond();
        let service = layer.layer(answering());
        assert_eq!(service.clone().oneshot(request()).await.unwrap().status(), 200);
        let refused = service.clone().oneshot(request()).await.unwrap();
        assert_eq!(refused.status(), 429);
        let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert_eq!(wait, nanos.div_ceil(1_000_000_000));
        advance(Duration::from_secs(wait)).await;
        assert_eq!(service.oneshot(request()).await.unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn every_answer_can_carry_the_state_of_the_limits() {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(60)).burst(n(2)))
        .dimension("pages", Quota::per_minute(n(600)), |_: &Request<_>| 100_u64)
        .keyed_by(|request: &Request<http_body_util::Full<bytes::Bytes>>| {
            Some(Key::from(request.uri().path()))
        })
        .refuse()
        .build()
        .unwrap();
    let headers = layer.headers();
    let service = ServiceBuilder::new().layer(headers).layer(layer.respond()).service(answering());
    let mut left = Vec::new();
    for _ in 0..3 {
        let response = service.clone().oneshot(request()).await.unwrap();
        assert_eq!(response.headers()["ratelimit-policy"], "\"requests\";q=60;w=60, \"pages\";q=600;w=60");
        left.push(response.headers()["ratelimit"].to_str().unwrap().to_owned());
    }
    assert_eq!(left[0], "\"requests\";r=1;t=1, \"pages\";r=500;t=10");
    assert_eq!(left[2], "\"requests\";r=0;t=2, \"pages\";r=400;t=20", "on a refusal too");
    let mut other = request();
    *other.uri_mut() = "/other".parse().unwrap();
    *other.method_mut() = Method::GET;
    let response = service.oneshot(other).await.unwrap();
    assert_eq!(response.headers()["ratelimit"], "\"requests\";r=1;t=1, \"pages\";r=500;t=10");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
}
