//! Which layer stands where, and why.
//!
//! A [`ServiceBuilder`](https://docs.rs/tower/latest/tower/struct.ServiceBuilder.html) lists layers outermost first: what stands
//! higher in the list sees a call earlier, and its response later. Three rules give the order:
//!
//! 1. What is **read** once is read at the edge: the request by the outermost layer, the response by the innermost.
//! 2. What **repeats** stands outside of what each attempt has to pay for again.
//! 3. What **refuses for free** stands outside of what spends or waits, and what is **scarcest** is taken last.
//!
//! Leave out what you do not need; the order of the others stays.
//!
//! # A client
//!
//! | layer | why here | elsewhere |
//! |---|---|---|
//! | [`IntakeLayer`](crate::call::IntakeLayer) | writes down model, size and bounds, and makes the body one that can be sent again | layers above it know nothing of the call; without it a retry cannot repeat a body, a fallback cannot aim it, a cost guard has no bound |
//! | [`Monitor::layer`](crate::monitor::Monitor::layer) | sees what callers see: one call, however many attempts | below retry it would count attempts as calls |
//! | [`TimeoutLayer`](crate::timeout::TimeoutLayer), `total` | sets the [`Deadline`](crate::Deadline) that all below obey | below retry each attempt gets the whole time |
//! | [`FallbackLayer`](crate::fallback::FallbackLayer) | sees every failure and every refusal below, and asks the next target | inside a retry its whole chain is repeated: two passes of six attempts are twelve |
//! | [`RetryLayer`](crate::retry::RetryLayer) | each attempt passes all gates anew; nothing is held while it waits | inside a gate, one permit covers three attempts, and the gate hears of one |
//! | [`Monitor::attempts`](crate::monitor::Monitor::attempts) | sees each attempt with its target, and what is refused below | above retry there is nothing to count |
//! | [`CircuitBreakerLayer`](crate::circuit_breaker::CircuitBreakerLayer) | sees each attempt and its timeout; a refusal has reserved, waited for and sent nothing | below the bucket, a call waits for quota only to be refused |
//! | [`CostGuardLayer`](crate::cost_guard::CostGuardLayer) | reserves each attempt at the price of its own target; a spent budget refuses before anybody waits, and lets the chain go on to a cheaper target | above retry it sees the last attempt alone, and the others are not charged |
//! | [`TokenBucketLayer`](crate::token_bucket::TokenBucketLayer) | each attempt uses quota; what the layers below refuse comes back | below the bulkhead, a slot is held while the call waits for quota |
//! | [`BulkheadLayer`](crate::bulkhead::BulkheadLayer) | the shortest hold: a slot is taken when all else is there | above retry, a slot is held through backoffs |
//! | [`TimeoutLayer`](crate::timeout::TimeoutLayer), `head`, `first_content`, `idle` | the breaker sees a call that hangs as a failure | above the breaker it looks like a caller who left, and counts only after [60 s](crate::circuit_breaker::SettingsBuilder::abandoned_counts_after) |
//! | [`IncludeUsageLayer`](crate::call::IncludeUsageLayer), if wanted | edits each attempt for its upstream, never the original | above a fallback it would ask upstreams that refuse what they do not know |
//! | [`OutcomeLayer`](crate::call::OutcomeLayer) | reads the response once, for all above | without it there is the status alone: an error inside a 200 is a success, usage is unknown, and the guard charges bounds |
//!
//! For a trial of all that, `fault::FaultLayer` (feature `fault`) stands innermost of all, around the client. `Config::client`
//! (feature `serde`) builds the stack from a file. By hand:
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::call::{CallBody, IntakeLayer, OutcomeLayer, Upstream};
//! use seawall::circuit_breaker::CircuitBreakerLayer;
//! use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
//! use seawall::fallback::{FallbackLayer, Route, Routes, Target};
//! use seawall::gate::ByUpstream;
//! use seawall::monitor::Monitor;
//! use seawall::retry::{RetryLayer, RetryPolicy};
//! use seawall::timeout::TimeoutLayer;
//! use seawall::token_bucket::{Quota, TokenBucketLayer};
//! use seawall::BoxError;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let routes = Routes::builder()
//!     .upstream(Upstream::new("one", "https://api.one.example/v1")?)
//!     .upstream(Upstream::new("two", "https://api.two.example/v1")?)
//!     .route(Route::to("chat").target(Target::at("one").model("large")).target(Target::at("two").model("big")))
//!     .build()?;
//! let prices = PriceTable::new()
//!     .model("large", Price::per_million("2.50", "10")?.with_max_output(16_384))
//!     .model("big", Price::per_million("1", "4")?.with_max_output(16_384));
//! let monitor = Monitor::new();
//! // One state an upstream: one upstream's outage or limit is not the other's.
//! let breaker = CircuitBreakerLayer::builder().observer(monitor.clone()).keyed(ByUpstream).build()?;
//! let per_minute = Quota::per_minute(std::num::NonZeroU64::new(500).ok_or("not zero")?);
//! let bucket = TokenBucketLayer::builder().requests(per_minute).keyed(ByUpstream).build()?;
//! let bulkhead = BulkheadLayer::builder(16).keyed(ByUpstream).build()?;
//! let fallback = FallbackLayer::builder(routes)
//!     .health(breaker.gate().clone())
//!     .health(bucket.gate().clone())
//!     .health(bulkhead.gate().clone())
//!     .build()?;
//!
//! let client = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(monitor.layer())
//!     .layer(TimeoutLayer::new(Duration::from_secs(120)))
//!     .layer(fallback)
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .layer(monitor.attempts())
//!     .layer(breaker)
//!     .layer(CostGuardLayer::new(prices, Budget::new(Usd::dollars(10), Window::DAY)))
//!     .layer(bucket)
//!     .layer(bulkhead)
//!     .layer(TimeoutLayer::builder().head(Duration::from_secs(30)).idle(Duration::from_secs(30)).build()?)
//!     .layer(OutcomeLayer::new())
//!     // In place of this: a client of hyper, reqwest or tonic.
//!     .service_fn(|_request: Request<CallBody>| async {
//!         Ok::<_, BoxError>(Response::new(Full::new(Bytes::from("{}"))))
//!     });
//! let request = Request::post("http://any.example/v1/chat/completions")
//!     .header("content-type", "application/json")
//!     .body(Full::new(Bytes::from(r#"{"model":"chat","messages":[]}"#)))?;
//! assert_eq!(client.oneshot(request).await?.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! # A server
//!
//! | layer | why here |
//! |---|---|
//! | [`Monitor::layer`](crate::monitor::Monitor::layer) | counts what callers see, refusals included |
//! | [`TimeoutLayer`](crate::timeout::TimeoutLayer) with `total`, or [`heed`](crate::timeout::TimeoutBuilder::heed) | the deadline holds for queues below too |
//! | [`BulkheadLayer`](crate::bulkhead::BulkheadLayer), the outermost gate | an overloaded server turns calls away before it spends anything on them, authentication included |
//! | your authentication | writes the tenant into the [`Call`](crate::call::Call): what limits and budgets are keyed by must be *verified* |
//! | [`IntakeLayer`](crate::call::IntakeLayer) | keeps the tenant that is there, and adds what the body says; strangers' bodies are not read |
//! | [`TokenBucketLayer`](crate::token_bucket::TokenBucketLayer) by tenant | a flood of one tenant does not use up what others have |
//! | [`CostGuardLayer`](crate::cost_guard::CostGuardLayer) by tenant | reserves for calls that may run |
//! | [`OutcomeLayer`](crate::call::OutcomeLayer) | reads the handler's usage |
//! | the handler | |
//!
//! Each gate and timeout is built with `.respond()`, so that a refusal is a response and an axum `Router::layer` takes it. The
//! example `axum_server` is such a server.
//!
//! ```
//! use std::num::NonZeroU64;
//! use axum::{Router, extract::Request, middleware::{self, Next}, response::Response, routing::post};
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::call::{Call, CallBody, IntakeLayer, Key};
//! use seawall::gate::ByTenant;
//! use seawall::token_bucket::{Quota, TokenBucketLayer};
//! use tower::ServiceBuilder;
//!
//! async fn authenticate(mut request: Request, next: Next) -> Response {
//!     let mut call = Call::default();
//!     call.tenant = Some(Key::from("whoever the key proves"));
//!     request.extensions_mut().insert(call);
//!     next.run(request).await
//! }
//!
//! # fn main() -> Result<(), seawall::ConfigError> {
//! const SIXTY: NonZeroU64 = NonZeroU64::new(60).unwrap();
//! let bucket = TokenBucketLayer::builder().requests(Quota::per_minute(SIXTY)).refuse().keyed(ByTenant).build()?;
//! let layers = ServiceBuilder::new()
//!     .layer(BulkheadLayer::new(64).respond())
//!     .layer(middleware::from_fn(authenticate))
//!     .layer(IntakeLayer::new())
//!     .layer(bucket.respond())
//!     // A handler of axum takes axum's own body.
//!     .map_request(|request: http::Request<CallBody>| request.map(axum::body::Body::new));
//! let app: Router = Router::new().route("/v1/chat/completions", post(|| async { "{}" })).layer(layers);
//! # let _ = app;
//! # Ok(())
//! # }
//! ```
//!
//! # Layers of others
//!
//! - **Below all of ours**: a connection pool, `Buffer`, `Balance`, `SpawnReady` of tower. The layers ask for a `Clone` service,
//!   because a call that waited goes on with a clone.
//! - **Above all of ours**: tracing, request ids, compression for callers, authentication.
//! - tower-http's `DecompressionLayer` may stand above or below: the outcome layer reads compressed bodies through a bounded copy
//!   of its own.
//! - Only one loop of a stack should retry. Switch off the retries of clients below (reqwest, an SDK), and of callers above if
//!   they are yours.
//! - A gate of your own ([`gate`](crate::gate)) stands beside those that it resembles: one that spends beside the cost guard, one
//!   that holds beside the bulkhead.
