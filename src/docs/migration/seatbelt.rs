//! From seatbelt (0.11).
//!
//! seatbelt asks a closure what a result means for recovery; here a [`Classify`](crate::Classify) gives a
//! [`Verdict`](crate::Verdict), and over HTTP the layers have one. There is no context and no clock to hand in: the layers take
//! tokio's, which a test can pause.
//!
//! | seatbelt | here |
//! |---|---|
//! | `RecoveryInfo::retry()` | [`Class::Transient`](crate::Class::Transient), or [`Throttled`](crate::Class::Throttled) for a limit |
//! | `RecoveryInfo::unavailable()` | `Transient` too: whether it is an outage the breaker finds out |
//! | `RecoveryInfo::never()` | [`Success`](crate::Class::Success), [`Invalid`](crate::Class::Invalid), [`Unfit`](crate::Class::Unfit), [`Denied`](crate::Class::Denied), [`Exhausted`](crate::Class::Exhausted): what it is |
//! | `RecoveryInfo::…delay(t)` | [`Verdict::with_hint(Some(t))`](crate::Verdict::with_hint): a floor, and no replacement of the backoff |
//! | `Recovery` on your type | `Classify`, by [`classify::from_fn`](crate::classify::from_fn) |
//!
//! # Retry
//!
//! | seatbelt | here ([`RetryPolicy::builder`](crate::retry::RetryPolicy::builder)) | what is otherwise |
//! |---|---|---|
//! | `max_retry_attempts(3)` | [`attempts(4)`](crate::retry::RetryPolicyBuilder::attempts) | the first one counts; 3 by default |
//! | `backoff(Backoff::Exponential)`, `base_delay(t)` | [`backoff`](crate::retry::RetryPolicyBuilder::backoff) with [`Backoff::exponential(t)`](crate::retry::Backoff::exponential) | 500 ms by default, where it was 10 ms |
//! | `max_delay(t)` | [`Backoff::cap(t)`](crate::retry::Backoff::cap) | 20 s by default, where there was none |
//! | `use_jitter(true)` | [`Jitter::Full`](crate::retry::Jitter::Full), the default; [`Jitter::Decorrelated`](crate::retry::Jitter::Decorrelated) is nearest | |
//! | `clone_input()`, `clone_input_with(f)` | nothing, or [`copy_with(f)`](crate::retry::RetryPolicyBuilder::copy_with) | |
//! | `restore_input(f)` | – | the copy is kept |
//! | `recovery()`, `recovery_with(f)` | [`classify`](crate::retry::RetryPolicyBuilder::classify) | needed for own types alone |
//! | `handle_unavailable(true)` | – | transient failures are always retried, within the budget |
//! | `on_retry(f)` | [`observer`](crate::retry::RetryLayer::observer): [`Event::Retrying`](crate::monitor::Event::Retrying) | |
//! | `enable_if(f)` | [`Once`](crate::call::Once) in a request | |
//!
//! # Circuit breaker
//!
//! | seatbelt | here ([`CircuitBreakerLayer::builder`](crate::circuit_breaker::CircuitBreakerLayer::builder)) | what is otherwise |
//! |---|---|---|
//! | `failure_threshold(0.1)` | [`failure_rate(0.1)`](crate::circuit_breaker::SettingsBuilder::failure_rate) | 0.5 by default |
//! | `min_throughput(100)` | [`minimum_calls(100)`](crate::circuit_breaker::SettingsBuilder::minimum_calls) | 20 by default |
//! | `sampling_duration(t)` | [`window(t)`](crate::circuit_breaker::SettingsBuilder::window) | 30 s in both |
//! | `break_duration(t)` | [`open_for(t)`](crate::circuit_breaker::SettingsBuilder::open_for) | 30 s by default where it was 5 s; it grows, and heeds hints |
//! | `half_open_mode(HalfOpenMode::quick())` | [`probes(1)`](crate::circuit_breaker::SettingsBuilder::probes), [`probe_successes(1)`](crate::circuit_breaker::SettingsBuilder::probe_successes) | |
//! | `half_open_mode(HalfOpenMode::progressive(t))` | [`ramp(t)`](crate::circuit_breaker::SettingsBuilder::ramp) | after the probes, and over the whole time given |
//! | `abandoned_policy(AbandonedPolicy::ignore())` | [`abandoned_counts_after(Duration::MAX)`](crate::circuit_breaker::SettingsBuilder::abandoned_counts_after) | |
//! | `abandoned_policy(AbandonedPolicy::as_failures())` | `abandoned_counts_after(Duration::ZERO)` | only where no head had come |
//! | `abandoned_policy(AbandonedPolicy::rate_threshold(r))` | – | by time: 60 s without a head |
//! | `breaker_id(f)` | [`keyed_by(f)`](crate::circuit_breaker::CircuitBreakerBuilder::keyed_by) | bounded, at 10 000 keys |
//! | `rejected_input(f)`, `rejected_input_error(f)` | – | a [`Refusal`](crate::Refusal) as an error, or `.respond()` |
//! | `on_opened(f)`, `on_closed(f)`, `on_probing(f)` | [`observer`](crate::circuit_breaker::CircuitBreakerBuilder::observer): [`Event::BreakerMoved`](crate::monitor::Event::BreakerMoved) | |
//! | `disable()` | [`observe_only(true)`](crate::circuit_breaker::CircuitBreakerBuilder::observe_only), or no layer | |
//!
//! # Timeout, fallback, hedging
//!
//! | seatbelt | here |
//! |---|---|
//! | `Timeout…timeout(t)`, `timeout_override(f)` | [`TimeoutLayer`](crate::timeout::TimeoutLayer); one call's own limit as a [`Deadline`](crate::Deadline) in the request |
//! | `timeout_output(f)`, `timeout_error(f)` | a [`Refusal`](crate::Refusal) of kind [`TimedOut`](crate::RefusalKind::TimedOut) with its phase |
//! | `Fallback…should_fallback(f)`, `fallback_async(f)` | [`FallbackLayer`](crate::fallback::FallbackLayer): other targets; for a value of your own a layer of tower |
//! | `Hedging…` | no counterpart |
//! | `RetryConfig`, `BreakerConfig` from a file | `Config` (feature `serde`) |
