//! How large the future of a call is, and what else the call has on the heap: ours beside the peers', all over one inner
//! service, a model whose future is its answer. The layers are those of the rows; their settings make no size.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use seawall::bulkhead::BulkheadLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Window};
use seawall::fallback::FallbackLayer;
use seawall::gate::GateLayer;
use seawall::monitor::Monitor;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::TokenBucketLayer;
use seawall::{Fault, Refusal, RefusalKind, Verdict, classify};
use tower::{Layer, Service, ServiceBuilder};
use tower_resilience::bulkhead::BulkheadLayer as TheirBulkhead;
use tower_resilience::circuitbreaker::CircuitBreakerLayer as TheirBreaker;
use tower_resilience::fallback::FallbackLayer as TheirFallback;
use tower_resilience::retry::RetryLayer as TheirRetry;
use tower_resilience::timelimiter::TimeLimiterLayer;

use crate::drive::{Prompt, Reply, call};
use crate::ours::{LOTS, Open, PLENTY, SOUND, routes};
use crate::rows::{FOUR, GOVERNOR, LIMIT, TOWER_STACK};
use crate::stacks::{ATTEMPT, retried, tower_four_over};
use crate::theirs::{self, OnError};

/// One layer beside one peer.
pub struct Size {
    pub layer: &'static str,
    pub ours: Held,
    pub peer: &'static str,
    /// `None`: the peer is asked and makes no future.
    pub theirs: Option<Held>,
}

/// Bytes of one call.
#[derive(Clone, Copy)]
pub struct Held {
    pub future: usize,
    /// On the heap while it runs, at most: where the rest of a future is that is boxed.
    pub heap: u64,
}

/// The inner service, whose answers and errors can be cloned, as some peers demand.
#[derive(Clone, Copy)]
struct Inner;

type Error = Fault<Infallible>;

impl Service<Prompt> for Inner {
    type Response = Reply;
    type Error = Error;
    type Future = Ready<Result<Reply, Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, prompt: Prompt) -> Self::Future {
        black_box(prompt.0);
        ready(Ok(Reply::default()))
    }
}

/// Around the inner service.
trait Ours: Service<Prompt, Response = Reply, Error = Error> + Clone + Send + 'static {}
impl<S: Service<Prompt, Response = Reply, Error = Error> + Clone + Send + 'static> Ours for S {}

fn held<S: Service<Prompt>>(mut service: S) -> Held {
    let prompt = Prompt::described();
    // What is made once is made before.
    let _ = call(&mut service, prompt).is_ok();
    let mut cx = Context::from_waker(Waker::noop());
    let mut size = 0;
    let run = || {
        assert!(service.poll_ready(&mut cx).is_ready(), "it never waits");
        let future = pin!(service.call(prompt));
        size = size_of_val(&*future);
        assert!(future.poll(&mut cx).is_ready(), "it answers at once");
    };
    let heap = allocation_counter::measure(run).bytes_max;
    Held { future: size, heap }
}

fn good(_: Result<&Reply, &Error>) -> Verdict {
    Verdict::SUCCESS
}

fn breaker(inner: impl Ours) -> impl Ours {
    let builder = CircuitBreakerLayer::builder().classify(classify::from_fn(good));
    builder.build().expect(SOUND).at_head().layer(inner)
}

fn bulkhead(inner: impl Ours) -> impl Ours {
    BulkheadLayer::new(64).at_head().layer(inner)
}

fn bucket(inner: impl Ours) -> impl Ours {
    let builder = TokenBucketLayer::builder().requests(PLENTY).classify(classify::from_fn(good));
    builder.build().expect(SOUND).at_head().layer(inner)
}

fn bucket_of_two(inner: impl Ours) -> impl Ours {
    let builder = TokenBucketLayer::builder().requests(PLENTY).tokens(PLENTY).assumed_output(1);
    builder.classify(classify::from_fn(good)).build().expect(SOUND).at_head().layer(inner)
}

fn guard(budgets: usize, inner: impl Ours) -> impl Ours {
    let price = Price::per_million("2.50", "10").expect("a price");
    let mut builder = CostGuardLayer::builder().prices(PriceTable::new().model("gpt-4o", price));
    for window in [Window::TOTAL, Window::DAY, Window::MONTH].into_iter().take(budgets) {
        builder = builder.budget(Budget::new(LOTS, window));
    }
    builder.build().expect(SOUND).at_head().layer(inner)
}

fn retry(inner: impl Ours) -> impl Ours {
    let policy = RetryPolicy::builder().classify(classify::from_fn(good)).build();
    RetryLayer::new(policy.expect(SOUND)).layer(inner)
}

fn timeout(inner: impl Ours) -> impl Ours {
    TimeoutLayer::new(ATTEMPT).at_head().layer(inner)
}

fn fallback(inner: impl Ours) -> impl Ours {
    let judge = classify::responses(|_: &Reply| Verdict::SUCCESS);
    FallbackLayer::builder(routes()).classify(judge).build().expect(SOUND).at_head().layer(inner)
}

fn monitor() -> Monitor {
    Monitor::builder().target("openai", "gpt-4o").build().expect(SOUND)
}

/// Ours beside tower's `ConcurrencyLimit`, and alone: what the bars are multiples of.
fn bars() -> Vec<Size> {
    let limit = held(tower::limit::ConcurrencyLimit::new(Inner, 64));
    let beside = |layer, ours| Size { layer, ours, peer: LIMIT, theirs: Some(limit) };
    let alone = |layer, ours| Size { layer, ours, peer: GOVERNOR, theirs: None };
    vec![
        beside("a gate that decides nothing", held(GateLayer::from_gate(Open).at_head().layer(Inner))),
        beside("bulkhead", held(bulkhead(Inner))),
        beside("circuit breaker", held(breaker(Inner))),
        alone("token bucket", held(bucket(Inner))),
        alone("token bucket, two dimensions", held(bucket_of_two(Inner))),
        beside("cost guard, one budget", held(guard(1, Inner))),
        beside("cost guard, three budgets", held(guard(3, Inner))),
        beside("monitor of calls", held(monitor().layer().at_head().layer(Inner))),
        beside("monitor of attempts", held(monitor().attempts().at_head().layer(Inner))),
        beside("retry that does not retry", held(retry(Inner))),
        beside("fallback at its first target", held(fallback(Inner))),
    ]
}

fn their_bulkhead() -> TheirBulkhead {
    TheirBulkhead::builder().max_concurrent_calls(64).build().expect(SOUND)
}

fn their_breaker<S: Ours>(inner: S) -> Held
where
    S::Future: Send,
{
    held(TheirBreaker::builder().build().expect(SOUND).layer(inner))
}

/// The context and the clock of seatbelt.
fn context() -> seatbelt::ResilienceContext<Prompt, Result<Reply, Error>> {
    seatbelt::ResilienceContext::new(tick::Clock::new_tokio())
}

fn seatbelts_breaker() -> Held {
    let layer = seatbelt::breaker::Breaker::layer("breaker", &context())
        .recovery_with(|_, _| seatbelt::RecoveryInfo::never())
        .rejected_input_error(|_, _| Refusal::new(RefusalKind::Open).into());
    held(ServiceBuilder::new().layer(layer).service(Inner))
}

fn seatbelts_retry() -> Held {
    let layer = seatbelt::retry::Retry::layer("retry", &context());
    let layer = layer.clone_input().recovery_with(|_, _| seatbelt::RecoveryInfo::never());
    held(ServiceBuilder::new().layer(layer).service(Inner))
}

/// Of the future of its breaker for futures: the row has the breaker for plain calls, which makes none.
fn failsafes_breaker() -> Held {
    let breaker = failsafe::Config::new().build();
    let call = move |prompt| failsafe::futures::CircuitBreaker::call(&breaker, Inner.call(prompt));
    held(tower::service_fn(call))
}

fn throttle() -> throttle_net::Throttle {
    throttle_net::Throttle::builder().rate(900_000_000, Duration::from_secs(1)).build()
}

/// Beside each peer that does the same work.
fn others() -> Vec<Size> {
    const RESILIENCE: &str = "tower-resilience";
    const THROTTLE: &str = "throttle-net";
    let size = |layer, ours, peer, theirs| Size { layer, ours, peer, theirs: Some(theirs) };
    let rate_limit = tower::limit::RateLimitLayer::new(u64::MAX, Duration::from_secs(1));
    let throttled = throttle_net::tower::ThrottleLayer::new(throttle());
    let broken = throttle_net::CircuitBreaker::builder().build(throttle());
    let broken = throttle_net::tower::CircuitBreakerLayer::new(Arc::new(broken));
    let their_retry = TheirRetry::<Prompt, Reply, Error>::builder().max_attempts(3).build();
    let their_fallback = TheirFallback::<Prompt, Reply, Error>::value(Reply::default());
    let (breaking, limiting) = (held(breaker(Inner)), held(bucket(Inner)));
    let (retrying, timing) = (held(retry(Inner)), held(timeout(Inner)));
    vec![
        size("circuit breaker", breaking, RESILIENCE, their_breaker(Inner)),
        size("circuit breaker", breaking, "seatbelt", seatbelts_breaker()),
        size("circuit breaker", breaking, "failsafe", failsafes_breaker()),
        size("bulkhead", held(bulkhead(Inner)), RESILIENCE, held(their_bulkhead().layer(Inner))),
        size("token bucket", limiting, "tower RateLimit", held(rate_limit.layer(Inner))),
        size("token bucket", limiting, RESILIENCE, held(theirs::limiter().layer(Inner))),
        size("token bucket", limiting, THROTTLE, held(throttled.layer(Inner))),
        size(
            "token bucket in a circuit breaker",
            held(breaker(bucket(Inner))),
            THROTTLE,
            held(broken.layer(Inner)),
        ),
        size("retry", retrying, "tower Retry", held(tower::retry::Retry::new(OnError, Inner))),
        size("retry", retrying, RESILIENCE, held(their_retry.layer(Inner))),
        size("retry", retrying, "seatbelt", seatbelts_retry()),
        size("timeout", timing, "tower Timeout", held(tower::timeout::Timeout::new(Inner, ATTEMPT))),
        size("timeout", timing, RESILIENCE, held(TimeLimiterLayer::standard().build().layer(Inner))),
        size("fallback", held(fallback(Inner)), RESILIENCE, held(their_fallback.layer(Inner))),
    ]
}

/// Whole stacks.
fn stacks() -> Vec<Size> {
    let tower_four = held(tower_four_over(Inner));
    let seven = TimeLimiterLayer::standard().build().layer(retried(Inner));
    let seven = held(TheirFallback::<Prompt, Reply, _>::value(Reply::default()).layer(seven));
    let six = held(TheirFallback::<Prompt, Reply, _>::value(Reply::default()).layer(retried(Inner)));
    let four = held(retry(bucket(bulkhead(timeout(Inner)))));
    let ours = held(fallback(retry(breaker(guard(1, bucket(bulkhead(Inner)))))));
    let all = |peer, theirs| Size { layer: "all six", ours, peer, theirs: Some(theirs) };
    vec![
        Size { layer: FOUR, ours: four, peer: TOWER_STACK, theirs: Some(tower_four) },
        all(TOWER_STACK, tower_four),
        all("tower-resilience's seven", seven),
        all("tower-resilience's six", six),
    ]
}

/// All of them; the inner service alone first.
pub fn all() -> Vec<Size> {
    let bare = held(Inner);
    let mut sizes =
        vec![Size { layer: "the inner service", ours: bare, peer: "the inner service", theirs: Some(bare) }];
    sizes.extend(bars());
    sizes.extend(others());
    sizes.extend(stacks());
    sizes
}
