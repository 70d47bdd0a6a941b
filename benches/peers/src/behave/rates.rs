//! Rate limiters.

#![expect(clippy::disallowed_types, reason = "peers know no other clock than the real one")]

use std::convert::Infallible;
use std::future::Future;
use std::num::{NonZeroU32, NonZeroU64};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{Fault, Verdict, classify, refusal};
use throttle_net::tower::ThrottleLayer;
use throttle_net::{Throttle, ThrottleError};
use tower::{Layer, Service, ServiceExt};
use tower_resilience::ratelimiter::RateLimiterLayer;

use super::bulkheads::look;
use super::{Row, holds};
use crate::drive::{Echo, TypedEcho};
use crate::measure::precise;
use crate::theirs::Plain;

const HOUR: Duration = Duration::from_secs(3_600);
const FIVE: Quota = Quota::per_hour(NonZeroU64::new(5).unwrap()).burst(NonZeroU64::new(5).unwrap());
/// What a call may wait.
const PATIENCE: Duration = Duration::from_millis(100);
/// The time of one call.
const EACH: Duration = Duration::from_millis(40);

fn five() -> impl Service<u64, Response = u64, Error = Fault<Infallible>> + Clone {
    let judge = |_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS;
    let builder = TokenBucketLayer::builder().requests(FIVE).classify(classify::from_fn(judge));
    builder.max_wait(PATIENCE).build().expect("it is sound").at_head().layer(TypedEcho)
}

fn five_of_throttle_net() -> impl Service<u64, Response = u64> + Clone {
    let throttle = Throttle::builder().rate(5, HOUR).build();
    ThrottleLayer::new(throttle).with_timeout(PATIENCE).layer(Echo)
}

/// Readies five clones, drops them, and calls.
fn readied<S>(service: &S) -> Result<(), String>
where
    S: Service<u64> + Clone,
{
    let mut cx = Context::from_waker(Waker::noop());
    (0..5).for_each(|_| assert!(service.clone().poll_ready(&mut cx).is_ready(), "there is room"));
    holds(matches!(look(service, 7), Some(Ok(_))), || "five clones that never called spent five calls".into())
}

fn nothing_is_burnt() -> Row {
    let resilience = RateLimiterLayer::builder().limit_for_period(5).refresh_period(HOUR).backpressure();
    let resilience = resilience.build().expect("it is sound").layer(Plain);
    let throttle_net = Some(readied(&five_of_throttle_net()));
    let found = [Some(readied(&five())), None, Some(readied(&resilience)), None, None, None, throttle_net];
    Row { must: "a clone that is readied and dropped spends nothing of the rate", found }
}

/// Five calls, and one that would have to wait longer than it may.
fn in_vain<S>(service: &S) -> Result<(), String>
where
    S: Service<u64> + Clone,
{
    (0..5).for_each(|_| assert!(matches!(look(service, 7), Some(Ok(_))), "there is room"));
    holds(matches!(look(service, 7), Some(Err(_))), || "it waits, and is refused then".into())
}

fn no_wait_in_vain() -> Row {
    let resilience = RateLimiterLayer::builder().limit_for_period(5).refresh_period(HOUR);
    let resilience = resilience.timeout_duration(PATIENCE).build().expect("it is sound").layer(Plain);
    let throttle_net = Some(in_vain(&five_of_throttle_net()));
    let found = [Some(in_vain(&five())), None, Some(in_vain(&resilience)), None, None, None, throttle_net];
    Row { must: "a call that may wait 100 ms is refused at once where there is room in 12 minutes", found }
}

fn above_the_burst() -> Row {
    let judge = |_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS;
    let builder = TokenBucketLayer::builder().dimension("units", FIVE, |cost: &u64| *cost);
    let layer = builder.classify(classify::from_fn(judge)).build().expect("it is sound");
    let service = layer.at_head().layer(TypedEcho);
    // Refused without a time to come back at, and nothing is taken.
    let refused = match look(&service, 6) {
        Some(Err(error)) => refusal::find(&error).is_some_and(|refusal| refusal.retry_after().is_none()),
        _ => false,
    };
    let ours = refused && matches!(look(&service, 5), Some(Ok(_)));
    let five = NonZeroU32::new(5).expect("it is not zero");
    let governor = governor::RateLimiter::direct(governor::Quota::per_hour(five).allow_burst(five));
    let never = governor.check_n(five.saturating_add(1)).is_err();
    let theirs = never && matches!(governor.check_n(five), Ok(Ok(())));
    let throttle = Arc::new(Throttle::builder().rate(5, HOUR).build());
    let costing = |cost| ThrottleLayer::shared(throttle.clone()).with_cost(cost).layer(Echo);
    let never = match look(&costing(6), 7) {
        Some(Err(error)) => {
            matches!(error.downcast_ref(), Some(ThrottleError::CostExceedsCapacity { .. }))
        }
        _ => false,
    };
    let throttle_net = never && matches!(look(&costing(5), 7), Some(Ok(_)));
    let found = [
        Some(holds(ours, || "it is not".into())),
        None,
        None,
        None,
        None,
        Some(holds(theirs, || "it is not".into())),
        Some(holds(throttle_net, || "it is not".into())),
    ];
    Row { must: "a cost above the burst is refused at once and for good, and takes nothing", found }
}

fn runtime() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime with a timer needs nothing that can be missing")
}

/// A limiter's call: whether it is served in the end.
type Called = Pin<Box<dyn Future<Output = bool>>>;

/// Calls through clones of a service.
fn calls<S>(service: S) -> impl Fn() -> Called
where
    S: Service<u64> + Clone + 'static,
{
    move || {
        let service = service.clone();
        Box::pin(async move { service.oneshot(7).await.is_ok() })
    }
}

/// One call in 40 ms: after 20 that wait, and give up, the next one waits for its own time, and not for that of the others.
fn left(call: impl Fn() -> Called) -> Result<(), String> {
    runtime().block_on(async {
        assert!(call().await, "there is room");
        for _ in 0..20 {
            let mut waiting = call();
            let polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending(), "there is no room");
        }
        let served = tokio::time::timeout(EACH * 10, call()).await;
        holds(served == Ok(true), || "it waits for those that left too".into())
    })
}

fn waiters_that_left() -> Row {
    let quota = Quota::per_second(NonZeroU64::new(25).expect("it is not zero")).burst(NonZeroU64::MIN);
    let judge = |_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS;
    let builder = TokenBucketLayer::builder().requests(quota).classify(classify::from_fn(judge));
    let ours = builder.max_wait(HOUR).build().expect("it is sound").at_head().layer(TypedEcho);
    let resilience = RateLimiterLayer::builder().limit_for_period(1).refresh_period(EACH).burst_size(0);
    let resilience = resilience.timeout_duration(HOUR).build().expect("it is sound").layer(Plain);
    let governor = governor::Quota::with_period(EACH).expect("it is not zero");
    let governor = Arc::new(governor::RateLimiter::direct(governor));
    let governor = move || -> Called {
        let governor = governor.clone();
        Box::pin(async move {
            governor.until_ready().await;
            true
        })
    };
    let throttle_net = ThrottleLayer::new(Throttle::builder().rate(1, EACH).build()).layer(Echo);
    let found = [
        Some(left(calls(ours))),
        None,
        Some(left(calls(resilience))),
        None,
        None,
        Some(left(governor)),
        Some(left(calls(throttle_net))),
    ];
    Row {
        must: "at a call in 40 ms, one behind 20 that waited and gave up is served as if they had not come",
        found,
    }
}

/// Ten calls in 400 ms: one, a pause of nine tenths of that, and as many as are admitted. However short an interval is, no
/// more may be admitted in it than the burst and what the rate adds in it.
fn bounded<F: FnMut() -> bool>(make: impl FnOnce() -> F) -> Result<(), String> {
    let mut times: Vec<(Instant, Instant)> = Vec::new();
    let runtime = runtime();
    // Timers belong to the runtime in which they are made.
    let mut admitted = runtime.block_on(async { make() });
    let mut call = || {
        let before = Instant::now();
        let yes = admitted();
        if yes {
            times.push((before, Instant::now()));
        }
        yes
    };
    runtime.block_on(async {
        let begin = Instant::now();
        assert!(call(), "there is room");
        tokio::time::sleep(EACH * 9).await;
        while begin.elapsed() < EACH * 14 {
            if !call() {
                // Timers of those that wait run meanwhile.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let excess = |from: usize, to: usize| {
        let time = times[to].1 - times[from].0;
        let may = 11.0 + time.as_secs_f64() / EACH.as_secs_f64();
        (precise(1 + to as u64 - from as u64) > may).then(|| (1 + to - from, time))
    };
    let pairs = (0..times.len()).flat_map(|from| (from..times.len()).map(move |to| (from, to)));
    match pairs.filter_map(|(from, to)| excess(from, to)).max() {
        Some((calls, time)) => Err(format!("{calls} calls in {} ms", time.as_millis())),
        None => Ok(()),
    }
}
/// Whether a service takes a call now.
fn admits<S: Service<u64>>(mut service: S) -> impl FnMut() -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    move || {
        matches!(service.poll_ready(&mut cx), Poll::Ready(Ok(())))
            && matches!(pin!(service.call(7)).poll(&mut cx), Poll::Ready(Ok(_)))
    }
}

fn within_the_bound() -> Row {
    let period = EACH * 10;
    let (rate, ten) =
        (NonZeroU32::new(25).expect("it is not zero"), NonZeroU32::new(10).expect("it is not zero"));
    let judge = |_: Result<&u64, &Fault<Infallible>>| Verdict::SUCCESS;
    let quota = Quota::per_second(rate.into()).burst(ten.into());
    let builder = TokenBucketLayer::builder().requests(quota).classify(classify::from_fn(judge));
    let ours = builder.refuse().build().expect("it is sound").at_head().layer(TypedEcho);
    let tower = tower::limit::RateLimitLayer::new(10, period);
    let resilience = RateLimiterLayer::builder().limit_for_period(10).refresh_period(period).burst_size(0);
    let resilience = resilience.timeout_duration(Duration::ZERO).build().expect("it is sound");
    let governor = governor::RateLimiter::direct(governor::Quota::per_second(rate).allow_burst(ten));
    let throttle_net = ThrottleLayer::new(Throttle::builder().rate(10, period).build());
    let throttle_net = throttle_net.with_timeout(Duration::ZERO);
    let found = [
        Some(bounded(|| admits(ours))),
        Some(bounded(|| admits(tower.layer(Echo)))),
        Some(bounded(|| admits(resilience.layer(Plain)))),
        None,
        None,
        Some(bounded(|| || governor.check().is_ok())),
        Some(bounded(|| admits(throttle_net.layer(Echo)))),
    ];
    Row { must: "at ten calls in 400 ms, no interval has more than ten and what the rate adds in it", found }
}

pub fn rows() -> Vec<Row> {
    vec![nothing_is_burnt(), no_wait_in_vain(), above_the_burst(), waiters_that_left(), within_the_bound()]
}
