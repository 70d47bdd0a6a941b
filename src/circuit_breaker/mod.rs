//! Refuses calls to an upstream that keeps failing, and probes whether it is back.
//!
//! # Why
//!
//! A failing upstream is not helped by more calls, and callers are not helped by waiting for the next failure: a refusal
//! at once lets a fallback go on. A retry budget bounds how much is added to an overload; a breaker takes the load away.
//!
//! # States
//!
//! | state | what it does | leaves it |
//! |---|---|---|
//! | [`Closed`](BreakerState::Closed) | admits, and counts | when one of its rules is met |
//! | [`Open`](BreakerState::Open) | refuses, with the time that is left | with the first call after that time |
//! | [`HalfOpen`](BreakerState::HalfOpen) | admits a few probes | closes when enough succeeded; opens again with the first that fails |
//!
//! Every move begins a new *generation*, and an answer counts only for the generation in which it was admitted: what
//! was sent before an outage says nothing about the recovery. A probe has a *lease*; when that is over another takes its
//! slot, so that one hanging probe does not keep the breaker from closing.
//!
//! # What counts
//!
//! The answer's [`Verdict`](crate::Verdict) decides: `Transient` and `Stalled` are failures; `Exhausted` and `Denied`
//! open at once, until the upstream's hint or for the own open time, where the credential is the upstream's
//! [own](SettingsBuilder::own_credential); `Throttled` is no vote, since a limit is no outage
//! (see [`OnThrottled`]); `Unfit`, `Invalid` and `Refused` are none, since the server answered, or was not asked. A panic
//! of the inner service is a failure.
//!
//! With a body, a good head is not the end: what counts is how the body ends, so that an error event inside a stream
//! that began with 200, where an [`Outcome`](crate::call::Outcome) tells, or a connection that breaks is a failure. A
//! failing head decides at once.
//!
//! # Cancellation
//!
//! A caller who leaves is no vote, and a probe that is dropped gives its slot back. But a timeout *outside* the breaker
//! looks just like that, and would make it blind to an upstream that hangs. So a call that is given up counts as a
//! failure if no head had come after [`abandoned_counts_after`](SettingsBuilder::abandoned_counts_after). It is better
//! to put the timeout inside.
//!
//! # Defaults
//!
//! | setting | default | from |
//! |---|---|---|
//! | failures in a row | 5 within 60 s | Envoy, Finagle; finds an outage where calls are too few for a rate |
//! | failure rate | 50 % of at least 20 | Hystrix: at 10 % true failures fewer than one full window in 100 000 trips, where a rule of 10 % of 100 trips on every second |
//! | window | 30 s, in tenths | Polly, Finagle, seatbelt |
//! | slow calls | off | |
//! | open | 30 s ± 10 %, ×2 up to 5 min | Envoy, Finagle |
//! | back to 30 s | after 5 min closed | one longest open time |
//! | probes | 3 at once, 3 must succeed | one success may be luck, and one failure already decides |
//! | a probe's lease | the open time | |
//! | throttling | no vote | a token bucket pauses for it |
//! | given up without a head | a failure after 60 s | our judgement |
//! | an upstream's hint | at most 24 h | it must not shut itself out for good |
//! | credential | the upstream's own | else one caller's denial would shut out the others |
//! | ramp after closing | off | the probes have shown that it works |
//! | keys | 10 000, where it is [keyed](CircuitBreakerBuilder::keyed) | |
//!
//! # Examples
//!
//! With the defaults:
//!
//! ```
//! use seawall::{BoxError, circuit_breaker::CircuitBreakerLayer};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let client = ServiceBuilder::new()
//!     .layer(CircuitBreakerLayer::new())
//!     .service_fn(|_: http::Request<String>| async {
//!         let overloaded = http::Response::builder().status(503).body(String::new());
//!         overloaded.map_err(BoxError::from)
//!     });
//! for _ in 0..5 {
//!     let response = client.clone().oneshot(http::Request::default()).await.unwrap();
//!     assert_eq!(response.status(), 503);
//! }
//! let error = client.oneshot(http::Request::default()).await.unwrap_err();
//! let refusal = seawall::refusal::find(&*error).expect("five failures in a row are enough");
//! assert!(refusal.retry_after().is_some());
//! # }
//! ```
//!
//! Customised: one state a model, other rules, and a look at the state.
//!
//! ```
//! use std::time::Duration;
//! use seawall::circuit_breaker::{CircuitBreakerLayer, OnThrottled, Settings};
//! use seawall::gate::ByModel;
//! use seawall::monitor::{BreakerState, Event};
//!
//! let layer = CircuitBreakerLayer::builder()
//!     .name("openai")
//!     .settings(Settings::fast())
//!     .throttled(OnThrottled::Opens)
//!     .ramp(Duration::from_secs(30))
//!     .observer(|event: &Event<'_>| println!("{event:?}"))
//!     .keyed(ByModel)
//!     .build()?;
//! let breaker = layer.gate().get(&"gpt-5".into());
//! assert_eq!(breaker.state(), BreakerState::Closed);
//! breaker.force_open();
//! assert_eq!(breaker.state(), BreakerState::Open);
//! # Ok::<(), seawall::ConfigError>(())
//! ```
//!
//! # Where to put it
//!
//! Inside the retry, so that it sees each attempt; outside whatever spends or waits (cost guard, token bucket, bulkhead),
//! so that a refused call costs nothing; and outside the attempt's timeout, so that it sees it. One breaker an upstream
//! and model: one over several makes a partial outage a whole one.
//!
//! # Events
//!
//! [`BreakerMoved`](crate::monitor::Event::BreakerMoved) for each move, with its cause;
//! [`Refused`](crate::monitor::Event::Refused), or [`WouldRefuse`](crate::monitor::Event::WouldRefuse) where it only
//! observes; [`Abandoned`](crate::monitor::Event::Abandoned) for each admitted call that its caller gave up.
//!
//! To a [`Monitor`](crate::monitor::Monitor) that observes the layer they are `seawall_breaker_state`,
//! `seawall_breaker_trips_total`, `seawall_layer_refusals_total`, `seawall_layer_would_refuse_total` and
//! `seawall_layer_abandoned_total`; one that watches the handle also has `seawall_handle_breaker_state`.
//!
//! # What it costs
//!
//! A good answer: one atomic load to admit, one read of the kernel's coarse clock and one compare-and-swap to count it; no
//! lock, no allocation. Failures, probes, count windows and the slow-call rule read the exact clock and take a short lock,
//! under which no user code runs. On Linux the coarse clock lags by up to a tick (1 to 10 ms): by so much a success may be
//! counted in the bucket before, and by so much a refusal's wait may be too long, never too short.

mod cell;
mod gate;
mod handle;
mod layer;
#[cfg(all(test, seawall_loom))]
mod models;
mod permit;
mod probes;
mod ramp;
mod settings;
mod state;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
mod window;

pub use gate::CircuitBreaker;
pub use handle::Snapshot;
pub use layer::{CircuitBreakerBuilder, CircuitBreakerLayer, KeyedLayer, OneForAll, OnePerKey};
pub use permit::BreakerPermit;
pub use settings::{OnThrottled, Settings, SettingsBuilder, SlowUntil};

pub use crate::monitor::BreakerState;
