//! Bulkheads and rate limiters.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::num::{NonZeroU32, NonZeroU64};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Request, Response};
use seawall::bulkhead::BulkheadLayer as OurBulkhead;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Fault, Verdict, classify, refusal};
use tower::{Layer, Service};
use tower_resilience::bulkhead::BulkheadLayer;
use tower_resilience::ratelimiter::RateLimiterLayer;

use super::{Row, holds};
use crate::drive::TypedEcho;
use crate::theirs::Plain;

const HOUR: Duration = Duration::from_secs(3_600);
const FIVE: Quota = Quota::per_hour(NonZeroU64::new(5).unwrap()).burst(NonZeroU64::new(5).unwrap());

/// A body that has begun and does not end.
struct Stream;

impl http_body::Body for Stream {
    type Data = bytes::Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Answers at once with a stream.
#[derive(Clone)]
struct Streams;

impl Service<Request<()>> for Streams {
    type Response = Response<Stream>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Stream>, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Stream)))
    }
}

/// One look at a call of a clone: `None` while it waits, for readiness or an answer.
fn look<S, Req>(service: &S, request: Req) -> Option<Result<S::Response, S::Error>>
where
    S: Service<Req> + Clone,
{
    let mut service = service.clone();
    let mut cx = Context::from_waker(Waker::noop());
    match service.poll_ready(&mut cx) {
        Poll::Pending => return None,
        Poll::Ready(Err(error)) => return Some(Err(error)),
        Poll::Ready(Ok(())) => {}
    }
    match pin!(service.call(request)).poll(&mut cx) {
        Poll::Pending => None,
        Poll::Ready(result) => Some(result),
    }
}

/// Two calls where one may be at once; the first one's body has not ended.
fn to_the_end<S>(service: &S) -> Result<(), String>
where
    S: Service<Request<()>> + Clone,
{
    let first = look(service, Request::new(()));
    let second = matches!(look(service, Request::new(())), Some(Ok(_)));
    assert!(matches!(first, Some(Ok(_))), "there is room");
    drop(first);
    assert!(matches!(look(service, Request::new(())), Some(Ok(_))), "there is room again");
    holds(!second, || "two streams at once".into())
}

fn permit_to_the_end() -> Row {
    let resilience = BulkheadLayer::builder().max_concurrent_calls(1).reject_when_full().build();
    let found = [
        Some(to_the_end(&OurBulkhead::new(1).refuse().layer(Streams))),
        Some(to_the_end(&tower::limit::ConcurrencyLimit::new(Streams, 1))),
        Some(to_the_end(&resilience.expect("it is sound").layer(Streams))),
        None,
        None,
        None,
    ];
    Row {
        must: "with one call allowed at once, a second one waits or is refused until the first one's body ends",
        found,
    }
}

fn five() -> impl Service<u64, Response = u64, Error = Fault<Infallible>> + Clone {
    let judge = |_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS;
    let builder = TokenBucketLayer::builder().requests(FIVE).classify(classify::from_fn(judge));
    builder.max_wait(Duration::from_millis(100)).build().expect("it is sound").at_head().layer(TypedEcho)
}

/// Readies five clones, drops them, and calls.
fn readied<S>(service: &S) -> Result<(), String>
where
    S: Service<u64> + Clone,
{
    let mut cx = Context::from_waker(Waker::noop());
    (0..5).for_each(|_| assert!(service.clone().poll_ready(&mut cx).is_ready(), "there is room"));
    holds(matches!(look(service, 7), Some(Ok(_))), || "five clones that never called spent five calls".into())
}

fn nothing_is_burnt() -> Row {
    let resilience = RateLimiterLayer::builder().limit_for_period(5).refresh_period(HOUR).backpressure();
    let resilience = resilience.build().expect("it is sound").layer(Plain);
    let found = [Some(readied(&five())), None, Some(readied(&resilience)), None, None, None];
    Row { must: "a clone that is readied and dropped spends nothing of the rate", found }
}

/// Five calls, and one that would have to wait longer than it may.
fn in_vain<S>(service: &S) -> Result<(), String>
where
    S: Service<u64> + Clone,
{
    (0..5).for_each(|_| assert!(matches!(look(service, 7), Some(Ok(_))), "there is room"));
    holds(matches!(look(service, 7), Some(Err(_))), || "it waits, and is refused then".into())
}

fn no_wait_in_vain() -> Row {
    let resilience = RateLimiterLayer::builder().limit_for_period(5).refresh_period(HOUR);
    let resilience = resilience.timeout_duration(Duration::from_millis(100)).build().expect("it is sound");
    let found = [Some(in_vain(&five())), None, Some(in_vain(&resilience.layer(Plain))), None, None, None];
    Row { must: "a call that may wait 100 ms is refused at once where there is room in 12 minutes", found }
}

fn above_the_burst() -> Row {
    let judge = |_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS;
    let builder = TokenBucketLayer::builder().dimension("units", FIVE, |cost: &u64| *cost);
    let layer = builder.classify(classify::from_fn(judge)).build().expect("it is sound");
    let service = layer.at_head().layer(TypedEcho);
    // Refused without a time to come back at, and nothing is taken.
    let refused = match look(&service, 6) {
        Some(Err(error)) => refusal::find(&error).is_some_and(|refusal| refusal.retry_after().is_none()),
        _ => false,
    };
    let ours = refused && matches!(look(&service, 5), Some(Ok(_)));
    let five = NonZeroU32::new(5).expect("it is not zero");
    let governor = governor::RateLimiter::direct(governor::Quota::per_hour(five).allow_burst(five));
    let never = governor.check_n(five.saturating_add(1)).is_err();
    let theirs = never && matches!(governor.check_n(five), Ok(Ok(())));
    let found = [
        Some(holds(ours, || "it is not".into())),
        None,
        None,
        None,
        None,
        Some(holds(theirs, || "it is not".into())),
    ];
    Row { must: "a cost above the burst is refused at once and for good, and takes nothing", found }
}

pub fn rows() -> Vec<Row> {
    vec![permit_to_the_end(), nothing_is_burnt(), no_wait_in_vain(), above_the_burst()]
}
