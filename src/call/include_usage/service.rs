//! The service and its future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG};
use http::{HeaderMap, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::IncludeUsageBody;
use super::edit::ask_for_usage;
use crate::call::outcome::HttpResponse;
use crate::call::{CallBody, aim, media};

/// The service of [`IncludeUsageLayer`](super::IncludeUsageLayer).
#[derive(Clone, Debug)]
pub struct IncludeUsage<S> {
    inner: S,
}

impl<S> IncludeUsage<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S> Service<Request<CallBody>> for IncludeUsage<S>
where
    S: Service<Request<CallBody>, Response: HttpResponse>,
{
    type Response = Response<IncludeUsageBody<<S::Response as HttpResponse>::Body>>;
    type Error = S::Error;
    type Future = IncludeUsageFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<CallBody>) -> Self::Future {
        let hide = ask(&mut request);
        IncludeUsageFuture { future: self.inner.call(request), hide }
    }
}

/// Asks for the usage, and says whether the caller did not.
fn ask(request: &mut Request<CallBody>) -> bool {
    // A path that other APIs share with OpenAI's; Azure's ends alike.
    if !request.uri().path().ends_with("/completions") || !is_json(request.headers()) {
        return false;
    }
    let Some(edited) = request.body().bytes().and_then(|body| ask_for_usage(body)) else { return false };
    let length = edited.len();
    let trailers = request.body().trailers().cloned().unwrap_or_default();
    *request.body_mut() = CallBody::from(edited).with_trailers(trailers);
    let headers = request.headers_mut();
    aim::frame(headers, Some(length), true);
    if headers.contains_key(ACCEPT_ENCODING) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    true
}

fn is_json(headers: &HeaderMap) -> bool {
    !headers.contains_key(CONTENT_ENCODING) && media::of(headers).is_some_and(media::is_json)
}

pin_project! {
    /// The response of [`IncludeUsage`]. Dropping it drops the call.
    #[must_use = "futures do nothing unless polled"]
    pub struct IncludeUsageFuture<F> {
        #[pin]
        future: F,
        hide: bool,
    }
}

impl<F, R, E> Future for IncludeUsageFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: HttpResponse,
{
    type Output = Result<Response<IncludeUsageBody<R::Body>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.future.poll(cx))?.into_http();
        if !*this.hide || !can_hide(response.headers()) {
            return Poll::Ready(Ok(response.map(IncludeUsageBody::passing)));
        }
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.remove(ETAG);
        aim::remove_digests(headers);
        Poll::Ready(Ok(response.map(IncludeUsageBody::hiding)))
    }
}

/// Whether this is an event stream that can be read as it stands.
fn can_hide(headers: &HeaderMap) -> bool {
    let coded = headers.get_all(CONTENT_ENCODING).iter().any(|coding| {
        let coding = coding.as_bytes().trim_ascii();
        !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
    });
    !coded && media::of(headers).is_some_and(media::is_event_stream)
}

impl<F> fmt::Debug for IncludeUsageFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncludeUsageFuture").field("hide", &self.hide).finish_non_exhaustive()
    }
}
