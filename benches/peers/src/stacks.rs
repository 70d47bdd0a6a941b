//! Whole stacks, of this crate and of its peers.

use std::time::Duration;

use seawall::bulkhead::BulkheadLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, Price, PriceTable, Window};
use seawall::fallback::FallbackLayer;
use seawall::gate::ByTenant;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::TokenBucketLayer;
use seawall::{Verdict, classify};
use tower::limit::{ConcurrencyLimit, RateLimit};
use tower::retry::Retry;
use tower::timeout::Timeout;
use tower::{Layer, Service, ServiceBuilder};
use tower_resilience::bulkhead::BulkheadLayer as TheirBulkhead;
use tower_resilience::circuitbreaker::CircuitBreakerLayer as TheirBreaker;
use tower_resilience::fallback::FallbackLayer as TheirFallback;
use tower_resilience::retry::RetryLayer as TheirRetry;
use tower_resilience::timelimiter::TimeLimiterLayer;

use crate::drive::{Echo, Loop, Model, Reply, calls};
use crate::ours::{LOTS, Numbers, PLENTY, Prompts, SOUND, good, good_reply, routes};
use crate::theirs::{OnError, Plain, limiter};

/// How long an attempt may take.
pub const ATTEMPT: Duration = Duration::from_secs(30);

/// What tower has too: retry, bucket, bulkhead, timeout.
pub fn four() -> impl Numbers {
    let retry = RetryPolicy::builder().classify(classify::from_fn(good)).build().expect(SOUND);
    let bucket = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good));
    ServiceBuilder::new()
        .layer(RetryLayer::new(retry))
        .layer(bucket.build().expect(SOUND).at_head())
        .layer(BulkheadLayer::new(64).at_head())
        .layer(TimeoutLayer::new(ATTEMPT).at_head())
        .service(Echo)
}

/// The same of tower's own. Its rate limit cannot be cloned, and its retry wants a clone of all beneath it: so the limit
/// stands above the retry, where it counts calls and not attempts.
pub fn tower_four_over<S>(inner: S) -> RateLimit<Retry<OnError, ConcurrencyLimit<Timeout<S>>>> {
    ServiceBuilder::new()
        .layer(tower::limit::RateLimitLayer::new(u64::MAX, Duration::from_secs(1)))
        .layer(tower::retry::RetryLayer::new(OnError))
        .layer(tower::limit::ConcurrencyLimitLayer::new(64))
        .layer(tower::timeout::TimeoutLayer::new(ATTEMPT))
        .service(inner)
}

pub fn tower_four() -> Loop {
    calls(tower_four_over(Echo), 7_u64)
}

/// All six, each of the gates with a state a tenant.
pub fn six_by_tenant() -> impl Prompts {
    let price = Price::per_million("2.50", "10").expect("a price");
    let guard = CostGuardLayer::builder().prices(PriceTable::new().model("gpt-4o", price));
    let guard = guard.budget(Budget::new(LOTS, Window::TOTAL).by(BudgetKey::Tenant));
    let bucket = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good_reply));
    let breaker = CircuitBreakerLayer::builder().classify(classify::from_fn(good_reply));
    let retry = RetryPolicy::builder().classify(classify::from_fn(good_reply)).build().expect(SOUND);
    let fallback =
        FallbackLayer::builder(routes()).classify(classify::responses(|_: &Reply| Verdict::SUCCESS));
    ServiceBuilder::new()
        .layer(fallback.build().expect(SOUND).at_head())
        .layer(RetryLayer::new(retry))
        .layer(breaker.keyed(ByTenant).build().expect(SOUND).at_head())
        .layer(guard.build().expect(SOUND).at_head())
        .layer(bucket.keyed(ByTenant).build().expect(SOUND).at_head())
        .layer(BulkheadLayer::builder(64).keyed(ByTenant).build().expect(SOUND).at_head())
        .service(Model)
}

/// What both stacks of tower-resilience have under their total timeout: retry, circuit breaker, bulkhead, timeout of a
/// call, rate limit.
pub fn retried<S, Req>(
    inner: S,
) -> impl Service<Req, Response = S::Response, Error: Send + Sync, Future: Send> + Clone + Send + 'static
where
    S: Service<Req, Error: Clone + Send + Sync, Future: Send> + Clone + Send + Sync + 'static,
    S::Response: Clone + Send + Sync + 'static,
    Req: Clone + Send + Sync + 'static,
{
    let bulkhead = TheirBulkhead::builder().max_concurrent_calls(64).build().expect(SOUND);
    let inner = bulkhead.layer(TimeLimiterLayer::standard().build().layer(limiter().layer(inner)));
    let inner = TheirBreaker::builder().build().expect(SOUND).layer(inner);
    TheirRetry::<Req, S::Response, _>::builder().max_attempts(3).build().layer(inner)
}

/// tower-resilience's seven, in the order that its composition guide recommends: fallback, total timeout, retry, circuit
/// breaker, bulkhead, timeout of a call, rate limit. (An eighth, the hedge, sends requests twice.)
pub fn resilience_seven() -> Loop {
    let inner = TimeLimiterLayer::standard().build().layer(retried(Plain));
    calls(TheirFallback::<u64, u64, _>::value(0).layer(inner), 7_u64)
}

/// The same without the total timeout.
pub fn resilience_six() -> Loop {
    calls(TheirFallback::<u64, u64, _>::value(0).layer(retried(Plain)), 7_u64)
}
