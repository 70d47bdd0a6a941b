//! What a budget costs a healthy call, beside tower's `ConcurrencyLimit` in the same run: compare ratios.
#![allow(missing_docs, reason = "a bench has no users")]
#![allow(clippy::disallowed_types, reason = "criterion counts in the time of std")]
#![allow(clippy::unwrap_used, reason = "a bench that fails may panic; the line says where")]

mod support;

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use seawall::BoxError;
use seawall::call::{Call, Estimate};
use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, Price, PriceTable, Usd, Window};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

use support::call;
use support::model::{Model, Prompt, Reply};

fn prompt(tenant: &str) -> Prompt {
    let mut call = Call::default();
    call.model = Some("gpt-4o".into());
    call.upstream = Some("openai".into());
    call.tenant = Some(tenant.into());
    call.estimate = Some(Estimate::new(250, 1_000));
    call.output_bound = Some(1_000);
    Prompt(Box::leak(Box::new(call)))
}

fn guard(
    budgets: impl IntoIterator<Item = Budget>,
) -> impl Service<Prompt, Response = Reply, Error = BoxError> + Clone + Send {
    let price = Price::per_million("2.50", "10").unwrap();
    let mut builder = CostGuardLayer::builder().prices(PriceTable::new().model("gpt-4o", price));
    for budget in budgets {
        builder = builder.budget(budget);
    }
    builder.build().unwrap().at_head().layer(Model)
}

const LOTS: Usd = Usd::dollars(1_000_000_000);

fn three() -> [Budget; 3] {
    [
        Budget::new(LOTS, Window::DAY),
        Budget::new(LOTS, Window::MONTH).by(BudgetKey::Tenant),
        Budget::new(LOTS, Window::TOTAL),
    ]
}

fn healthy(c: &mut Criterion) {
    let mut group = c.benchmark_group("cost_guard");
    let prompt = prompt("acme");
    macro_rules! case {
        ($name:literal, $service:expr) => {
            let mut service = $service;
            let _ = call(&mut service, prompt);
            let counted = allocation_counter::measure(|| drop(call(&mut service, black_box(prompt))));
            assert_eq!(counted.count_total, 0, "{} allocates", $name);
            group.bench_function($name, |b| {
                b.iter(|| black_box(call(&mut service, black_box(prompt)).is_ok()))
            });
        };
    }
    let hour = Window::rolling(Duration::from_secs(3_600)).unwrap();
    case!("bare", Model);
    case!("tower_concurrency_limit", ConcurrencyLimit::new(Model, 64));
    case!("total", guard([Budget::new(LOTS, Window::TOTAL)]));
    case!("day", guard([Budget::new(LOTS, Window::DAY)]));
    case!("rolling", guard([Budget::new(LOTS, hour)]));
    case!("tenant", guard([Budget::new(LOTS, Window::TOTAL).by(BudgetKey::Tenant)]));
    case!("three", guard(three()));
}

/// The time in which each thread makes `calls` calls over clones of one service, one tenant a prompt.
fn run<S>(service: &S, prompts: &[Prompt], calls: u64) -> Duration
where
    S: Service<Prompt> + Clone + Send,
{
    let barrier = Barrier::new(prompts.len());
    std::thread::scope(|scope| {
        let worker = |&prompt: &Prompt| {
            let (mut service, barrier) = (service.clone(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                let start = Instant::now();
                for _ in 0..calls {
                    let _ = call(&mut service, black_box(prompt));
                }
                start.elapsed()
            })
        };
        let workers: Vec<_> = prompts.iter().map(worker).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).max().unwrap_or_default()
    })
}

fn contended(c: &mut Criterion) {
    let mut group = c.benchmark_group("cost_guard_contended");
    let limit = ConcurrencyLimit::new(Model, 64);
    let total = guard([Budget::new(LOTS, Window::TOTAL)]);
    let tenant = guard([Budget::new(LOTS, Window::TOTAL).by(BudgetKey::Tenant)]);
    let (acme, other) = (prompt("acme"), prompt("umbrella"));
    for prompts in [&[acme][..], &[acme, acme], &[acme, other]] {
        let name =
            if prompts.last().is_some_and(|last| std::ptr::eq(last.0, other.0)) { "2 keys" } else { "1 key" };
        let id = |service: &str| BenchmarkId::new(format!("{service}, {name}"), prompts.len());
        group.throughput(Throughput::Elements(prompts.len() as u64));
        group.bench_function(id("tower_concurrency_limit"), |b| {
            b.iter_custom(|calls| run(&limit, prompts, calls));
        });
        group.bench_function(id("total"), |b| b.iter_custom(|calls| run(&total, prompts, calls)));
        group.bench_function(id("tenant"), |b| b.iter_custom(|calls| run(&tenant, prompts, calls)));
    }
}

criterion_group!(benches, healthy, contended);
criterion_main!(benches);
