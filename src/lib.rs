//! Composable `tower` layers that keep calls to LLM providers up and their bill down.
//!
//! Each layer works alone and in a [`ServiceBuilder`](https://docs.rs/tower/latest/tower/struct.ServiceBuilder.html)
//! stack, for clients and servers, over any `Service<Request>`; they are at their best over `http`. What sets them apart:
//!
//! - **They see a call to its end.** Permits, outcomes and figures are settled when the response's *body* ends, fails or is
//!   dropped, not when its head arrives. An error event inside a 200 stream is an error.
//! - **They have one vocabulary.** A [`Verdict`] says what the provider meant, in which scope, and how long to wait; a
//!   [`Refusal`] says which layer said no, why, and when to come back.
//! - **They tell no lie.** A late answer decides nothing for a state it was not admitted in; clones share; a cancel or a
//!   panic gives back what was taken, once.
//! - **They cost little to stand there.** A healthy call allocates nothing in the gates and loops, clones no service, and waits
//!   for no other; each module says what its layer costs.
//!
//! # The layers, outermost first
//!
//! | layer | why it stands there |
//! |---|---|
//! | [`IntakeLayer`](call::IntakeLayer) | reads the request once, for all below |
//! | [`Monitor::layer`](monitor::Monitor::layer) | sees what callers see; [`attempts`](monitor::Monitor::attempts) goes below retry |
//! | [`TimeoutLayer`](timeout::TimeoutLayer) with `total` | sets the deadline that all below obey |
//! | [`FallbackLayer`](fallback::FallbackLayer) | sees every refusal and failure below, and goes on to the next target |
//! | [`RetryLayer`](retry::RetryLayer) | each attempt pays below; nothing is held while it waits |
//! | [`CircuitBreakerLayer`](circuit_breaker::CircuitBreakerLayer) | sees each attempt and its timeout; refuses before anything is spent |
//! | [`CostGuardLayer`](cost_guard::CostGuardLayer) | reserves each attempt at its own target's price, before any wait |
//! | [`TokenBucketLayer`](token_bucket::TokenBucketLayer) | each attempt spends quota; what is refused below comes back |
//! | [`BulkheadLayer`](bulkhead::BulkheadLayer) | the shortest hold: a slot is taken last |
//! | [`TimeoutLayer`](timeout::TimeoutLayer) with `head`, `first_content`, `idle` | inside, so that the breaker counts what hangs |
//! | [`OutcomeLayer`](call::OutcomeLayer) | reads the response once, for all above |
//!
//! [`docs::ordering`] gives the reasons, and the order of a server. [`docs`] has more pages to read: the lines for hyper, reqwest,
//! tonic and async-openai ([`docs::clients`]), what holds when a caller leaves, code panics or a clock jumps
//! ([`docs::failure_semantics`]), how to come from other crates ([`docs::migration`]), what the compiler says when a stack does
//! not fit ([`docs::compiler_messages`]), and the words ([`docs::glossary`]). [`gate`] says how to write a layer of your own in
//! ten lines; `config` (feature `serde`) builds the whole stack from a file.
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
//! use seawall::circuit_breaker::CircuitBreakerLayer;
//! use seawall::timeout::TimeoutLayer;
//! use seawall::BoxError;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(TimeoutLayer::new(Duration::from_secs(120)))
//!     .layer(CircuitBreakerLayer::new())
//!     .layer(BulkheadLayer::new(16))
//!     .layer(TimeoutLayer::builder().head(Duration::from_secs(30)).idle(Duration::from_secs(30)).build()?)
//!     .layer(OutcomeLayer::new())
//!     // In place of this: a client of hyper, reqwest or tonic.
//!     .service_fn(|_request: Request<CallBody>| async {
//!         Ok::<_, BoxError>(Response::new(Full::new(Bytes::from("{}"))))
//!     });
//! let response = client.oneshot(Request::new(Full::<Bytes>::default())).await?;
//! assert_eq!(response.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! # Types of your own
//!
//! What HTTP says by itself, other types must say: what a request tells of itself ([`call::Describe`]; an empty `impl` is enough),
//! that an answer is over when it is there (`.at_head()` on each layer), what it means ([`classify`]), and where a refusal goes
//! in the error ([`Fault`], or a boxed one).
//!
//! ```
//! use seawall::bulkhead::BulkheadLayer;
//! use seawall::circuit_breaker::CircuitBreakerLayer;
//! use seawall::{Fault, Verdict, calls, classify};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! struct Prompt(String);
//! impl seawall::call::Describe for Prompt {}
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let judge = classify::responses(|_: &String| Verdict::SUCCESS);
//! let service = ServiceBuilder::new()
//!     // Names the request type, so that the compiler says which layer lacks what.
//!     .layer(calls::<Prompt>())
//!     .layer(CircuitBreakerLayer::builder().classify(judge).build()?.at_head())
//!     .layer(BulkheadLayer::new(8).at_head())
//!     .map_err(Fault::Inner)
//!     .service_fn(|prompt: Prompt| async move { Ok::<_, std::io::Error>(prompt.0) });
//! assert_eq!(service.oneshot(Prompt("hello".to_owned())).await?, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! All are off by default, and none changes what the others do.
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | `Config` and routes from JSON; snapshots of the monitor as JSON |
//! | `toml` | both from TOML too |
//! | `file-ledger` | `cost_guard::ledger::FileLedger`: budgets that survive a restart |
//! | `fault` | `fault::FaultLayer`: faults on purpose, for your own tests and game days |
//! | `metrics` | the monitor's figures for the crate `metrics` |
//! | `tracing` | the monitor's spans and events, with OpenTelemetry's names |
//! | `hyper` | what the errors of hyper, hyper-util and h2 prove |
//! | `tonic` | gRPC: refusals as a `Status`, judgement by status |
//! | `tower` | policies of tower's retry as ours, and ours as tower's |
//! | `tokenizer` | exact token counts for OpenAI's vocabularies; 5 MB in the binary |
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod bulkhead;
pub mod call;
mod calls;
pub mod circuit_breaker;
#[cfg(feature = "serde")]
pub mod config;
mod config_error;
pub mod cost_guard;
mod deadline;
pub mod docs;
pub mod fallback;
#[cfg(feature = "fault")]
pub mod fault;
pub mod gate;
#[cfg(feature = "tonic")]
pub mod grpc;
#[cfg(feature = "hyper")]
pub mod hyper;
mod money;
pub mod monitor;
pub mod provider;
#[cfg(feature = "serde")]
mod reading;
pub mod refusal;
pub mod retry;
mod rng;
mod stripes;
mod sync;
pub mod time;
pub mod timeout;
pub mod token_bucket;
mod verdict;

pub use calls::{Calls, Serving, calls};
#[cfg(feature = "serde")]
pub use config::Config;
pub use config_error::ConfigError;
pub use deadline::Deadline;
pub use refusal::{BoxError, Failure, Fault, Phase, Refusal, RefusalKind};
pub use verdict::{Class, Classify, Reach, Reason, Scope, StatusClassifier, Verdict, classify};

/// The example in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
