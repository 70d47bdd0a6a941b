//! What a layer costs a healthy call, and what a refusal costs, over the bare service and beside tower's
//! `ConcurrencyLimit` in the same run: compare ratios, not nanoseconds of two runs.
#![allow(missing_docs, reason = "a bench has no users")]

mod support;

use std::convert::Infallible;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use http::Request;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::Key;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::gate::{Admission, Gate, GateLayer};
use seawall::{BoxError, Fault, Refusal, RefusalKind, Verdict, classify};
use tower::limit::ConcurrencyLimit;
use tower::timeout::Timeout;
use tower::{Layer, Service};

use support::{Echo, HttpEcho, TypedEcho, call, drain};

/// A gate that decides nothing: the cost of the service itself.
#[derive(Clone, Copy)]
struct Open;

impl<Req> Gate<Req> for Open {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    #[inline]
    fn admit(&self, _request: &mut Req) -> Admission<(), Self::Wait> {
        Admission::Now(())
    }
}

#[derive(Clone, Copy)]
struct Closed;

impl<Req> Gate<Req> for Closed {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    #[inline]
    fn admit(&self, _request: &mut Req) -> Admission<(), Self::Wait> {
        Admission::Refused(Refusal::new(RefusalKind::Custom))
    }
}

fn own<S: Service<u64>>(c: &mut Criterion, group: &str, name: &str, mut service: S) {
    c.benchmark_group(group).bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter(|| black_box(call(&mut service, black_box(7)).is_ok()));
    });
}

fn http<S, B>(c: &mut Criterion, name: &str, mut service: S)
where
    S: Service<Request<()>, Response = http::Response<B>>,
    B: http_body::Body,
{
    c.benchmark_group("http").bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter(|| {
            let Ok(response) = call(&mut service, Request::new(())) else { panic!("a healthy call") };
            drain(response.into_body());
        });
    });
}

/// Own types ask for a classifier: this one finds every answer good.
fn good(_: Result<&u64, &BoxError>) -> Verdict {
    Verdict::SUCCESS
}

fn healthy(c: &mut Criterion) {
    own(c, "head", "bare", Echo);
    own(c, "head", "tower_concurrency_limit", ConcurrencyLimit::new(Echo, 64));
    own(c, "head", "tower_timeout", Timeout::new(Echo, std::time::Duration::from_secs(30)));
    own(c, "head", "gate", GateLayer::from_gate(Open).at_head().layer(Echo));
    own(c, "head", "bulkhead", BulkheadLayer::new(64).at_head().layer(Echo));
    let breaker = CircuitBreakerLayer::builder().classify(classify::from_fn(good));
    own(c, "head", "breaker", breaker.build().expect("the defaults are sound").at_head().layer(Echo));
}

fn one_state_a_key(c: &mut Criterion) {
    let key = |request: &u64| Some(Key::from(*request));
    let breaker = CircuitBreakerLayer::builder().classify(classify::from_fn(good)).keyed_by(key);
    own(c, "keyed", "breaker", breaker.build().expect("the defaults are sound").at_head().layer(Echo));
    let bulkhead = BulkheadLayer::builder(64).keyed_by(key);
    own(c, "keyed", "bulkhead", bulkhead.build().expect("the defaults are sound").at_head().layer(Echo));
}

fn refusing(c: &mut Criterion) {
    own(c, "refusal", "tower_concurrency_limit", ConcurrencyLimit::new(Echo, 64));
    own(c, "refusal", "gate", GateLayer::from_gate(Closed).at_head().layer(TypedEcho));
    own(c, "refusal", "bulkhead", BulkheadLayer::new(0).at_head().layer(TypedEcho));
    let typed = classify::from_fn(|_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS);
    let breaker = CircuitBreakerLayer::builder().classify(typed);
    let breaker = breaker.build().expect("the defaults are sound").at_head();
    breaker.gate().force_open();
    own(c, "refusal", "breaker", breaker.layer(TypedEcho));
}

fn over_http(c: &mut Criterion) {
    http(c, "bare", HttpEcho);
    http(c, "tower_concurrency_limit", ConcurrencyLimit::new(HttpEcho, 64));
    http(c, "gate", GateLayer::from_gate(Open).layer(HttpEcho));
    http(c, "bulkhead", BulkheadLayer::new(64).layer(HttpEcho));
    http(c, "breaker", CircuitBreakerLayer::new().layer(HttpEcho));
}

/// The timers of tower's own layers want a runtime around them.
fn all(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime with a timer needs nothing that can be missing");
    let _inside = runtime.enter();
    healthy(c);
    one_state_a_key(c);
    refusing(c);
    over_http(c);
}

criterion_group!(benches, all);
criterion_main!(benches);
