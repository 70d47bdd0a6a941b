//! Repeats a failed call at the same target: when that can help, when it is safe, and only as often as the upstream can bear.
//!
//! # Why
//!
//! Many failures pass: a connection breaks, a server restarts, a limit is over in a second. Asking again then is the cheapest
//! remedy there is, and asking again without measure is how an overload becomes an outage. So the policy asks first whether
//! it helps, is safe, and is affordable.
//!
//! ```
//! use seawall::retry::{RetryLayer, RetryPolicy};
//! # use seawall::BoxError;
//! # use seawall::call::CallBody;
//! # use http::{Request, Response};
//! use tower::ServiceBuilder;
//!
//! # let client = tower::service_fn(async |_: Request<CallBody>| Ok::<_, BoxError>(Response::new(CallBody::empty())));
//! let service = ServiceBuilder::new()
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .service(client);
//! # fn check<S: tower::Service<Request<CallBody>>>(_: S) {}
//! # check(service);
//! ```
//!
//! # When
//!
//! Put it outside of everything that an attempt should pay for again (breaker, bucket, bulkhead, the timeout of the attempt)
//! and inside of the fallback. Only one layer of a stack should retry: three layers with three attempts each are 27 calls in an
//! outage. A time limit for each attempt is the timeout layer's business, below this one, so that the breaker and the bulkhead
//! between the two learn of it.
//!
//! # What is retried
//!
//! The [`Verdict`](crate::Verdict) on a result decides: limits by the minute, failures that may pass, and, where no other
//! target is left, attempts that were silent. Over HTTP it is read from what the innermost layer wrote down, or else from
//! status and headers; for own types [`RetryPolicyBuilder::classify`] takes a classifier, such as a closure in
//! [`classify::responses`](crate::classify::responses).
//!
//! | default | [`RetryPolicy::llm`] | [`RetryPolicy::http`], the default | from |
//! |---|---|---|---|
//! | attempts | 3 | 3 | the SRE book, AWS; more are left to the fallback |
//! | wait | 0–500 ms, 0–1 s, … ≤ 20 s; at least 100 ms | the same | full jitter and the cap: AWS; the base is short, since a fallback waits behind it |
//! | after an ambiguous failure | retried | only with an idempotent method or key | a completion has no side effect |
//! | patience for a hint | 60 s; 3 s while another target is left | the same | the official clients |
//! | budget an upstream | 0.2 a call, reserve 10 | the same | Finagle, tower; the reserve is ours |
//! | longest time | none but the deadline | the same | |
//!
//! - **The wait that the upstream asks for** is a floor: never shorter, a little longer so that clients do not return together.
//!   Up to 60 s; up to 3 s while another target is left ([`Call::another_target`](crate::call::Call::another_target)). Where
//!   it asks for more, the call stops at once with the upstream's own answer: coming back earlier would only be refused again.
//! - **The deadline** of the request is obeyed: no wait and no attempt goes past it.
//! - **A proof that nothing was processed** ([`Reach::Unprocessed`](crate::Reach::Unprocessed): an HTTP/2 stream refused, or
//!   above the last one of a GOAWAY) is followed once, at once and free of charge, whatever the method.
//! - **A refusal of our own layers** is never retried here. If it comes after a failure of the upstream, it carries that
//!   failure: [`Refusal::previous`](crate::Refusal::previous).
//! - **One call opts out** with [`Once`](crate::call::Once) among its extensions.
//!
//! Whenever no other attempt follows, the caller gets the last outcome as it is; why, an
//! [`Event::GaveUp`](crate::monitor::Event::GaveUp) says.
//!
//! # Customised
//!
//! ```
//! use std::time::Duration;
//! use http::StatusCode;
//! use seawall::monitor::Event;
//! use seawall::retry::{Backoff, Budget, RetryLayer, RetryPolicy, Rule};
//!
//! let budget = Budget::builder().ratio(0.1).reserve(20).build()?;
//! let policy = RetryPolicy::builder()
//!     .ambiguous(true)
//!     .attempts(4)
//!     .backoff(Backoff::exponential(Duration::from_millis(200)).cap(Duration::from_secs(5)))
//!     .rule(Rule::status(StatusCode::SERVICE_UNAVAILABLE).floor(Duration::from_secs(2)))
//!     .budget(budget.clone())
//!     .build()?;
//! let layer = RetryLayer::new(policy)
//!     .until_content()
//!     .observer(|event: &Event<'_>| println!("{event:?}"));
//! # let _ = (layer, budget);
//! # Ok::<(), seawall::ConfigError>(())
//! ```
//!
//! # What counts
//!
//! An attempt is judged when its response's head is there. What fails later, in the body, reaches the caller as it is: a part of
//! it has been passed on already. Over HTTP reading the body can be a part of the attempt:
//! [`RetryLayer::until_content`] holds a stream to its first content, [`RetryLayer::buffer_response`] a response to its end,
//! both within bounds.
//!
//! A failed response is dropped before the wait, not drained: its permits and whatever it holds elsewhere are free at once. So
//! that its connection is not lost with it, put the [`OutcomeLayer`](crate::call::OutcomeLayer) below: it reads the body of a
//! failure, up to 64 KiB and 5 s, before the retry sees its head.
//!
//! The [`Budget`] bounds what retries add in an outage to a fifth of the calls. Share one between layers with
//! [`RetryPolicyBuilder::budget`].
//!
//! # In an outage
//!
//! A budget bounds what retries add; it does not bring an overloaded server back. What does is that calls are given up and
//! refused below the retries: by a bulkhead, by the timeout of the attempt, by a breaker. How soon the callers hear that the
//! server is back depends on how long the breaker stays open. In the simulation of `examples/storm_of_retries.rs` (a server at
//! 93 % of what it can do freezes for 10 s) 95 % of the calls are served again 3 to 4 s after the freeze with a breaker that opens
//! for 2 s, and about 20 s after it with the default of 30 s, of which the freeze takes the first part; without these layers never.
//!
//! # Policies from elsewhere
//!
//! With the feature `tower` any policy of tower's retry is one of ours (`FromTower`), and any of ours is one of tower's
//! (`IntoTower`). With the feature `hyper` a classifier finds in a client's errors the proof that nothing was processed
//! (`seawall::hyper::HyperErrors`).
//!
//! # Events
//!
//! [`Retrying`](crate::monitor::Event::Retrying) for each attempt that will be repeated, and
//! [`GaveUp`](crate::monitor::Event::GaveUp) for each failure that will not, with its [`StopCause`]. To a
//! [`Monitor`](crate::monitor::Monitor) that observes the layer they are `seawall_call_retries_total` and
//! `seawall_layer_gave_up_total`; its layer of attempts counts `seawall_attempt_retries_total` by target.
//!
//! # What it costs
//!
//! A call that succeeds at once: one copy of the request and one shared count; no allocation and no clock (beyond what copying
//! costs; a request over HTTP with our [`CallBody`](crate::call::CallBody) is kept packed in one allocation, and made a request
//! again only for another attempt). No copy is made where no other attempt can follow. While it waits, a call holds its request and a timer: the failed
//! response, its connection, its permits and the inner service are gone before.
//!
//! Over HTTP the request's body is what matters: a [`CallBody`](crate::call::CallBody) is kept without copying its bytes, and
//! recorded up to a limit where it arrives while it is sent. One that outgrew its limit is sent once. Headers, version and
//! extensions are the same at each attempt.
//!
//! # Cancellation
//!
//! Dropping the future ends the call: no attempt and no timer goes on. A budget token that was taken stays taken.

#[cfg(feature = "tower")]
mod adapters;
mod backoff;
mod budget;
mod builder;
mod future;
mod hold;
mod idempotency;
mod judge;
mod layer;
mod policy;
mod request;
mod retry_policy;
mod rule;
mod service;
#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;

#[cfg(feature = "tower")]
pub use adapters::{FromTower, IntoTower, Wait};
pub use backoff::{Backoff, Jitter};
pub use budget::{Budget, BudgetBuilder};
pub use builder::RetryPolicyBuilder;
pub use future::ResponseFuture;
pub use hold::{HoldFuture, HoldLayer, Holding};
pub use judge::PolicyFor;
pub use layer::RetryLayer;
pub use policy::{Attempt, Decision, FromFn, Policy, from_fn};
pub use request::{CopyWith, Repeat};
pub use retry_policy::RetryPolicy;
pub use rule::Rule;
pub use service::Retry;

pub use crate::monitor::StopCause;
