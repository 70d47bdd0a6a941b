//! Retries: their budget, and readiness.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use seawall::retry::{Backoff, Budget, RetryLayer as OurRetry, RetryPolicy};
use seawall::{BoxError, Class, Verdict, classify};
use tower::retry::budget::{Budget as _, TpsBudget};
use tower::{Layer, Service, ServiceExt};
use tower_resilience::retry::{RetryBudgetBuilder, RetryLayer};

use super::{Row, holds};
use crate::theirs::OnError;

/// Of 1 000 calls that all need a retry: how many get one.
fn retries(mut call: impl FnMut() -> bool) -> Result<(), String> {
    let got = (0..1_000).filter(|_| call()).count();
    // Ten are the reserve.
    holds((590..=610).contains(&got), || format!("{got} of 1 000 are"))
}

fn budget() -> Row {
    let ours = Budget::builder().ratio(0.6).reserve(10).build().expect("it is sound");
    let tower = TpsBudget::new(Duration::from_secs(10), 0, 0.6);
    // No share can be set, only what is there at first and by time.
    let builder = RetryBudgetBuilder::new().token_bucket().tokens_per_second(0.0).max_tokens(100);
    let resilience = builder.initial_tokens(1).build().expect("it is sound");
    let throttle_net = throttle_net::RetryBudget::new(0.6, 0);
    let found = [
        Some(retries(|| {
            ours.arrive(None);
            ours.try_take(None)
        })),
        Some(retries(|| {
            tower.deposit();
            tower.withdraw()
        })),
        Some(retries(|| {
            let taken = resilience.try_withdraw();
            // The retry succeeds.
            if taken {
                resilience.deposit();
            }
            taken
        })),
        None,
        None,
        None,
        Some(retries(|| {
            throttle_net.deposit();
            throttle_net.try_withdraw()
        })),
    ];
    Row { must: "of 1 000 calls that need a retry 600 are retried, by a budget of 60 %", found }
}

/// Fails once, and notes a call that nobody made ready.
struct Strict {
    ready: bool,
    calls: Arc<AtomicU32>,
    unready: Arc<AtomicBool>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self { ready: false, calls: Arc::clone(&self.calls), unready: Arc::clone(&self.unready) }
    }
}

impl Service<u64> for Strict {
    type Response = u64;
    type Error = Failed;
    type Future = Ready<Result<u64, Failed>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u64) -> Self::Future {
        if !std::mem::take(&mut self.ready) {
            self.unready.store(true, Ordering::Relaxed);
        }
        let first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        ready(if first { Err(Failed) } else { Ok(request) })
    }
}

#[derive(Clone, Copy, Debug)]
struct Failed;

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed")
    }
}

impl std::error::Error for Failed {}

/// One call that is retried once.
fn readied<S>(wrap: impl FnOnce(Strict) -> S) -> Result<(), String>
where
    S: Service<u64, Response = u64>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime with a timer needs nothing that can be missing");
    let (calls, unready) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
    let strict = Strict { ready: false, calls: Arc::clone(&calls), unready: Arc::clone(&unready) };
    let served = runtime.block_on(async { wrap(strict).oneshot(7).await.is_ok() });
    assert!(served && calls.load(Ordering::Relaxed) == 2, "the second attempt serves it");
    holds(!unready.load(Ordering::Relaxed), || "it calls a clone that was never ready".into())
}

fn readiness() -> Row {
    let moment = Duration::from_millis(1);
    let judge = |result: Result<&u64, &BoxError>| {
        if result.is_ok() { Verdict::SUCCESS } else { Verdict::new(Class::Transient) }
    };
    let ours = RetryPolicy::builder().classify(classify::from_fn(judge)).ambiguous(true);
    let ours = ours.backoff(Backoff::fixed(moment));
    let ours = OurRetry::new(ours.build().expect("it is sound"));
    let seatbelt = |strict| {
        let context = seatbelt::ResilienceContext::<u64, Result<u64, Failed>>::new(tick::Clock::new_tokio());
        let layer = seatbelt::retry::Retry::layer("retry", &context)
            .clone_input()
            .base_delay(moment)
            .recovery_with(|result: &Result<u64, Failed>, _| match result {
                Ok(_) => seatbelt::RecoveryInfo::never(),
                Err(_) => seatbelt::RecoveryInfo::retry(),
            });
        tower::ServiceBuilder::new().layer(layer).service(strict)
    };
    let resilience = RetryLayer::<u64, u64, Failed>::builder().max_attempts(3).fixed_backoff(moment).build();
    let found = [
        Some(readied(|strict| ours.layer(strict.map_err(BoxError::from)))),
        Some(readied(|strict| tower::retry::Retry::new(OnError, strict.map_err(BoxError::from)))),
        Some(readied(|strict| resilience.layer(strict))),
        Some(readied(seatbelt)),
        None,
        None,
        None,
    ];
    Row { must: "a retry calls nothing that it has not made ready", found }
}

pub fn rows() -> Vec<Row> {
    vec![budget(), readiness()]
}
