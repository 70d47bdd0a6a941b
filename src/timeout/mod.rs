//! Ends what takes too long, phase by phase.
//!
//! One limit cannot fit a call to a language model: a long answer may take minutes and be well, while an upstream that
//! has not said a word in thirty seconds is not. So there are four clocks, each with its own limit and its own refusal:
//!
//! | clock | from | to | what resets it |
//! |---|---|---|---|
//! | `total` | the first `poll_ready` of the call that had to wait, else `call` | the end of the body | nothing |
//! | `head` | `call` | the head of the response | nothing |
//! | `first_content` | `call` | the first bytes that carry an answer; pings and role chunks are none | nothing |
//! | `idle` | the moment the body has nothing to give | its next frame, whatever it is | every frame, keep-alives too |
//!
//! A time to connect is a client's own setting; a client that reports it refuses with
//! [`Phase::Connect`](crate::Phase::Connect).
//!
//! `total` also sets the [`Deadline`](crate::Deadline) that every layer below obeys: nothing below waits past it or is
//! retried past it. A deadline that the request already has stays if it is earlier.
//!
//! What is too late is dropped at once, with its connection. The caller gets a refusal of kind
//! [`TimedOut`](crate::RefusalKind::TimedOut) that names the phase: as an error of `call`, with `.respond()` as a 504,
//! and after the head as an error of the body. To the layers above it is [`Class::Stalled`](crate::Class::Stalled): it
//! counts against the upstream, and is repeated at the same target only where no other is left.
//!
//! Where it stands: with `total` outermost, around retry and fallback; with the other clocks innermost, below the
//! circuit breaker, so that a breaker sees a hung call as a failure and not as one that its caller gave up.
//!
//! ```
//! use std::time::Duration;
//! use seawall::timeout::{Limit, TimeoutLayer};
//!
//! # fn main() -> Result<(), seawall::ConfigError> {
//! // Outermost: the whole call, over all its attempts. A long prompt gets longer.
//! let total = TimeoutLayer::builder()
//!     .total(Limit::by_size(Duration::from_secs(30), Duration::from_millis(500)).at_most(Duration::from_secs(120)))
//!     .build()?;
//! // Innermost: one attempt.
//! let attempt = TimeoutLayer::builder()
//!     .head(Duration::from_secs(30))
//!     .first_content(Duration::from_secs(30))
//!     .idle(Duration::from_secs(30))
//!     .build()?;
//! # let _ = (total, attempt);
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//!
//! None of the clocks runs unless it is set, no header is read and none is written: how long a call may take, nobody but you
//! knows. Usual values, which `Config` (feature `serde`) takes: `total` 10 min, as the official clients have it; `head` and
//! `first_content` 30 s and 500 ms a 1 000 tokens, at most 120 s; `idle` 30 s.
//!
//! # Events
//!
//! It raises none, and takes no observer: the layers above see its refusals. A [`Monitor`](crate::monitor::Monitor) outside
//! counts them in `seawall_call_refusals_total` and `seawall_attempt_refusals_total` by their kind (`timeout_total`,
//! `timeout_head`, `timeout_first_content`, `timeout_idle`).
//!
//! # Cost and cancellation
//!
//! A call that answers at its first poll pays for one look at the clock and no timer. A response whose body is watched
//! allocates one timer. Dropping a future or a body ends its timer with it; nothing is spawned.

mod body;
mod clocks;
mod future;
mod layer;
mod limit;
mod mode;
mod service;

pub use body::TimeoutBody;
pub use future::TimeoutFuture;
pub use layer::{TimeoutBuilder, TimeoutLayer};
pub use limit::Limit;
pub(crate) use limit::tokens_of;
pub use mode::Ends;
pub use service::Timeout;
