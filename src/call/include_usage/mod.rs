//! Asks for the usage of streams that leave it out.
//!
//! Chat and completion streams in the style of OpenAI report what they used only where
//! `stream_options.include_usage` asks for it, in one more event without choices. [`IncludeUsageLayer`] asks for it where
//! the caller did not, and hides that event from a caller that did not ask; so a [cost guard](crate::cost_guard) charges
//! what was used and not what was reserved. Turn it on for upstreams that know the option; some refuse what they do not know.
//!
//! # Where it stands
//!
//! Below [`Intake`](crate::call::IntakeLayer), retry and fallback, so that it edits the bytes of each attempt that it is
//! asked for and never the original; and directly above [`Outcome`](crate::call::OutcomeLayer), so that the event is read
//! before it is hidden.
//!
//! # What it changes
//!
//! Requests: those to a path that ends in `/completions`, with a body of JSON that asks for a stream and not for its usage.
//! The one member is put in (or its `false` or `null` replaced), all other bytes stay; `Content-Length` follows, digests of
//! the old body go, and an `Accept-Encoding` becomes `identity`, since an event cannot be taken out of a compressed stream.
//!
//! Responses to those, if they are uncompressed event streams: the one event with empty `choices` and a `usage` is left out;
//! `Content-Length`, `ETag` and digests go. (Upstreams also write `"usage":null` into all other events then; that stays.) All
//! other bytes pass as they are. Frames that end with an event pass at once, without a copy; of one that does not, the begun
//! event is held back until it is whole, up to 64 KiB. What is compressed all the same passes untouched, that event included.
//!
//! ```
//! use http::{Request, Response};
//! use seawall::BoxError;
//! use seawall::call::{CallBody, IncludeUsageLayer, IntakeLayer, OutcomeLayer};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(IncludeUsageLayer::new())
//!     .layer(OutcomeLayer::new())
//!     .service_fn(|request: Request<CallBody>| async move {
//!         let asks = String::from_utf8_lossy(request.body().bytes().unwrap()).contains(r#""include_usage":true"#);
//!         assert!(asks);
//!         Ok::<_, BoxError>(Response::new(CallBody::empty()))
//!     });
//! let request = Request::post("https://api.example.com/v1/chat/completions")
//!     .header("content-type", "application/json")
//!     .body(CallBody::from(r#"{"model":"m","stream":true,"messages":[]}"#))?;
//! client.oneshot(request).await?;
//! # Ok(())
//! # }
//! ```

mod body;
mod edit;
mod hide;
mod service;
#[cfg(test)]
mod tests;

pub use body::IncludeUsageBody;
pub use service::{IncludeUsage, IncludeUsageFuture};

use tower_layer::Layer;

/// Asks for the usage of streams, and hides it from who did not ask. See [the module](crate::call::include_usage).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct IncludeUsageLayer;

impl IncludeUsageLayer {
    /// For every upstream below.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for IncludeUsageLayer {
    type Service = IncludeUsage<S>;

    fn layer(&self, inner: S) -> IncludeUsage<S> {
        IncludeUsage::new(inner)
    }
}
