//! From tower-resilience (0.13).
//!
//! Its layers may stay beside these; the names below are those of its builders.
//!
//! # Circuit breaker
//!
//! | tower-resilience | here ([`CircuitBreakerLayer::builder`](crate::circuit_breaker::CircuitBreakerLayer::builder)) | what is otherwise |
//! |---|---|---|
//! | `standard()`, `fast_fail()`, `tolerant()` | `CircuitBreakerLayer::new()`, [`Settings::fast`](crate::circuit_breaker::Settings::fast), [`Settings::tolerant`](crate::circuit_breaker::Settings::tolerant) | |
//! | `failure_rate_threshold(0.5)` | [`failure_rate(0.5)`](crate::circuit_breaker::SettingsBuilder::failure_rate) | |
//! | `sliding_window_type(CountBased)`, `sliding_window_size(n)` | [`count_window(n)`](crate::circuit_breaker::SettingsBuilder::count_window) | it slides: old calls leave it |
//! | `sliding_window_type(TimeBased)`, `sliding_window_duration(t)` | [`window(t)`](crate::circuit_breaker::SettingsBuilder::window) | the default kind, 30 s; constant cost a call |
//! | `minimum_number_of_calls(n)` | [`minimum_calls(n)`](crate::circuit_breaker::SettingsBuilder::minimum_calls) | 20 by default |
//! | `consecutive_failures(k)`, `failure_model` | [`consecutive_failures(k, within)`](crate::circuit_breaker::SettingsBuilder::consecutive_failures) | both rules at once; `without_failure_rate` leaves one |
//! | `slow_call_duration_threshold(t)`, `slow_call_rate_threshold(r)` | [`slow_call_rate(t, r)`](crate::circuit_breaker::SettingsBuilder::slow_call_rate) | a slow probe is a failed probe |
//! | `wait_duration_in_open(t)` | [`open_for(t)`](crate::circuit_breaker::SettingsBuilder::open_for), [`open_growth(1)`](crate::circuit_breaker::SettingsBuilder::open_growth) | doubles up to 5 min by default, with jitter; an upstream's hint can lengthen it |
//! | `permitted_calls_in_half_open(n)` | [`probes(n)`](crate::circuit_breaker::SettingsBuilder::probes), [`probe_successes(n)`](crate::circuit_breaker::SettingsBuilder::probe_successes) | 3 by default; a probe that hangs loses its slot |
//! | `failure_classifier(f)`, `classify_response(f)` | [`classify(c)`](crate::circuit_breaker::CircuitBreakerBuilder::classify) | a [`Verdict`](crate::Verdict) in place of a `bool`; over HTTP the default knows statuses and what the outcome layer read |
//! | `manual_mode()`, `build_with_handle()` | the [`gate()`](crate::circuit_breaker::CircuitBreakerLayer::gate) of any layer: `force_open`, `force_closed`, `reset`, `probe_now`, `snapshot` | |
//! | `backpressure()` | – | an open breaker refuses at once |
//! | `with_fallback(f)` | [`FallbackLayer`](crate::fallback::FallbackLayer) above, or `.respond()` | |
//! | `on_state_transition(f)`, `on_call_rejected(f)` … | [`observer(f)`](crate::circuit_breaker::CircuitBreakerBuilder::observer) | one closure for all [events](crate::monitor::Event) |
//!
//! Answers of an earlier state do not count, and a call that its caller gave up counts as a failure after 60 s without a head:
//! both had no say there.
//!
//! # Bulkhead
//!
//! | tower-resilience | here ([`BulkheadLayer::builder`](crate::bulkhead::BulkheadLayer::builder)) | what is otherwise |
//! |---|---|---|
//! | `max_concurrent_calls(25)` | `builder(25)` | there is no default |
//! | `max_wait_duration(t)` | [`max_wait(t)`](crate::bulkhead::BulkheadBuilder::max_wait) | 10 s by default, not for ever; the queue is bounded too |
//! | `reject_when_full()` | [`refuse()`](crate::bulkhead::BulkheadBuilder::refuse) | at once, and its kind is [`Full`](crate::RefusalKind::Full) |
//! | `backpressure()` | – | waits in `call`, without a readied inner service |
//! | `small()`, `medium()`, `large()` | – | say a number |
//!
//! # Rate limiter
//!
//! | tower-resilience | here ([`TokenBucketLayer::builder`](crate::token_bucket::TokenBucketLayer::builder)) | what is otherwise |
//! |---|---|---|
//! | `limit_for_period(n)`, `refresh_period(t)` | [`requests`](crate::token_bucket::TokenBucketBuilder::requests) of a [`Quota`](crate::token_bucket::Quota): `per_second(n)`, `per_minute(n)` … | flows in evenly; tokens and units of your own beside requests |
//! | `burst_size(n)` | [`Quota::burst(n)`](crate::token_bucket::Quota::burst) | for requests 10 s worth by default |
//! | `window_type(SlidingLog)` | [`strict()`](crate::token_bucket::TokenBucketBuilder::strict) | the same bound in any window, in constant memory |
//! | `window_type(Fixed)`, `window_type(SlidingCounter)` | – | |
//! | `timeout_duration(t)` | [`max_wait(t)`](crate::token_bucket::TokenBucketBuilder::max_wait) | a call that would wait longer is refused at once, and told how long |
//! | `backpressure()` | – | waits in `call`, first come, first served |
//!
//! # Retry
//!
//! | tower-resilience | here ([`RetryPolicy::builder`](crate::retry::RetryPolicy::builder)) | what is otherwise |
//! |---|---|---|
//! | `max_attempts(3)` | [`attempts(3)`](crate::retry::RetryPolicyBuilder::attempts) | both count the first one |
//! | `max_attempts_fn(f)` | [`Once`](crate::call::Once) in one request, or [`Policy`](crate::retry::Policy) | |
//! | `fixed_backoff(t)`, `exponential_backoff(t)`, `backoff(f)` | [`backoff`](crate::retry::RetryPolicyBuilder::backoff) with [`Backoff::fixed(t)`](crate::retry::Backoff::fixed), `exponential(t)`, `custom(t, f)` | full jitter and a cap of 20 s by default |
//! | `retry_on(f)`, `retry_on_response(f)` | [`classes`](crate::retry::RetryPolicyBuilder::classes), [`classify`](crate::retry::RetryPolicyBuilder::classify) | by verdict; not every error by default |
//! | `budget(RetryBudgetBuilder::new().token_bucket()…)` | [`budget(Budget)`](crate::retry::RetryPolicyBuilder::budget) | on by default: a fifth of the calls, one an upstream |
//! | `conservative()`, `aggressive()` | [`llm()`](crate::retry::RetryPolicy::llm), [`http()`](crate::retry::RetryPolicy::http) | by whether an ambiguous failure may be repeated |
//! | `RetryLayer::<Req, Res, E>::builder()` | `RetryLayer::new(policy)` | no type parameters |
//!
//! `Retry-After` is obeyed, requests need not be `Clone`, and a request is copied only where another attempt can follow.
//!
//! # Time limiter and fallback
//!
//! | tower-resilience | here | what is otherwise |
//! |---|---|---|
//! | `TimeLimiterLayer…timeout_duration(t)` | [`TimeoutLayer::new(t)`](crate::timeout::TimeoutLayer::new) | to the end of the body; head, first content and silence by clocks of their own |
//! | `timeout_fn(f)` | [`Limit::by_size`](crate::timeout::Limit::by_size), or a [`Deadline`](crate::Deadline) in the request | |
//! | `cancel_running_future(false)`, `detached()`, `streaming()` | – | what is too late is dropped |
//! | `FallbackLayer::value`, `value_fn`, `from_error`, `exception` | – | a layer of tower: `.map_result`, `.then` |
//! | `FallbackLayer::service`, `tower_service` | [`FallbackLayer`](crate::fallback::FallbackLayer) with [`Routes`](crate::fallback::Routes) | one inner service, many targets; responses need not be `Clone` |
//!
//! Hedge, cache, coalesce, adaptive concurrency, outlier detection and chaos have no counterpart here.
