//! Asks one target after the other, until one answers.
//!
//! # Why
//!
//! A provider that is down, at its limit, out of credit, or too small for a prompt is seldom the only one that can answer. What
//! a caller wants is an answer from a model that is good enough, in time; which provider gives it is a matter of order.
//!
//! # How
//!
//! The caller names a model; a [`Route`] says which targets can serve it: an upstream and the name of the model there, in
//! order. Each try is aimed anew from the original request, with the target's own URL, model and credential and with
//! nobody else's.
//!
//! ```
//! use seawall::BoxError;
//! use seawall::call::{CallBody, Credential, IntakeLayer, OutcomeLayer, Upstream};
//! use seawall::fallback::{FallbackLayer, Route, Routes, Served, Target};
//! # use http::{Request, Response};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let client = tower::service_fn(async |request: Request<CallBody>| {
//! #     let status = if request.uri().host() == Some("api.one.example") { 503 } else { 200 };
//! #     Ok::<_, BoxError>(Response::builder().status(status).body(CallBody::empty())?)
//! # });
//! let routes = Routes::builder()
//!     .upstream(Upstream::new("one", "https://api.one.example/v1")?.credential(Credential::bearer("key of one")?))
//!     .upstream(Upstream::new("two", "https://api.two.example/v1")?.credential(Credential::bearer("key of two")?))
//!     .route(Route::to("large").target(Target::at("one").model("one-xl")).target(Target::at("two").model("two-pro")))
//!     .build()?;
//! let service = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(FallbackLayer::new(routes))
//!     .layer(OutcomeLayer::new())
//!     .service(client);
//! let request = Request::post("https://gateway.example/v1/chat/completions")
//!     .header("content-type", "application/json")
//!     .body(CallBody::from(r#"{"model":"large","messages":[]}"#))?;
//! let response = service.oneshot(request).await?;
//! let served = response.extensions().get::<Served>().expect("it was served");
//! assert_eq!(served.target().upstream().name().as_str(), "two");
//! assert_eq!(served.attempts().to_string(), "one: Transient (503)");
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//!
//! | setting | default | why |
//! |---|---|---|
//! | attempts in all | 6, those of retries below included | two targets with three attempts each |
//! | goes on after | throttled, transient, stalled, exhausted, unfit, refused | what another target may not have ([`Triggers`]) |
//! | order | as listed | the first is the one you want |
//! | commits | at its first content | nothing useful of an answer is lost before it |
//! | waits for content | 30 s and 500 ms a 1 000 tokens, at most 120 s | a larger call takes longer to begin |
//! | holds before content | 64 KiB | many role chunks and pings |
//! | holds of a whole answer | 4 MiB | a hundred thousand tokens, and more |
//! | health | not asked | give it the handles of the gates below |
//! | tells in headers | off | |
//!
//! Customised: the gates' handles are asked first, a policy's "no" is a reason to go on, and refusals are responses.
//!
//! ```
//! use seawall::call::{Commit, Upstream};
//! use seawall::circuit_breaker::CircuitBreakerLayer;
//! use seawall::fallback::{FallbackLayer, Order, Route, Routes, Target, Triggers};
//! use seawall::gate::ByUpstream;
//!
//! # fn main() -> Result<(), seawall::ConfigError> {
//! let routes = Routes::builder()
//!     .upstream(Upstream::new("one", "https://api.one.example/v1")?)
//!     .upstream(Upstream::new("two", "https://api.two.example/v1")?)
//!     .route(
//!         Route::to("gpt-*")
//!             .target(Target::at("one").context(128_000))
//!             .target(Target::at("two").model("long").context(1_000_000))
//!             .order(Order::Fastest)
//!             .commit(Commit::End),
//!     )
//!     .build()?;
//! let breaker = CircuitBreakerLayer::builder().keyed(ByUpstream).build()?;
//! let layer = FallbackLayer::builder(routes)
//!     .max_attempts(4)
//!     .fallback_on(Triggers::default().on_policy())
//!     .health(breaker.gate().clone())
//!     .tell_headers()
//!     .build()?
//!     .respond();
//! # let _ = layer;
//! # Ok(())
//! # }
//! ```
//!
//! # Where it stands
//!
//! Inside [`IntakeLayer`](crate::call::IntakeLayer), which reads the model and makes the body one that can be sent again, and
//! inside the total timeout; outside of everything that each target has for itself: retry, breaker, guard, bucket,
//! bulkhead, the timeouts of an attempt. So a refusal of any of them lets the chain go on.
//!
//! # When the next target is asked
//!
//! After the failures that [`Triggers`] name. Which one is next, the [`Order`] of the route says, among those that
//! have not been asked, are [healthy](Health), are allowed by the call's own [`Overrides`], and whose context is large
//! enough. After a spent or refused account no other target of that upstream is asked; after too long a context none that
//! is known not to be larger.
//!
//! # Until when
//!
//! Until the response [commits](Commit): with its head, its first content (the default) or its end. Before that an
//! error, an error event inside a 200, or an end without content is a failure like any other, and the caller sees nothing
//! of it. At most 64 KiB are held, and for 30 s and more for a larger call; they are forwarded in order, byte for byte, and
//! after them every frame as it comes. After it an error stays an error.
//!
//! # How much
//!
//! At most six attempts in all, those of retries below included: each target gets an even share of what is left as
//! [`Call::most_attempts`](crate::call::Call::most_attempts), and each target is asked at most once. Nothing begins past the
//! [`Deadline`](crate::Deadline). A fallback inside another one has the share that the outer one gives it. A retry *above* it
//! multiplies: two passes of six attempts are twelve.
//!
//! A request that fails everywhere by its own fault (a 500 at each target) counts once where the breakers below are told
//! to count a request at its first target only: [`Call::failed_elsewhere`](crate::call::Call::failed_elsewhere).
//!
//! # What the caller gets
//!
//! | | |
//! |---|---|
//! | a target served | its response, with [`Served`] as an extension; nothing of those before |
//! | a failure that is no reason to go on | that response or error, unchanged, with [`Attempts`] as an extension |
//! | no target is left, one has answered | the last response, unchanged, with [`Attempts`]; one that says that the request is wrong ([`Class::Invalid`](crate::Class::Invalid)) goes before all others |
//! | no target is left, none has answered | a refusal [`NoTarget`](crate::RefusalKind::NoTarget), with the shortest wait that anybody asked for; [`Attempts::find`] finds the list |
//! | the call's time is over, none has answered | a refusal [`TimedOut`](crate::RefusalKind::TimedOut) of the total, with the same list |
//! | only one target was there | whatever it gave, unchanged |
//!
//! With [`respond`](FallbackLayer::respond) the refusal is a response, for a gateway.
//!
//! A stream that failed before its content is no answer: its head said 200. Neither is a failed response that is not
//! over after 64 KiB or a second, if another target is left: it is dropped, so that it holds nothing while that is asked.
//!
//! # Own types
//!
//! Implement [`Aim`](crate::call::Aim) and [`Describe`](crate::call::Describe) for the request, give the builder a classifier,
//! and end the layer with [`at_head`](FallbackLayer::at_head): an own response commits with its head, whatever the route says.
//! That holds for streaming ones too: what fails in the stream reaches the caller. A library that wants another target then
//! reads on to the first content itself, in a service below the layer, and answers with an error where there is none.
//!
//! # Events
//!
//! [`FellOver`](crate::monitor::Event::FellOver) for each hop, and [`NoTargetLeft`](crate::monitor::Event::NoTargetLeft) for
//! each chain that is exhausted. To a [`Monitor`](crate::monitor::Monitor) that observes the layer they are
//! `seawall_call_fallbacks_total` and `seawall_layer_no_target_left_total`; its layer of attempts counts
//! `seawall_attempt_fallbacks_total` by target.
//!
//! # What it costs
//!
//! A call that its first target serves: a copy of the request, one shared count, no lock, no clock; nothing is allocated
//! beyond that copy, for own types. Over HTTP the request itself goes to the first target, aimed in place, and what it was is
//! kept packed, to be made a request again only if another target is asked: one allocation for what is kept while another
//! target is left (two where headers have more than a kilobyte), two for body, length and URL, three for [`Served`], and a
//! box for a body that is looked at. With intake that is 9 for 4 KB of JSON and 12 headers, and 11 with a retry on each
//! side, which keeps its own. Extensions beside the [`Call`](crate::call::Call) are cloned.
//!
//! # Cancellation
//!
//! Dropping the future ends the attempt under way, also while its first frames are looked at; nothing is spawned.

mod chain;
#[cfg(feature = "serde")]
pub(crate) mod config;
mod future;
mod handle;
mod health;
mod layer;
mod mode;
mod order;
mod routes;
mod served;
mod service;
mod target;
mod trigger;

pub use crate::call::{Commit, Overrides};
pub use future::ResponseFuture;
pub use handle::RoutesHandle;
pub use health::{Health, Standing};
pub use layer::{FallbackBuilder, FallbackLayer};
pub use mode::{Ends, Telling};
pub use order::Order;
pub use routes::{Route, Routes, RoutesBuilder};
pub use served::{Attempt, Attempts, Served, Skip};
pub use service::Fallback;
pub use target::{Target, TargetBuilder};
pub use trigger::Triggers;
