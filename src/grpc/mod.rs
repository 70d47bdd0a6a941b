//! For services of tonic: refusals as [`Status`], judgement by status, requests that layers can read. Feature `tonic`.
//!
//! # Where the layers stand
//!
//! | | over [`http::Request`] | over [`tonic::Request`] |
//! |---|---|---|
//! | a client | above the channel, below the generated client | around a closure that calls the generated client |
//! | a server | `Server::builder().layer(..)`, built with `.respond()` | – |
//! | sees | trailers; streams to their end | one result, when it is there: build with `.at_head()` |
//! | the call's verdict | the [`OutcomeLayer`](crate::call::OutcomeLayer), by head and trailers | [`StatusClassifier`] |
//! | a refusal | [`status`] above all layers | becomes a `Status` by itself |
//!
//! The first is the one to take, above all where streams are called. Over a channel:
//!
//! ```
//! use http::Request;
//! use seawall::{BoxError, bulkhead::BulkheadLayer, grpc};
//! use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
//! use seawall::retry::{RetryLayer, RetryPolicy};
//! use tonic::{body::Body, transport::Channel};
//! use tower::ServiceBuilder;
//!
//! # fn stack(channel: Channel) -> tonic::client::Grpc<impl tonic::client::GrpcService<Body, ResponseBody: Send>> {
//! let service = ServiceBuilder::new()
//!     .map_err(grpc::status)
//!     .layer(IntakeLayer::new())
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .layer(BulkheadLayer::new(8))
//!     .layer(OutcomeLayer::new())
//!     .map_err(BoxError::from)
//!     .map_request(|request: Request<CallBody>| request.map(Body::new))
//!     .service(channel);
//! // In place of this: the generated client, `GreeterClient::new(service)`.
//! let client = tonic::client::Grpc::new(service);
//! # client
//! # }
//! ```
//!
//! # What a refusal is
//!
//! `DEADLINE_EXCEEDED`, `RESOURCE_EXHAUSTED` or `UNAVAILABLE` ([`RefusalKind::grpc_code`](crate::RefusalKind::grpc_code)),
//! with the wait in `google.rpc.RetryInfo` and in `grpc-retry-pushback-ms`. In this process the [`Refusal`](crate::Refusal)
//! itself is found in the status again ([`Failure`](crate::Failure)).
//!
//! # Deadlines
//!
//! On a server `TimeoutLayer::builder().heed(grpc::TIMEOUT)` takes the caller's deadline, for every layer below; on a client
//! `.propagate(grpc::TIMEOUT)` tells the server what is left. What `tonic::Request::set_timeout` sets is such a header too.

mod classify;
mod request;
mod status;
#[cfg(test)]
mod tests;

use http::HeaderName;
#[cfg(doc)]
use tonic::Status;

pub use classify::StatusClassifier;
pub use request::copy;
pub use status::status;

/// The header in which gRPC tells how long a call may take.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
