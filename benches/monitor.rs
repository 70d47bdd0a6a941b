//! What a monitor costs a healthy call, alone and with two threads on one, beside tower's `ConcurrencyLimit` in the same
//! run: compare ratios. And how long a snapshot of 50 busy targets takes.
#![allow(missing_docs, reason = "a bench has no users")]
#![allow(clippy::disallowed_types, reason = "criterion counts in the time of std")]

mod support;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use seawall::call::Call;
use seawall::monitor::Monitor;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

use support::call;
use support::model::{Model, Prompt};

fn prompt(upstream: &str, model: &str) -> Prompt {
    let mut call = Call::default();
    (call.upstream, call.model) = (Some(upstream.into()), Some(model.into()));
    Prompt(Box::leak(Box::new(call)))
}

fn time<S: Service<Prompt>>(c: &mut Criterion, name: &str, mut service: S) {
    let prompt = prompt("upstream", "model");
    c.benchmark_group("monitor").bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter(|| black_box(call(&mut service, black_box(prompt)).is_ok()));
    });
}

/// The time in which `threads` threads make `calls` calls each, over clones of one service.
fn run<S: Service<Prompt> + Clone + Send>(service: &S, threads: usize, calls: u64) -> Duration {
    let (barrier, prompt) = (Barrier::new(threads), prompt("upstream", "model"));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (mut service, barrier) = (service.clone(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let start = Instant::now();
                    for _ in 0..calls {
                        let _ = call(&mut service, prompt);
                    }
                    start.elapsed()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).max().unwrap_or_default()
    })
}

fn contended<S: Service<Prompt> + Clone + Send>(c: &mut Criterion, name: &str, service: &S) {
    let mut group = c.benchmark_group("monitor_contended");
    for threads in [1, 2] {
        group.throughput(Throughput::Elements(threads as u64));
        group.bench_function(BenchmarkId::new(name, threads), |b| {
            b.iter_custom(|calls| run(service, threads, calls));
        });
    }
}

/// Fifty targets with a thousand attempts each.
fn snapshot(c: &mut Criterion) {
    let targets = NonZeroUsize::new(64).expect("64 is not zero");
    let builder = Monitor::builder().most_targets(targets);
    let names: Vec<String> = (0..50).map(|n| format!("model-{n}")).collect();
    let monitor = builder.targets(names.iter().map(|name| ("upstream", name.as_str()))).build();
    let monitor = monitor.expect("the settings are sound");
    let mut service = monitor.attempts().at_head().layer(Model);
    for name in &names {
        let prompt = prompt("upstream", name);
        for _ in 0..1000 {
            let _ = call(&mut service, prompt);
        }
    }
    let mut group = c.benchmark_group("monitor_snapshot");
    group.bench_function("50_targets", |b| b.iter(|| black_box(monitor.snapshot().targets.len())));
    let snapshot = monitor.snapshot();
    group.bench_function("prometheus_50_targets", |b| b.iter(|| black_box(snapshot.prometheus().len())));
}

fn all(c: &mut Criterion) {
    let monitor = Monitor::builder().target("upstream", "model").build().expect("the settings are sound");
    time(c, "bare", Model);
    time(c, "tower_concurrency_limit", ConcurrencyLimit::new(Model, 64));
    time(c, "calls", monitor.layer().at_head().layer(Model));
    time(c, "attempts", monitor.attempts().at_head().layer(Model));
    contended(c, "tower_concurrency_limit", &ConcurrencyLimit::new(Model, 64));
    contended(c, "calls", &monitor.layer().at_head().layer(Model));
    contended(c, "attempts", &monitor.attempts().at_head().layer(Model));
    snapshot(c);
}

criterion_group!(benches, all);
criterion_main!(benches);
