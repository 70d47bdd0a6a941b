//! Reads a request once, for all layers below.
//!
//! Put [`IntakeLayer`] outermost, above every layer that asks what a call is about or sends it more than once:
//!
//! - It collects the body, up to a limit (32 MiB), where the content type says that it is JSON or a form.
//! - It writes what the body asks for (model, stream, output bound, choices, service tier, an estimate of the input) into the
//!   request's [`Call`]. What somebody else wrote there before stays: deadline, tenant, priority, an estimate.
//! - It makes the body a [`CallBody`], which can be sent again and given another model.
//!
//! Everything else passes through as it arrives: what is over the limit, compressed, or neither JSON nor a form. It cannot
//! be given another model, and [`Call::rewritable`] says so. Such a body is still written down up to
//! [`record`](IntakeLayer::record) bytes while it is sent, so that a small one can be sent again; what is over the limit is
//! not. If reading fails, what was read and the error go on together: the client below meets the error where it would have.
//!
//! A body that has not arrived yet is waited for *before* the inner service is asked for readiness again, so that nothing
//! below is held back for a slow caller. Put a [timeout](crate::timeout) above if a caller may take its time for ever.
//!
//! It costs, for a body that is there at once, the read of its bytes and three allocations for the extension; for one that arrives
//! in pieces also a buffer and a clone of the inner service.
//!
//! ```
//! use http::{Request, Response};
//! use seawall::BoxError;
//! use seawall::call::{CallBody, Describe, IntakeLayer};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new().layer(IntakeLayer::new()).service(service_fn(
//!     async |request: Request<CallBody>| {
//!         assert_eq!(request.call().and_then(|call| call.output_bound), Some(100));
//!         Ok::<_, BoxError>(Response::new(()))
//!     },
//! ));
//! let request = Request::post("https://api.example.com/v1/chat/completions")
//!     .header("content-type", "application/json")
//!     .body(CallBody::from(r#"{"model":"m","max_tokens":100,"messages":[]}"#))?;
//! client.oneshot(request).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Call`]: crate::call::Call
//! [`Call::rewritable`]: crate::call::Call::rewritable
//! [`CallBody`]: crate::call::CallBody

mod collect;
mod future;
mod layer;
mod read;
mod service;
#[cfg(test)]
mod tests;

pub use future::ResponseFuture;
pub use layer::IntakeLayer;
#[cfg(feature = "serde")]
pub(crate) use layer::LIMIT;
pub use service::Intake;
