//! Faults on purpose, for your own tests and game days: what a stack does when its provider has a bad day is better seen
//! before that day.
//!
//! A [`FaultLayer`] stands in front of an HTTP client, in place of the provider's own faults, and does one of these to a
//! call:
//!
//! | fault | what the caller sees | is the client called? |
//! |---|---|---|
//! | [`Inject::status`], [`Inject::throttled`], [`Inject::response`] | that answer | no |
//! | [`Inject::reset`] | an [`io::Error`](std::io::Error) of kind `ConnectionReset` | no |
//! | [`Inject::hang`] | no head, ever | no |
//! | [`Inject::delay`] | the client's own answer, so much later | yes |
//! | [`Inject::stall`], [`Inject::stall_for`] | silence after so many bytes of the body | yes |
//! | [`Inject::cut`] | an error after so many bytes of the body | yes |
//! | [`Inject::error_event`] | an error event in the stream, which then ends | yes |
//!
//! Which one, is said by a **script**, a fault a call in the order of the calls, and once it is used up by **rates**, drawn
//! from a **seed**: the same seed, rates and order of calls give the same faults. All services of a layer and their clones
//! share one script and one sequence of numbers.
//!
//! The layer starts **switched off**, and then passes everything on untouched; [`FaultBuilder::on`] has it start switched
//! on, and its [`FaultHandle`] switches it while calls run. A call that arrives while it is off takes no entry of the script
//! and draws no number.
//!
//! Where it stands: innermost, around the client and below the [`OutcomeLayer`](crate::call::OutcomeLayer), so that all
//! other layers take its faults for the provider's.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use seawall::BoxError;
//! use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
//! use seawall::fault::{FaultLayer, Inject};
//! use seawall::retry::{RetryLayer, RetryPolicy};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let faults = FaultLayer::builder()
//!     // The first call meets a 503, the second goes through, the third is reset;
//!     .script([Inject::status(StatusCode::SERVICE_UNAVAILABLE), Inject::nothing(), Inject::reset()])
//!     // after them one in a hundred streams ends in an error.
//!     .rate(0.01, Inject::error_event(0))
//!     .seed(7)
//!     .on()
//!     .build()?;
//! let handle = faults.handle();
//! let client = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .layer(OutcomeLayer::new())
//!     .layer(faults)
//!     .service_fn(|_: Request<CallBody>| async {
//!         Ok::<_, BoxError>(Response::new(Full::new(Bytes::from("{}"))))
//!     });
//!
//! let response = client.oneshot(Request::new(Full::<Bytes>::default())).await?;
//! assert_eq!(response.status(), 200, "the retry went through");
//! assert_eq!((handle.injected(), handle.left()), (1, 1));
//! // The game is over.
//! handle.off();
//! # Ok(())
//! # }
//! ```
//!
//! An injected answer carries [`Injected`] in its extensions, and an injected error as its inner error, so that a test can
//! tell them from the real ones. For two upstreams give each client a layer of its own.
//!
//! # Cost and cancellation
//!
//! Switched off it costs one load of an atomic; nothing is allocated, and no frame is held back. Dropping a future or a body
//! ends what it was waiting for; nothing is spawned. A call takes its fault when it is made: one that is dropped has used
//! up its entry of the script.
//!
//! The error type of the client must be made from an [`io::Error`](std::io::Error), as [`BoxError`](crate::BoxError) is.

mod body;
mod future;
mod handle;
mod inject;
mod layer;
mod plan;
mod service;
#[cfg(test)]
mod tests;

pub use body::FaultBody;
pub use future::FaultFuture;
pub use handle::FaultHandle;
pub use inject::{Inject, Injected};
pub use layer::{FaultBuilder, FaultLayer};
pub use service::{Breaks, Faulty};
