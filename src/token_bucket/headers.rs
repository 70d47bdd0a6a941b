//! `RateLimit` and `RateLimit-Policy` on every answer.

use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderName, HeaderValue, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::gate::{Keyed, Keys, PerKey};
use crate::token_bucket::gate::TokenBucket;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Finds the bucket that decides about a request.
pub trait BucketOf<Req>: sealed::Sealed {
    /// Its handle.
    type Bucket: Levels;
    #[doc(hidden)]
    fn bucket_of(&self, request: &Req) -> Self::Bucket;
}

/// A bucket whose state can be written into a response.
pub trait Levels: sealed::Sealed {
    #[doc(hidden)]
    fn write(&self) -> Option<(HeaderValue, HeaderValue)>;
}

impl<U, R, Req> BucketOf<Req> for TokenBucket<U, R> {
    type Bucket = Self;

    fn bucket_of(&self, _request: &Req) -> Self {
        self.clone()
    }
}

impl<U, R, K, Req> BucketOf<Req> for Keyed<TokenBucket<U, R>, K>
where
    TokenBucket<U, R>: PerKey,
    K: Keys<Req>,
{
    type Bucket = TokenBucket<U, R>;

    fn bucket_of(&self, request: &Req) -> TokenBucket<U, R> {
        self.get(&self.key_of(request))
    }
}

impl<U, R> Levels for TokenBucket<U, R> {
    fn write(&self) -> Option<(HeaderValue, HeaderValue)> {
        let now = self.state.now();
        let (mut policy, mut state) = (String::with_capacity(64), String::with_capacity(64));
        for (index, name) in self.dimensions().enumerate() {
            let level = self.level_at(index, now);
            let comma = if index == 0 { "" } else { ", " };
            let window = level.quota.period().as_secs().max(1);
            let (quota, left) = (level.quota.amount(), level.available);
            let full = level.full_in.as_millis().div_ceil(1_000);
            // Structured Fields allow printable ASCII in a string, and two characters only after a backslash.
            let name: String =
                name.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\')).collect();
            let _ = write!(policy, "{comma}\"{name}\";q={quota};w={window}");
            let _ = write!(state, "{comma}\"{name}\";r={left};t={full}");
        }
        Some((HeaderValue::from_str(&policy).ok()?, HeaderValue::from_str(&state).ok()?))
    }
}

/// Writes the state of the buckets into every response, as `RateLimit` and `RateLimit-Policy` (IETF
/// draft-ietf-httpapi-ratelimit-headers-10): `q` the quota a window of `w` seconds, `r` what is left, `t` the seconds until
/// the bucket is full.
///
/// Made by [`TokenBucketLayer::headers`](crate::token_bucket::TokenBucketLayer::headers), and put outside of that layer,
/// so that refusals carry them too.
///
/// ```
/// use std::num::NonZeroU64;
/// use seawall::token_bucket::{Quota, TokenBucketLayer};
/// use tower::ServiceBuilder;
///
/// let bucket = TokenBucketLayer::new(Quota::per_minute(NonZeroU64::new(60).expect("not zero")));
/// let layers = ServiceBuilder::new().layer(bucket.headers()).layer(bucket.respond());
/// # let _ = layers;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeadersLayer<G> {
    gate: G,
}

impl<G> HeadersLayer<G> {
    pub(super) fn new(gate: G) -> Self {
        Self { gate }
    }
}

impl<S, G: Clone> Layer<S> for HeadersLayer<G> {
    type Service = Headers<S, G>;

    fn layer(&self, inner: S) -> Headers<S, G> {
        Headers { inner, gate: self.gate.clone() }
    }
}

/// The service of a [`HeadersLayer`].
#[derive(Clone, Copy, Debug)]
pub struct Headers<S, G> {
    inner: S,
    gate: G,
}

impl<S, G, Req, B> Service<Req> for Headers<S, G>
where
    S: Service<Req, Response = Response<B>>,
    G: BucketOf<Req>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = HeadersFuture<S::Future, G::Bucket>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let bucket = self.gate.bucket_of(&request);
        HeadersFuture { inner: self.inner.call(request), bucket }
    }
}

pin_project! {
    /// The response of [`Headers`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct HeadersFuture<F, T> {
        #[pin]
        inner: F,
        bucket: T,
    }
}

impl<F, T, B, E> Future for HeadersFuture<F, T>
where
    F: Future<Output = Result<Response<B>, E>>,
    T: Levels,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?;
        if let Some((policy, state)) = this.bucket.write() {
            let headers = response.headers_mut();
            headers.insert(POLICY, policy);
            headers.insert(RATE_LIMIT, state);
        }
        Poll::Ready(Ok(response))
    }
}

mod sealed {
    pub trait Sealed {}
    impl<U, R> Sealed for super::TokenBucket<U, R> {}
    impl<G, K> Sealed for super::Keyed<G, K> {}
}
