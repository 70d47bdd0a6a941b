//! A healthy call of an own type allocates nothing, whatever stands in its way; nor does a refusal.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use seawall::bulkhead::BulkheadLayer;
use seawall::call::Key;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, Fault, Verdict, classify};
use tower::{Layer, Service, ServiceBuilder};

#[derive(Clone, Copy)]
struct Echo;

impl Service<u64> for Echo {
    type Response = u64;
    type Error = Fault<Infallible>;
    type Future = Ready<Result<u64, Fault<Infallible>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> Self::Future {
        ready(Ok(request))
    }
}

/// How many allocations a call makes once the service has been used before; and whether it was served.
fn allocations<S: Service<u64>>(mut service: S) -> (u64, bool) {
    let mut call = || {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(service.poll_ready(&mut cx).is_ready());
        let future = pin!(service.call(7));
        let Poll::Ready(result) = future.poll(&mut cx) else { panic!("it answers at once") };
        black_box(result.is_ok())
    };
    call();
    let mut served = false;
    let counted = allocation_counter::measure(|| served = call());
    (counted.count_total, served)
}

fn good(_: Result<&u64, &Fault<Infallible>>) -> Verdict {
    Verdict::SUCCESS
}

#[tokio::test]
async fn a_healthy_call_allocates_nothing() {
    let breaker = || CircuitBreakerLayer::builder().classify(classify::from_fn(good));
    let key = |_: &u64| Some(Key::from("an upstream"));
    let plain = breaker().build().unwrap().at_head();
    assert_eq!(allocations(plain.layer(Echo)), (0, true), "circuit breaker");
    let keyed = breaker().keyed_by(key).build().unwrap().at_head();
    assert_eq!(allocations(keyed.layer(Echo)), (0, true), "circuit breaker, keyed");
    assert_eq!(allocations(BulkheadLayer::new(4).at_head().layer(Echo)), (0, true), "bulkhead");
    let keyed = BulkheadLayer::builder(4).keyed_by(key).build().unwrap().at_head();
    assert_eq!(allocations(keyed.layer(Echo)), (0, true), "bulkhead, keyed");
    let timeout = TimeoutLayer::new(Duration::from_secs(9)).at_head();
    assert_eq!(allocations(timeout.clone().layer(Echo)), (0, true), "timeout");
    let stack = ServiceBuilder::new()
        .layer(timeout)
        .layer(breaker().build().unwrap().at_head())
        .layer(BulkheadLayer::new(4).at_head())
        .service(Echo);
    assert_eq!(allocations(stack), (0, true), "the three, stacked");
}

#[tokio::test]
async fn a_refusal_allocates_nothing() {
    assert_eq!(allocations(BulkheadLayer::new(0).at_head().layer(Echo)), (0, false), "bulkhead");
    let breaker = CircuitBreakerLayer::builder().classify(classify::from_fn(good)).build().unwrap().at_head();
    breaker.gate().force_open();
    assert_eq!(allocations(breaker.layer(Echo)), (0, false), "circuit breaker");
}

#[tokio::test]
async fn the_counter_counts() {
    let boxing = tower::service_fn(|n: u64| async move { Ok::<_, BoxError>(black_box(Box::new(n))) });
    assert_eq!(allocations(boxing).0, 1, "a test that cannot fail proves nothing");
}
