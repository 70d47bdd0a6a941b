//! What a wait costs: a call that is not admitted at once, and then is. Beside tower's `ConcurrencyLimit` and `RateLimit`
//! in the same run: compare ratios, not nanoseconds of two runs.
//!
//! `waiting_for_a_place`: two calls where one may be at once; the second waits until the first is done. `waiting_for_time`:
//! a call a millisecond on a paused clock, which is moved on by hand, so that nobody sleeps; `clock_alone` is what moving
//! it costs, and is in the figures of the others.
#![allow(missing_docs, reason = "a bench has no users")]
#![expect(clippy::disallowed_types, reason = "a benchmark measures real time")]

mod support;

use std::future::Future;
use std::hint::black_box;
use std::num::NonZeroU64;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use seawall::bulkhead::BulkheadLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Verdict, classify};
use tokio::runtime::{Builder, Runtime};
use tower::limit::{ConcurrencyLimit, RateLimit};
use tower::{Layer, Service};

use support::Echo;
use support::handing::turn;

const SOUND: &str = "the settings are sound";
/// How long a call waits for its time.
const WAIT: Duration = Duration::from_millis(1);

fn place<S: Service<u64> + Clone>(c: &mut Criterion, name: &str, service: S) {
    let (mut first, mut second) = (service.clone(), service);
    c.benchmark_group("waiting_for_a_place").bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter(|| turn(&mut first, &mut second));
    });
}

fn for_a_place(c: &mut Criterion) {
    // The timers of waits with a limit want a runtime around them.
    let runtime = clock();
    let _inside = runtime.enter();
    place(c, "tower_concurrency_limit", ConcurrencyLimit::new(Echo, 1));
    place(c, "bulkhead", BulkheadLayer::new(1).at_head().layer(Echo));
    let for_ever = BulkheadLayer::builder(1).max_wait(Duration::MAX).build();
    place(c, "bulkhead_for_ever", for_ever.expect(SOUND).at_head().layer(Echo));
}

/// A runtime whose clock stands still until it is moved.
fn clock() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime with a timer needs nothing that can be missing")
}

/// A call that comes too early by `WAIT`, waits in readiness or in its call, and is served when its time has come.
async fn early<S: Service<u64>>(service: &mut S) {
    let mut call = pin!(async {
        let _ = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
        service.call(black_box(7)).await.is_ok()
    });
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it is too early");
    tokio::time::advance(WAIT).await;
    assert!(call.await, "its time has come");
}

fn time<S: Service<u64>>(c: &mut Criterion, name: &str, make: impl FnOnce() -> S) {
    let runtime = clock();
    let mut service = runtime.block_on(async { make() });
    // Takes what there is at first.
    runtime.block_on(async {
        let _ = support::call(&mut service, 7);
    });
    c.benchmark_group("waiting_for_time").bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter_custom(|calls| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..calls {
                    early(&mut service).await;
                }
                start.elapsed()
            })
        });
    });
}

fn for_time(c: &mut Criterion) {
    let runtime = clock();
    c.benchmark_group("waiting_for_time").bench_function("clock_alone", |b| {
        b.iter_custom(|calls| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..calls {
                    tokio::time::advance(WAIT).await;
                }
                start.elapsed()
            })
        });
    });
    time(c, "tower_rate_limit", || RateLimit::new(Echo, tower::limit::rate::Rate::new(1, WAIT)));
    time(c, "token_bucket", || {
        let one = NonZeroU64::MIN;
        let quota = Quota::per_second(NonZeroU64::new(1_000).expect("it is not zero")).burst(one);
        let good = classify::from_fn(|_: Result<&u64, &BoxError>| Verdict::SUCCESS);
        let layer = TokenBucketLayer::builder().requests(quota).classify(good).build();
        layer.expect(SOUND).at_head().layer(Echo)
    });
}

criterion_group!(benches, for_a_place, for_time);
criterion_main!(benches);
