//! The same work by the peers, set up as their documentation shows.

use std::future::{Ready, ready};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tower::limit::{ConcurrencyLimit, RateLimit};
use tower::retry::Policy;
use tower::timeout::Timeout;
use tower::{Layer, Service};
use tower_resilience::bulkhead::BulkheadLayer;
use tower_resilience::circuitbreaker::CircuitBreakerLayer;
use tower_resilience::fallback::FallbackLayer;
use tower_resilience::ratelimiter::RateLimiterLayer;
use tower_resilience::retry::RetryLayer;
use tower_resilience::timelimiter::TimeLimiterLayer;

use crate::drive::{Answering, Echo, Loop, calls};

pub const PLENTY: usize = 900_000_000;

/// A number that comes back, with a small error that can be cloned, as some peers demand.
#[derive(Clone, Copy)]
pub struct Plain;

/// The error of [`Plain`].
#[derive(Clone, Copy, Debug)]
pub struct PlainError;

impl std::fmt::Display for PlainError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed")
    }
}

impl std::error::Error for PlainError {}

impl Service<u64> for Plain {
    type Response = u64;
    type Error = PlainError;
    type Future = Answering<u64, PlainError>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), PlainError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: u64) -> Self::Future {
        Answering::with(request)
    }
}

/// Over the same service as what it stands beside.
pub fn concurrency_limit<S>(inner: S) -> ConcurrencyLimit<S> {
    ConcurrencyLimit::new(inner, 64)
}

pub fn rate_limit() -> Loop {
    calls(RateLimit::new(Echo, tower::limit::rate::Rate::new(u64::MAX, Duration::from_secs(1))), 7_u64)
}

pub fn timeout() -> Loop {
    calls(Timeout::new(Echo, Duration::from_secs(30)), 7_u64)
}

/// Retries each error at once.
#[derive(Clone)]
pub struct OnError;

impl<Req: Clone, Res, E> Policy<Req, Res, E> for OnError {
    type Future = Ready<()>;

    fn retry(&mut self, _request: &mut Req, result: &mut Result<Res, E>) -> Option<Self::Future> {
        result.is_err().then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

pub fn retry() -> Loop {
    calls(tower::retry::RetryLayer::new(OnError).layer(Echo), 7_u64)
}

pub fn governor() -> Loop {
    let quota = governor::Quota::per_second(NonZeroU32::new(900_000_000).expect("it is not zero"));
    let limiter = governor::RateLimiter::direct(quota.allow_burst(NonZeroU32::MAX));
    Box::new(move |n| {
        for _ in 0..n {
            let _ = black_box(limiter.check().is_ok());
        }
    })
}

pub fn failsafe() -> Loop {
    use failsafe::CircuitBreaker;
    let breaker = failsafe::Config::new().build();
    let mut inner = Echo;
    Box::new(move |n| {
        for number in 0..n {
            let call = || crate::drive::call(&mut inner, black_box(number));
            let _ = black_box(breaker.call(call).is_ok());
        }
    })
}

pub fn resilience_breaker() -> Loop {
    calls(CircuitBreakerLayer::builder().build().expect("the defaults are sound").layer(Plain), 7_u64)
}

pub fn resilience_bulkhead() -> Loop {
    let layer = BulkheadLayer::builder().max_concurrent_calls(64).build();
    calls(layer.expect("the settings are sound").layer(Plain), 7_u64)
}

pub fn limiter() -> RateLimiterLayer {
    RateLimiterLayer::burst(PLENTY, PLENTY).build().expect("the settings are sound")
}

pub fn resilience_limiter() -> Loop {
    calls(limiter().layer(Plain), 7_u64)
}

pub fn resilience_retry() -> Loop {
    calls(RetryLayer::<u64, u64, PlainError>::builder().max_attempts(3).build().layer(Plain), 7_u64)
}

pub fn resilience_timeout() -> Loop {
    calls(TimeLimiterLayer::standard().build().layer(Plain), 7_u64)
}

pub fn resilience_fallback() -> Loop {
    calls(FallbackLayer::<u64, u64, PlainError>::value(0).layer(Plain), 7_u64)
}

/// Waits in `poll_ready` for the rate.
pub fn throttle_net_limiter() -> Loop {
    let throttle = throttle_net::Throttle::builder().rate(900_000_000, Duration::from_secs(1)).build();
    calls(throttle_net::tower::ThrottleLayer::new(throttle).layer(Echo), 7_u64)
}

/// Its breaker is always around a limiter.
pub fn throttle_net_breaker() -> Loop {
    let throttle = throttle_net::Throttle::builder().rate(900_000_000, Duration::from_secs(1)).build();
    let breaker = throttle_net::CircuitBreaker::builder().build(throttle);
    calls(throttle_net::tower::CircuitBreakerLayer::new(Arc::new(breaker)).layer(Echo), 7_u64)
}

/// The context and the clock of seatbelt.
fn context() -> seatbelt::ResilienceContext<u64, Result<u64, PlainError>> {
    seatbelt::ResilienceContext::new(tick::Clock::new_tokio())
}

fn recovery(result: &Result<u64, PlainError>) -> seatbelt::RecoveryInfo {
    match result {
        Ok(_) => seatbelt::RecoveryInfo::never(),
        Err(_) => seatbelt::RecoveryInfo::retry(),
    }
}

pub fn seatbelt_breaker() -> Loop {
    let layer = seatbelt::breaker::Breaker::layer("breaker", &context())
        .recovery_with(|result, _| recovery(result))
        .rejected_input_error(|_, _| PlainError);
    calls(tower::ServiceBuilder::new().layer(layer).service(Plain), 7_u64)
}

pub fn seatbelt_retry() -> Loop {
    let layer = seatbelt::retry::Retry::layer("retry", &context())
        .clone_input()
        .recovery_with(|result, _| recovery(result));
    calls(tower::ServiceBuilder::new().layer(layer).service(Plain), 7_u64)
}
