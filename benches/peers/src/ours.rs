//! The layers of this crate.

use std::convert::Infallible;
use std::num::NonZeroU64;
use std::time::Duration;

use seawall::bulkhead::BulkheadLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::fallback::{FallbackLayer, Route, Routes, RoutesBuilder, Target};
use seawall::gate::{Admission, Gate, GateLayer};
use seawall::monitor::Monitor;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Fault, Refusal, Verdict, classify};
use tower::{Layer, Service};

use crate::drive::{Echo, Loop, Model, Prompt, Reply, TypedEcho, calls};

type Typed = Fault<Infallible>;

pub const SOUND: &str = "the settings are sound";
/// So much that nothing is ever refused.
pub const PLENTY: Quota = Quota::per_second(NonZeroU64::new(900_000_000).unwrap());
pub const LOTS: Usd = Usd::dollars(1_000_000_000);

/// A service over numbers, and over prompts.
pub trait Numbers: Service<u64, Response = u64> + Clone + Send + Sync + 'static {}
impl<S: Service<u64, Response = u64> + Clone + Send + Sync + 'static> Numbers for S {}
pub trait Prompts: Service<Prompt, Response = Reply> + Clone + Send + Sync + 'static {}
impl<S: Service<Prompt, Response = Reply> + Clone + Send + Sync + 'static> Prompts for S {}

/// Calls with numbers.
pub fn number(service: impl Numbers) -> Loop {
    calls(service, 7_u64)
}

/// Calls with prompts.
pub fn prompt(service: impl Prompts) -> Loop {
    calls(service, Prompt::described())
}

/// A gate that decides nothing: the cost of the service itself.
#[derive(Clone, Copy)]
pub struct Open;

impl<Req> Gate<Req> for Open {
    type Permit = ();
    type Wait = std::future::Ready<Result<(), Refusal>>;

    #[inline]
    fn admit(&self, _request: &mut Req) -> Admission<(), Self::Wait> {
        Admission::Now(())
    }
}

pub fn good(_: Result<&u64, &BoxError>) -> Verdict {
    Verdict::SUCCESS
}

fn good_typed(_: Result<&u64, &Typed>) -> Verdict {
    Verdict::SUCCESS
}

pub fn good_reply(_: Result<&Reply, &BoxError>) -> Verdict {
    Verdict::SUCCESS
}

pub fn gate() -> impl Numbers {
    GateLayer::from_gate(Open).at_head().layer(Echo)
}

pub fn bulkhead() -> impl Numbers {
    BulkheadLayer::new(64).at_head().layer(Echo)
}

pub fn breaker() -> impl Numbers {
    let builder = CircuitBreakerLayer::builder().classify(classify::from_fn(good));
    builder.build().expect(SOUND).at_head().layer(Echo)
}

pub fn bucket() -> impl Numbers {
    bucket_service()
}

fn bucket_service() -> impl Service<u64, Response = u64, Error = BoxError> + Clone + Send + Sync + 'static {
    let builder = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good));
    builder.build().expect(SOUND).at_head().layer(Echo)
}

/// Leases a thread: as they let two threads share a bucket.
#[allow(dead_code, reason = "among what threads share, not among what is counted")]
pub fn bucket_with_leases() -> impl Numbers {
    let builder = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good));
    let lease = NonZeroU64::new(64).expect("it is not zero");
    builder.leases(lease).build().expect(SOUND).at_head().layer(Echo)
}

#[allow(dead_code, reason = "beside a peer alone, not among what is counted")]
pub fn bucket_in_breaker() -> impl Numbers {
    let builder = CircuitBreakerLayer::builder().classify(classify::from_fn(good));
    builder.build().expect(SOUND).at_head().layer(bucket_service())
}

pub fn bucket_of_two() -> impl Numbers {
    let builder = TokenBucketLayer::builder().requests(PLENTY).tokens(PLENTY).assumed_output(1);
    builder.classify(classify::from_fn(good)).build().expect(SOUND).at_head().layer(Echo)
}

/// Calls that come faster than the bucket fills, however slowly they are made, out of a burst that lasts for longer than is
/// measured: neither full nor empty. The buckets of plenty are full before each call.
const IN_USE: Quota = Quota::per_second(NonZeroU64::new(1_000).unwrap());
const LONG: NonZeroU64 = NonZeroU64::new(10_000_000_000).unwrap();

/// Makes so many calls that the bucket is far from full.
fn used(service: impl Numbers) -> impl Numbers {
    number(service.clone())(10_000);
    service
}

pub fn bucket_in_use() -> impl Numbers {
    let builder = TokenBucketLayer::builder().requests(IN_USE.burst(LONG)).classify(classify::from_fn(good));
    used(builder.build().expect(SOUND).at_head().layer(Echo))
}

pub fn bucket_of_two_in_use() -> impl Numbers {
    let quota = IN_USE.burst(LONG);
    let builder = TokenBucketLayer::builder().requests(quota).tokens(quota).assumed_output(1);
    used(builder.classify(classify::from_fn(good)).build().expect(SOUND).at_head().layer(Echo))
}

pub fn retry() -> impl Numbers {
    let policy = RetryPolicy::builder().classify(classify::from_fn(good));
    RetryLayer::new(policy.build().expect(SOUND)).layer(Echo)
}

pub fn timeout() -> impl Numbers {
    TimeoutLayer::new(Duration::from_secs(30)).at_head().layer(Echo)
}

pub fn routes() -> Routes {
    let route = Route::to("*").target(Target::at("a").model("gpt-4o")).target(Target::at("b").model("n"));
    let routes = Routes::builder().named("a").and_then(|routes| routes.named("b"));
    routes.map(|routes| routes.route(route)).and_then(RoutesBuilder::build).expect(SOUND)
}

pub fn fallback() -> impl Prompts {
    let builder =
        FallbackLayer::builder(routes()).classify(classify::responses(|_: &Reply| Verdict::SUCCESS));
    builder.build().expect(SOUND).at_head().layer(Model)
}

fn guard_of(budgets: impl IntoIterator<Item = Budget>) -> impl Prompts {
    let price = Price::per_million("2.50", "10").expect("a price");
    let mut builder = CostGuardLayer::builder().prices(PriceTable::new().model("gpt-4o", price));
    for budget in budgets {
        builder = builder.budget(budget);
    }
    builder.build().expect(SOUND).at_head().layer(Model)
}

pub fn guard() -> impl Prompts {
    guard_of([Budget::new(LOTS, Window::TOTAL)])
}

pub fn guard_by_tenant() -> impl Prompts {
    guard_of([Budget::new(LOTS, Window::TOTAL).by(BudgetKey::Tenant)])
}

pub fn guard_of_three() -> impl Prompts {
    guard_of([
        Budget::new(LOTS, Window::DAY),
        Budget::new(LOTS, Window::MONTH).by(BudgetKey::Tenant),
        Budget::new(LOTS, Window::TOTAL),
    ])
}

fn monitor() -> Monitor {
    Monitor::builder().target("openai", "gpt-4o").build().expect(SOUND)
}

/// A monitor's view of calls.
pub fn monitor_of_calls() -> impl Prompts {
    monitor().layer().at_head().layer(Model)
}

/// A monitor's view of attempts, by target.
pub fn monitor_of_attempts() -> impl Prompts {
    monitor().attempts().at_head().layer(Model)
}

/// Fallback, retry, breaker, guard, bucket, bulkhead: in the order that the crate recommends.
pub fn all_six() -> impl Prompts {
    let price = Price::per_million("2.50", "10").expect("a price");
    let guard = CostGuardLayer::builder().prices(PriceTable::new().model("gpt-4o", price));
    let bucket = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good_reply));
    let breaker = CircuitBreakerLayer::builder().classify(classify::from_fn(good_reply));
    let retry = RetryPolicy::builder().classify(classify::from_fn(good_reply)).build().expect(SOUND);
    let fallback =
        FallbackLayer::builder(routes()).classify(classify::responses(|_: &Reply| Verdict::SUCCESS));
    tower::ServiceBuilder::new()
        .layer(fallback.build().expect(SOUND).at_head())
        .layer(RetryLayer::new(retry))
        .layer(breaker.build().expect(SOUND).at_head())
        .layer(guard.budget(Budget::new(LOTS, Window::TOTAL)).build().expect(SOUND).at_head())
        .layer(bucket.build().expect(SOUND).at_head())
        .layer(BulkheadLayer::new(64).at_head())
        .service(Model)
}

/// Held open by its handle.
pub fn breaker_held_open() -> impl Numbers {
    let layer = CircuitBreakerLayer::builder().classify(classify::from_fn(good_typed)).build();
    let layer = layer.expect(SOUND).at_head();
    layer.gate().force_open();
    layer.layer(TypedEcho)
}

/// Opened by failures, for an hour.
pub fn breaker_opened() -> impl Numbers {
    let bad = |_: Result<&u64, &Typed>| Verdict::new(seawall::Class::Transient);
    let builder = CircuitBreakerLayer::builder().classify(classify::from_fn(bad));
    let hour = Duration::from_secs(3_600);
    let layer = builder.open_for(hour).open_at_most(hour).build().expect(SOUND).at_head();
    let mut service = layer.layer(TypedEcho);
    while crate::drive::call(&mut service, 7).is_ok() {}
    service
}

pub fn bulkhead_full() -> impl Numbers {
    let full = BulkheadLayer::new(1).refuse().at_head();
    let Admission::Now(slot) = full.gate().admit(&mut 0_u64) else { unreachable!("it is free") };
    std::mem::forget(slot);
    full.layer(TypedEcho)
}

pub fn bucket_empty() -> impl Numbers {
    let builder = TokenBucketLayer::builder().requests(Quota::per_day(NonZeroU64::MIN));
    let layer = builder.classify(classify::from_fn(good_typed)).refuse().build().expect(SOUND).at_head();
    let Admission::Now(permit) = layer.gate().admit(&mut 0_u64) else { unreachable!("it is full") };
    std::mem::forget(permit);
    layer.layer(TypedEcho)
}
