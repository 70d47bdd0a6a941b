//! From tower's own layers.
//!
//! They can also stay: each of them stands above or below these layers. Move the one that hurts.
//!
//! | tower | here | what is otherwise |
//! |---|---|---|
//! | `ConcurrencyLimitLayer::new(n)` | [`BulkheadLayer::new(n)`](crate::bulkhead::BulkheadLayer::new) | waits in `call` and not in `poll_ready`; at most n wait, 10 s at most; the slot is held to the end of the body |
//! | `GlobalConcurrencyLimitLayer` | the same layer | its services and clones share one state anyway |
//! | `LoadShedLayer` above a limit | [`.refuse()`](crate::bulkhead::BulkheadLayer::refuse) on the bulkhead or the bucket | sheds when *this* limit is reached, and not whenever anything below is not ready |
//! | `RateLimitLayer::new(num, per)` | [`TokenBucketLayer::new`](crate::token_bucket::TokenBucketLayer::new) of a [`Quota`](crate::token_bucket::Quota): `per_second(num)`, `per_minute(num)` … | `Clone`; no double burst where two windows meet; a call that would wait longer than 10 s is refused at once, with the exact wait |
//! | `TimeoutLayer::new(t)` | [`TimeoutLayer::new(t)`](crate::timeout::TimeoutLayer::new) | includes the time until ready and the body; tells the layers below as a [`Deadline`](crate::Deadline); three more clocks |
//! | `RetryLayer::new(policy)` | [`RetryLayer::new(policy)`](crate::retry::RetryLayer::new) | a ready-made policy; the layer sleeps, not the policy; nothing is held meanwhile |
//! | `Policy::retry(&mut req, &mut result)` | [`Policy::decide(&mut attempt)`](crate::retry::Policy::decide) | answers *stop*, with a cause, or *again after a time*; the attempt knows its number, verdict and deadline |
//! | `Policy::clone_request` returns `None` | [`Policy::copy`](crate::retry::Policy::copy) returns `None` | the same, and [`Event::GaveUp`](crate::monitor::Event::GaveUp) says that it was why |
//! | `ExponentialBackoffMaker::new(min, max, jitter, rng)` | [`Backoff::exponential(min)`](crate::retry::Backoff::exponential) with [`.cap(max)`](crate::retry::Backoff::cap) | full jitter; other clones draw other numbers; [`Jitter::Share`](crate::retry::Jitter::Share) is the nearest to tower's |
//! | `TpsBudget::new(ttl, min_per_sec, percent)` | [`Budget::builder()`](crate::retry::Budget::builder) with [`.ratio(percent)`](crate::retry::BudgetBuilder::ratio) and [`.per_second(min_per_sec)`](crate::retry::BudgetBuilder::per_second) | exact to a thousandth; one an upstream; a reserve in place of the `ttl` |
//! | `Steer` | [`Routes`](crate::fallback::Routes) | by model, and goes on to the next target when one fails |
//! | `Balance`, `Buffer`, `SpawnReady`, `Reconnect`, `Discover` | – | keep them, below all of ours |
//! | `Hedge`, `FilterLayer` | – | no counterpart |
//!
//! Before:
//!
//! ```
//! use std::time::Duration;
//! use tower::ServiceBuilder;
//! # use tower::{Service, ServiceExt};
//!
//! let service = ServiceBuilder::new()
//!     .timeout(Duration::from_secs(30))
//!     .load_shed()
//!     .concurrency_limit(8)
//!     .service_fn(|name: String| async move { Ok::<_, tower::BoxError>(name) });
//! # let _ = service.oneshot(String::new());
//! ```
//!
//! After:
//!
//! ```
//! use std::time::Duration;
//! use seawall::{bulkhead::BulkheadLayer, timeout::TimeoutLayer};
//! use tower::ServiceBuilder;
//! # use tower::{Service, ServiceExt};
//!
//! let service = ServiceBuilder::new()
//!     .layer(TimeoutLayer::builder().total(Duration::from_secs(30)).blind().build()?.at_head())
//!     .layer(BulkheadLayer::builder(8).refuse().blind().build()?.at_head())
//!     .service_fn(|name: String| async move { Ok::<_, seawall::BoxError>(name) });
//! # let _ = service.oneshot(String::new());
//! # Ok::<(), seawall::ConfigError>(())
//! ```
//!
//! `blind` is for a request type that says nothing of itself, and `at_head` for a response without a body; over `http` neither
//! is needed.
//!
//! # Policies that you have
//!
//! With the feature `tower`, `retry::FromTower` makes tower's policies ours, and `retry::IntoTower` ours tower's, so that one of
//! the two can move first.
