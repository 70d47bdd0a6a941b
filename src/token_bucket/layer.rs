//! The layer.

use crate::gate::{BodyEnd, gate_layer};
use crate::token_bucket::builder::{TEN_SECONDS, TokenBucketBuilder};
use crate::token_bucket::gate::TokenBucket;
use crate::token_bucket::headers::HeadersLayer;
use crate::token_bucket::quota::Quota;

/// Keeps calls within limits of requests, tokens or anything else.
///
/// See the [module](crate::token_bucket). All services that it makes share one bucket, or one a key.
///
/// ```
/// use std::num::NonZeroU64;
/// use seawall::gate::ByTenant;
/// use seawall::token_bucket::{Quota, TokenBucketLayer};
///
/// // On a server: ten requests a second for each tenant, and nobody waits.
/// let ten = NonZeroU64::new(10).expect("not zero");
/// let layer =
///     TokenBucketLayer::builder().requests(Quota::per_second(ten)).refuse().keyed(ByTenant).build()?.respond();
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenBucketLayer<G = TokenBucket, M = BodyEnd> {
    gate: G,
    mode: M,
}

gate_layer!(TokenBucketLayer);

impl TokenBucketLayer {
    /// At most `requests`, with the defaults of the [builder](Self::builder).
    ///
    /// A quota faster than one unit a nanosecond is that fast, and a bucket holds no more than flows in within a year; a
    /// builder says so with an error.
    #[must_use]
    pub fn new(requests: Quota) -> Self {
        let sound = requests.nearest(TEN_SECONDS);
        let built = Self::builder().requests(sound).build();
        built.expect("the nearest quota that can be built, and nothing else was set")
    }

    /// Builds a layer with other settings. It needs at least one dimension.
    pub fn builder() -> TokenBucketBuilder {
        TokenBucketBuilder::new()
    }
}

impl<G> TokenBucketLayer<G> {
    pub(super) fn from_gate(gate: G) -> Self {
        Self { gate, mode: BodyEnd }
    }
}

impl<G: Clone, M> TokenBucketLayer<G, M> {
    /// A layer that writes the state of this layer's buckets into every response, as `RateLimit` and `RateLimit-Policy`:
    /// for servers. Put it outside of this one.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::num::NonZeroU64;
    /// use http::{Request, Response};
    /// use http_body_util::Empty;
    /// use seawall::token_bucket::{Quota, TokenBucketLayer};
    /// use tower::{ServiceBuilder, ServiceExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// const SIXTY: NonZeroU64 = NonZeroU64::new(60).unwrap();
    /// let bucket = TokenBucketLayer::new(Quota::per_minute(SIXTY)).respond();
    /// let server = ServiceBuilder::new().layer(bucket.headers()).layer(bucket).service_fn(
    ///     |_: Request<()>| async { Ok::<_, Infallible>(Response::new(Empty::<bytes::Bytes>::new())) },
    /// );
    /// let response = server.oneshot(Request::new(())).await.unwrap();
    /// assert!(response.headers().contains_key("ratelimit"));
    /// # }
    /// ```
    #[must_use]
    pub fn headers(&self) -> HeadersLayer<G> {
        HeadersLayer::new(self.gate.clone())
    }
}
