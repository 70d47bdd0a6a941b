//! What retry costs a call that it does not repeat, beside tower's layers in the same run: compare ratios, not nanoseconds of
//! two runs.
//!
//! `cargo bench --bench retry`
#![allow(missing_docs, reason = "a bench has no users")]

mod support;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use http::Request;
use seawall::call::Key;
use seawall::retry::{Budget, RetryLayer, RetryPolicy};
use seawall::{BoxError, Verdict, classify};
use tower::limit::ConcurrencyLimit;
use tower::retry::Policy;
use tower::retry::budget::{Budget as _, TpsBudget};
use tower::{Layer, Service};

use support::{Echo, HttpEcho, call, drain};

/// As tower's users write it, with and without a budget.
#[derive(Clone)]
struct TowerPolicy(Option<std::sync::Arc<TpsBudget>>);

impl<R: Clone> Policy<R, R, BoxError> for TowerPolicy {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _request: &mut R, result: &mut Result<R, BoxError>) -> Option<Self::Future> {
        match (result, &self.0) {
            (Ok(_), Some(budget)) => {
                budget.deposit();
                None
            }
            (Ok(_), None) => None,
            (Err(_), _) => Some(std::future::ready(())),
        }
    }

    fn clone_request(&mut self, request: &R) -> Option<R> {
        Some(request.clone())
    }
}

fn own<S: Service<u64>>(c: &mut Criterion, name: &str, mut service: S) {
    c.benchmark_group("own").bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter(|| black_box(call(&mut service, black_box(7)).is_ok()));
    });
}

fn good(_: Result<&u64, &BoxError>) -> Verdict {
    Verdict::SUCCESS
}

fn own_types(c: &mut Criterion) {
    own(c, "bare", Echo);
    own(c, "tower_concurrency_limit", ConcurrencyLimit::new(Echo, 64));
    own(c, "tower_retry", tower::retry::RetryLayer::new(TowerPolicy(None)).layer(Echo));
    let budget = std::sync::Arc::new(TpsBudget::default());
    own(c, "tower_retry_budget", tower::retry::RetryLayer::new(TowerPolicy(Some(budget))).layer(Echo));
    let policy = || RetryPolicy::builder().classify(classify::from_fn(good));
    own(c, "retry", RetryLayer::new(policy().build().expect("sound")).layer(Echo));
    own(c, "retry_no_budget", RetryLayer::new(policy().no_budget().build().expect("sound")).layer(Echo));
    // The budget at its costliest: it is never full, so that every call deposits.
    let spent = Budget::builder().ratio(0.001).reserve(10_000).build().expect("sound");
    while spent.try_take(None) {}
    own(c, "retry_spent_budget", RetryLayer::new(policy().budget(spent).build().expect("sound")).layer(Echo));
}

fn http(c: &mut Criterion) {
    fn one<S, B>(c: &mut Criterion, name: &str, mut service: S)
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
    one(c, "bare", HttpEcho);
    one(c, "tower_concurrency_limit", ConcurrencyLimit::new(HttpEcho, 64));
    one(c, "retry", RetryLayer::new(RetryPolicy::llm()).layer(HttpEcho));
}

fn parts(c: &mut Criterion) {
    let budget = Budget::default();
    let key = Key::from("https://api.example.com");
    c.bench_function("budget_arrive", |b| b.iter(|| budget.arrive(black_box(None))));
    c.bench_function("budget_arrive_keyed", |b| b.iter(|| budget.arrive(black_box(Some(&key)))));
}

criterion_group!(benches, own_types, http, parts);
criterion_main!(benches);
