//! Keeps calls within limits of requests, tokens or anything else: a client that keeps its provider's limits sees no 429.
//!
//! # Why
//!
//! A provider counts requests and tokens a minute, and answers what is above with 429. Each such answer is a call for nothing,
//! and whoever repeats it adds to the load. A bucket in front of the provider lets calls out as they fit, in the order in which
//! they came, and says at once what cannot fit in time. It bounds a *rate*; how many run at once, the bulkhead bounds.
//!
//! # Examples
//!
//! One limit, everything else as usual:
//!
//! ```
//! use std::num::NonZeroU64;
//! use seawall::BoxError;
//! use seawall::token_bucket::{Quota, TokenBucketLayer};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! const SIXTY: NonZeroU64 = NonZeroU64::new(60).unwrap();
//! let service = ServiceBuilder::new()
//!     .layer(TokenBucketLayer::new(Quota::per_minute(SIXTY)))
//!     .service_fn(|_: http::Request<String>| async { Ok::<_, BoxError>(http::Response::new(String::new())) });
//! assert!(service.oneshot(http::Request::default()).await.is_ok());
//! # }
//! ```
//!
//! Customised: requests and tokens, a tenth left to others, and longer waits.
//!
//! ```
//! use std::num::NonZeroU64;
//! use std::time::Duration;
//! use seawall::token_bucket::{Quota, TokenBucketLayer};
//!
//! const REQUESTS: Quota = Quota::per_minute(NonZeroU64::new(500).unwrap());
//! const TOKENS: Quota = Quota::per_minute(NonZeroU64::new(200_000).unwrap());
//!
//! let layer = TokenBucketLayer::builder()
//!     .requests(REQUESTS)
//!     .tokens(TOKENS)
//!     .headroom(0.9)
//!     .max_wait(Duration::from_secs(30))
//!     .build()?;
//! let bucket = layer.gate().clone();
//! assert_eq!(bucket.level("tokens").unwrap().available, 180_000);
//! # let _: tower::util::BoxCloneService<http::Request<String>, _, seawall::BoxError> =
//! #     tower::util::BoxCloneService::new(tower::Layer::layer(&layer, tower::service_fn(
//! #         |_: http::Request<String>| async { Ok::<_, seawall::BoxError>(http::Response::new(String::new())) })));
//! # Ok::<(), seawall::ConfigError>(())
//! ```
//!
//! # Defaults
//!
//! | setting | default | why |
//! |---|---|---|
//! | quotas | none: you must say | they are the provider's |
//! | burst of requests | what flows in within 10 s | providers enforce limits by the minute over shorter spans too |
//! | burst of tokens, and of units of your own | what flows in within a minute | one call can take much of a minute's tokens |
//! | longest wait | 10 s | as of the bulkhead: a third of the usual timeout of a call to a model |
//! | waiters | 1 024 | bounds memory; the longest wait bounds the rest |
//! | headroom | 1: all of it | others that share the limit are not known here |
//! | assumed output | 1 000 tokens | where a call bounds none |
//! | longest pause for a hint | one hour | a hint for the day is another target's business |
//! | left by its caller after it was sent | pays what is [known](Abandoned::Known) to have been used | |
//! | limits stated by the upstream | read, and obeyed [downwards](ProviderLimits) | |
//! | keys | 10 000, where it is [keyed](TokenBucketBuilder::keyed) | a kilobyte each |
//!
//! # What is promised
//!
//! Each dimension is a bucket that fills at its quota's rate (the generic cell rate algorithm, in integers).
//!
//! - **In any interval T, what is admitted is at most burst + rate · T**, on every thread together. What is given back
//!   counts as not admitted when it comes back. A [`strict`](TokenBucketBuilder::strict) layer admits no more than its
//!   amount in *any* window of the quota's period, and keeps that bound for what is really used, however late that is
//!   known.
//! - **All or none**: a request takes its cost in every dimension, or in none.
//! - **The wait that a refusal states is exact**: after it the request passes if nobody else comes, a nanosecond earlier
//!   it does not. A cost above the burst is refused at once, for good
//!   ([`TooLarge`](crate::RefusalKind::TooLarge)).
//! - **First come, first served**: nobody overtakes a heavy request that waits. A waiter that leaves gives its place back,
//!   and those behind it move up. Who would wait longer than [`max_wait`](TokenBucketBuilder::max_wait) or its
//!   [`Deadline`](crate::Deadline) is refused at once, and told which of the two comes first: when it comes, or when a
//!   debt, a pause or a lower quota moves it back. Under lasting overload with a short `max_wait`, there is room for a heavy request less often than for a light
//!   one.
//!
//! # What a request costs, and what it pays
//!
//! `requests` costs 1. `tokens` costs the estimated input and the output bound times the choices, as the
//! [`Call`](crate::call::Call) says; [`assumed_output`](TokenBucketBuilder::assumed_output) (1 000) where it bounds none or
//! nothing is described. Anything else costs what a closure says. At the end:
//!
//! | the attempt | pays in requests | pays in tokens |
//! |---|---|---|
//! | ended, usage reported | 1 | the usage: the rest comes back, or the excess is debt |
//! | ended or failed, nothing reported | 1 | what was reserved |
//! | throttled, or proven not to be processed | 1 | nothing |
//! | left by its caller after it was sent | 1 | by the rule: [`Abandoned`] |
//! | never sent (refused below, no connection) | nothing | nothing |
//!
//! A usage that is flagged as anomalous, or above 10⁹ units, is not believed. The usage is read from the
//! [`Outcome`](crate::call::Outcome) of the response, when it has ended; or from the response itself by
//! [`usage_by`](TokenBucketBuilder::usage_by). A layer built with `.at_head()` sees what is known when the head is there, and
//! keeps the estimate where that is nothing.
//!
//! # What is learned
//!
//! A [`Throttled`](crate::Class::Throttled) verdict with a hint pauses everybody until the hint is over, and a little
//! longer at random; those who wait then come one by one within a quarter of the hint (100 ms to 5 s). What a reader of
//! limits ([`ReadLimits`]) finds in a response lowers the level to what is left upstream, and the rate to the upstream's
//! limit where that is for the quota's own period; never above the configuration. The default reader, [`ProviderLimits`],
//! knows the headers of the common providers and the IETF drafts; [`RetryAfter`] reads the wait alone.
//!
//! # Where it stands
//!
//! On a client below the circuit breaker and the cost guard and above the bulkhead: each attempt spends quota, and what is
//! refused below comes back. On a server, keyed by a verified identity, with `.respond()`, and
//! [`headers`](TokenBucketLayer::headers) outside of it if every answer is to carry `RateLimit`.
//!
//! # Cancellation
//!
//! Dropping a call gives back what it has: its place in the queue, and, as the table above says, what it has taken. A layer
//! below that refuses, or a connection that was never made, costs nothing.
//!
//! # Events
//!
//! [`Refused`](crate::monitor::Event::Refused), [`Waited`](crate::monitor::Event::Waited) (admitted after a wait, and how long
//! it was), [`Abandoned`](crate::monitor::Event::Abandoned) (the caller left while it waited, or after it was sent).
//!
//! To a [`Monitor`](crate::monitor::Monitor) that observes the layer they are `seawall_layer_refusals_total`,
//! `seawall_layer_waits_total`, `seawall_layer_wait_seconds_total` and `seawall_layer_abandoned_total`; one that watches the
//! handle also has `seawall_handle_level`, `seawall_handle_capacity`, `seawall_handle_queued` and `seawall_handle_pause_seconds`.
//!
//! # What it costs
//!
//! While nobody waits: one clock read, one compare-and-swap a dimension, no lock and, with up to three dimensions, no
//! allocation. Where a bucket of one or two dimensions lacks more than a second of its inflow and is not short, as a busy one,
//! an exact time decides nothing, and on Linux the kernel's coarse clock is read, in a third of the time; not with strict
//! windows or leases. A key's state is about a kilobyte. Waiting needs tokio's timer, whose ticks are milliseconds.

mod bucket;
mod builder;
mod core;
mod cost;
mod few;
mod gate;
mod handle;
mod headers;
mod layer;
mod learn;
mod lease;
mod permit;
mod provider_limits;
mod queue;
mod quota;
mod wait;

#[cfg(all(test, seawall_loom))]
mod models;
#[cfg(all(test, not(seawall_loom)))]
mod tests;

pub use builder::{ByKey, TokenBucketBuilder, Unkeyed};
pub use cost::{Cost, ReadCosts, With};
pub use gate::{Abandoned, TokenBucket};
pub use handle::Level;
pub use headers::{BucketOf, Headers, HeadersFuture, HeadersLayer, Levels};
pub use layer::TokenBucketLayer;
pub use learn::{Feedback, NoLimits, ReadLimits, RetryAfter, Said, Stated, Upstream};
pub use permit::BucketPermit;
pub use provider_limits::{ProviderLimits, UsageBy};
pub use quota::Quota;
pub use wait::Wait;
