//! Bulkheads.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer as OurBulkhead;
use tower::{Layer, Service};
use tower_resilience::bulkhead::BulkheadLayer;

use super::{Row, holds};

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
pub fn look<S, Req>(service: &S, request: Req) -> Option<Result<S::Response, S::Error>>
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

/// The same through throttle-net's bulkhead, which is no layer: as it makes calls itself.
fn in_throttle_nets() -> Result<(), String> {
    let bulkhead = throttle_net::Bulkhead::new(1);
    let call = || {
        let made = pin!(bulkhead.try_call(|| Streams.call(Request::new(()))));
        match made.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(Ok(response))) => Some(response),
            _ => None,
        }
    };
    let first = call();
    let second = call().is_some();
    assert!(first.is_some(), "there is room");
    drop(first);
    assert!(call().is_some(), "there is room again");
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
        Some(in_throttle_nets()),
    ];
    Row {
        must: "with one call allowed at once, a second one waits or is refused until the first one's body ends",
        found,
    }
}

pub fn rows() -> Vec<Row> {
    vec![permit_to_the_end()]
}
