//! The token bucket beside governor's check, in one run: over a bare service, contended, with leases.

use std::hint::black_box;
use std::num::{NonZeroU32, NonZeroU64};
use std::thread;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use governor::RateLimiter;
use seawall::gate::{Admission, Gate};
use seawall::token_bucket::{NoLimits, Quota, TokenBucket, TokenBucketLayer, Upstream};
use seawall::{BoxError, Verdict, classify};
use tower::{Layer, Service};

/// So much that nothing is ever refused.
const PLENTY: Quota = Quota::per_second(NonZeroU64::new(900_000_000).unwrap());

type Plain = TokenBucket<Upstream<classify::FromFn<fn(Result<&u64, &BoxError>) -> Verdict>, NoLimits>>;

fn layer(dimensions: u32, lease: Option<NonZeroU64>) -> TokenBucketLayer<Plain, seawall::gate::Head> {
    let good: fn(Result<&u64, &BoxError>) -> Verdict = |_| Verdict::SUCCESS;
    let mut builder = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good));
    if dimensions > 1 {
        builder = builder.tokens(PLENTY).assumed_output(1);
    }
    if let Some(lease) = lease {
        builder = builder.leases(lease);
    }
    builder.build().expect("the settings above can be built").at_head()
}

fn poll<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => unreachable!("the inner service answers at once"),
    }
}

fn call<S: Service<u64, Response = u64>>(service: &mut S) -> u64
where
    S::Error: std::fmt::Debug,
{
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    poll(service.call(black_box(1))).expect("nothing is refused")
}

fn one_thread(c: &mut Criterion) {
    let mut group = c.benchmark_group("one_thread");
    let inner = tower::service_fn(|n: u64| std::future::ready(Ok::<_, BoxError>(n)));
    group.bench_function("bare", |b| {
        let mut service = inner;
        b.iter(|| call(&mut service));
    });
    group.bench_function("governor_check", |b| {
        let limiter = governor();
        b.iter(|| limiter.check().is_ok());
    });
    group.bench_function("clock", |b| b.iter(seawall::time::now));
    for dimensions in [1, 2] {
        group.bench_function(BenchmarkId::new("dimensions", dimensions), |b| {
            let mut service = layer(dimensions, None).layer(inner);
            b.iter(|| call(&mut service));
        });
    }
    group.bench_function("leases", |b| {
        let mut service = layer(1, NonZeroU64::new(64)).layer(inner);
        b.iter(|| call(&mut service));
    });
    group.bench_function("refusal", |b| {
        let layer = TokenBucketLayer::builder().requests(Quota::per_day(NonZeroU64::MIN)).refuse().build();
        let gate = layer.expect("it can be built").gate().clone();
        let _first = gate.admit(&mut 0_u64);
        b.iter(|| matches!(gate.admit(&mut 0_u64), Admission::Refused(_)));
    });
    group.finish();
}

type Governor = governor::DefaultDirectRateLimiter;

fn governor() -> Governor {
    let quota = governor::Quota::per_second(NonZeroU32::new(900_000_000).expect("not zero"));
    RateLimiter::direct(quota.allow_burst(NonZeroU32::MAX))
}

/// How long `calls` on each of `threads` take.
fn contended(threads: u64, calls: u64, run: impl Fn() + Sync) -> Duration {
    let started = now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..calls).for_each(|_| run()));
        }
    });
    now() - started
}

#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("threads");
    group.sample_size(20);
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("governor", threads), |b| {
            let limiter = governor();
            b.iter_custom(|n| contended(threads, n, || drop(black_box(limiter.check()))));
        });
        for (name, dimensions, lease) in
            [("one", 1, None), ("two", 2, None), ("leases", 1, NonZeroU64::new(64))]
        {
            group.bench_function(BenchmarkId::new(name, threads), |b| {
                let gate = layer(dimensions, lease).gate().clone();
                b.iter_custom(|n| contended(threads, n, || drop(black_box(gate.admit(&mut 1_u64)))));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, one_thread, threads);
criterion_main!(benches);
