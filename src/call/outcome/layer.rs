//! The layer and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower_layer::Layer;

use crate::provider;
use crate::time::{SystemWall, Wall};

/// Reads each response once, innermost, and shares what it read as an [`Outcome`](crate::call::Outcome) in the
/// response's extensions.
///
/// - A response whose status is a failure is read whole, up to 64 KiB and 5 seconds, and classified by its
///   provider's codes. So it is complete at its head: it holds no connection while it is dropped, kept or retried. What
///   is longer or slower streams on, byte for byte.
/// - A good response is tapped while it passes: event streams and JSON for content, usage, errors and the end; gRPC for
///   the status in its trailers; compressed ones through a bounded, decoded copy. Frames are forwarded as they are,
///   none is held back.
///
/// It needs a response body of [`Bytes`](bytes::Bytes). Over a healthy call it allocates the shared outcome, its place
/// in the extensions, and what the tap keeps.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use seawall::BoxError;
/// use seawall::call::{Outcome, OutcomeLayer};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let upstream = ServiceBuilder::new().layer(OutcomeLayer::new()).service_fn(|_: Request<()>| async {
///     let body = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
///     let response = Response::builder().header("content-type", "application/json");
///     Ok::<_, BoxError>(response.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap())
/// });
/// let response = upstream.oneshot(Request::new(())).await.unwrap();
/// let outcome = Outcome::of(&response).unwrap().clone();
/// response.into_body().collect().await.unwrap();
/// assert_eq!(outcome.usage().total(), Some(9));
/// assert!(outcome.verdict().unwrap().is_success());
/// # }
/// ```
#[derive(Clone)]
pub struct OutcomeLayer {
    settings: Arc<Settings>,
}

/// How error bodies are read, and by which clock dates are.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) error_body_bytes: usize,
    pub(super) error_body_time: Duration,
    pub(super) grpc_frame_time: Duration,
    pub(super) wall: Arc<dyn Wall>,
}

/// How long an error body is waited for by default. Providers send theirs with the head.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

impl OutcomeLayer {
    /// Error bodies are read up to 64 KiB and 5 seconds.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings {
            error_body_bytes: provider::BODY_LIMIT,
            error_body_time: ERROR_BODY_TIME,
            grpc_frame_time: Duration::ZERO,
            wall: Arc::new(SystemWall),
        })
    }

    /// Error bodies are waited for as long as this; `Duration::ZERO` takes only what came with the head.
    #[must_use]
    pub fn error_body_time(self, time: Duration) -> Self {
        Self::with(Settings { error_body_time: time, ..self.settings.as_ref().clone() })
    }

    /// Holds the head of a gRPC response until its first frame is there, at most this long, so that a failure told in
    /// trailers right behind the head is known with the head: then it can be retried. By default `Duration::ZERO`: nothing
    /// is held, and only a failure in the head itself (*Trailers-Only*, which is how most servers fail a call that
    /// they have not begun to answer) is known then. Not for methods whose clients wait for the head before they send.
    #[must_use]
    pub fn grpc_frame_time(self, time: Duration) -> Self {
        Self::with(Settings { grpc_frame_time: time, ..self.settings.as_ref().clone() })
    }

    /// Reads dates against this clock, where the response has no `Date` of its own.
    #[must_use]
    pub fn wall(self, wall: impl Wall + 'static) -> Self {
        Self::with(Settings { wall: Arc::new(wall), ..self.settings.as_ref().clone() })
    }

    fn with(settings: Settings) -> Self {
        Self { settings: Arc::new(settings) }
    }
}

impl Default for OutcomeLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for OutcomeLayer {
    type Service = Outcomes<S>;

    fn layer(&self, inner: S) -> Outcomes<S> {
        Outcomes { inner, settings: self.settings.clone() }
    }
}

/// The service of [`OutcomeLayer`].
#[derive(Clone)]
pub struct Outcomes<S> {
    pub(super) inner: S,
    pub(super) settings: Arc<Settings>,
}

impl fmt::Debug for OutcomeLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeLayer")
            .field("error_body_bytes", &self.settings.error_body_bytes)
            .field("error_body_time", &self.settings.error_body_time)
            .field("grpc_frame_time", &self.settings.grpc_frame_time)
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Outcomes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes").field("inner", &self.inner).finish_non_exhaustive()
    }
}
