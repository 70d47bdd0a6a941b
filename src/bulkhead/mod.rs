//! At most so many calls at once, to the end of their responses.
//!
//! # Why
//!
//! A slow upstream gathers calls: at ten times the latency ten times as many are under way, and each holds a connection,
//! memory and a caller. A bulkhead bounds them, so that one upstream cannot take all that a process has, and refuses
//! the rest at once, while there is still time to ask another target.
//!
//! # When
//!
//! In front of anything with a bounded number of workers, connections or concurrent streams: innermost of the gates in a
//! client, so that a slot is held only while the upstream is busy; outermost in a server, with
//! [`.respond()`](BulkheadLayer::respond). It does not bound calls *a second*: that is the token bucket.
//!
//! # What counts
//!
//! A call holds its slot from its admission to the end of the response's **body**: a stream that is still being read
//! is still being produced. [`.at_head()`](BulkheadLayer::at_head) holds it to the head only. Beware of a consumer that
//! reads one response while it makes another call through the same bulkhead: with all slots held so, all wait.
//!
//! # Defaults
//!
//! | setting | default | why |
//! |---|---|---|
//! | limit | none: you must say | it is what the other side can bear; the rate of calls × their mean duration is what is used |
//! | queue | as many as the limit | bounds the wait to about one service time; in a simulated overload (30 workers, 300 calls a second, callers that give up after 1 s and try 3 times) queues of up to half of *timeout × rate* recover at once, and one as long as that never does |
//! | longest wait | 10 s | a third of the usual timeout of a call to a model |
//! | expected service time | zero | a wrong guess would refuse calls that can be served |
//! | priority | of the request's [`Call`](crate::call::Call), else the least urgent | |
//! | keys | 10 000, where it is [keyed](BulkheadBuilder::keyed) | |
//!
//! Zero means none: a limit of zero refuses all calls, a queue or a wait of zero lets none wait.
//!
//! # Order
//!
//! The most urgent first, and among equals those who came first; nobody overtakes by arriving just when a slot becomes
//! free. The order is strict: as long as more urgent calls keep the queue busy, less urgent ones wait, until their
//! longest wait refuses them. A full queue refuses a newcomer whatever its priority.
//!
//! # Refusals
//!
//! [`Full`](crate::RefusalKind::Full), at once: no slot and no place in the queue.
//! [`QueueTimeout`](crate::RefusalKind::QueueTimeout): the longest wait is over.
//! [`Deadline`](crate::RefusalKind::Deadline): the call's own [`Deadline`](crate::Deadline) no longer leaves the expected
//! service time. It is refused the moment that this is certain, and is never served afterwards.
//!
//! # Cancellation
//!
//! Dropping a call gives back what it has, at every point: its place in the queue, a slot that was granted and not seen
//! yet (the next in line gets it), a slot in use. A waiter is woken by its slot or by its own timer, and by nothing else.
//!
//! # Cost
//!
//! Two atomic steps a call and a reference count; no lock, no clock, no allocation. Only while calls wait, there is a
//! lock, held for a step in a tree; a wait allocates its state. A refusal allocates nothing.
//!
//! # Events
//!
//! [`Refused`](crate::monitor::Event::Refused), [`Waited`](crate::monitor::Event::Waited) (admitted after a wait, and how
//! long it was), [`Abandoned`](crate::monitor::Event::Abandoned) (the caller left while it waited).
//!
//! To a [`Monitor`](crate::monitor::Monitor) that observes the layer they are `seawall_layer_refusals_total`,
//! `seawall_layer_waits_total`, `seawall_layer_wait_seconds_total` and `seawall_layer_abandoned_total`; one that
//! [watches](crate::monitor::Monitor::watch) the handle also has `seawall_handle_in_flight`, `seawall_handle_limit` and
//! `seawall_handle_queued`.
//!
//! # Examples
//!
//! With the defaults:
//!
//! ```
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::BoxError;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let layer = BulkheadLayer::new(64).at_head();
//! let handle = layer.gate().clone();
//! let service = ServiceBuilder::new()
//!     .layer(layer)
//!     .service_fn(|name: String| async move { Ok::<_, BoxError>(format!("hello {name}")) });
//!
//! assert_eq!(service.oneshot("you".to_owned()).await.unwrap(), "hello you");
//! assert_eq!((handle.in_flight(), handle.limit()), (0, 64));
//! # }
//! ```
//!
//! Customised: a short queue for those in a hurry, by a header, and one state an upstream.
//!
//! ```
//! use std::time::Duration;
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::call::Priority;
//! use seawall::gate::ByUpstream;
//!
//! let layer = BulkheadLayer::builder(32)
//!     .queue(8)
//!     .max_wait(Duration::from_secs(2))
//!     .expected_service(Duration::from_millis(800))
//!     .priority_by(|request: &http::Request<String>| match request.headers().get("x-interactive") {
//!         Some(_) => Priority::MAX,
//!         None => Priority::default(),
//!     })
//!     .keyed(ByUpstream)
//!     .name("models")
//!     .build()?;
//! // A handle on the state of one key.
//! layer.gate().get(&"primary".into()).set_limit(16);
//! # Ok::<(), seawall::ConfigError>(())
//! ```

mod gate;
mod layer;
#[cfg(all(test, seawall_loom))]
mod models;
mod queue;
mod rank;
mod slots;
#[cfg(all(test, not(seawall_loom)))]
mod tests;
mod wait;

pub use gate::{Bulkhead, Slot};
pub use layer::{BulkheadBuilder, BulkheadLayer, EachKey, OneState};
pub use rank::{ByCall, Rank, RankFn};
pub use wait::Wait;
