//! What two threads get through one shared layer, against one thread.
#![allow(missing_docs, reason = "a bench has no users")]
#![allow(clippy::disallowed_types, reason = "criterion counts in the time of std")]

mod support;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use seawall::bulkhead::BulkheadLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::{BoxError, Verdict, classify};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

use support::{Echo, call};

/// The time in which `threads` threads make `calls` calls each, over clones of one service.
fn run<S: Service<u64> + Clone + Send>(service: &S, threads: usize, calls: u64) -> Duration {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (mut service, barrier) = (service.clone(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let start = Instant::now();
                    for n in 0..calls {
                        let _ = call(&mut service, n);
                    }
                    start.elapsed()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).max().unwrap_or_default()
    })
}

fn contended<S: Service<u64> + Clone + Send>(c: &mut Criterion, name: &str, service: &S) {
    let mut group = c.benchmark_group("contended");
    for threads in [1, 2] {
        group.throughput(Throughput::Elements(threads as u64));
        group.bench_function(BenchmarkId::new(name, threads), |b| {
            b.iter_custom(|calls| run(service, threads, calls));
        });
    }
}

fn all(c: &mut Criterion) {
    contended(c, "bare", &Echo);
    contended(c, "tower_concurrency_limit", &ConcurrencyLimit::new(Echo, 64));
    contended(c, "bulkhead", &BulkheadLayer::new(64).at_head().layer(Echo));
    let good = classify::from_fn(|_: Result<&u64, &BoxError>| Verdict::SUCCESS);
    let breaker = CircuitBreakerLayer::builder().classify(good).build().expect("the defaults are sound");
    contended(c, "breaker", &breaker.at_head().layer(Echo));
}

criterion_group!(benches, all);
criterion_main!(benches);
