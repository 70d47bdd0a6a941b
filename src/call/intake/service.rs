//! The service.

use std::mem;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use http_body::Body;
use tower_service::Service;

use super::ResponseFuture;
use super::collect::{Collect, Collected};
use super::layer::Settings;
use super::read::{self, Form};
use crate::call::CallBody;
use crate::refusal::BoxError;

/// Reads each request once; see [the module](crate::call::intake).
#[derive(Clone, Debug)]
pub struct Intake<S> {
    pub(super) inner: S,
    pub(super) settings: Settings,
}

impl<S, B> Service<Request<B>> for Intake<S>
where
    S: Service<Request<CallBody>> + Clone,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let limit = self.settings.limit;
        if body.is_end_stream() {
            return self.pass(parts, CallBody::empty(), Form::Opaque);
        }
        let form = read::form_of(&parts, &body, limit);
        if form == Form::Opaque {
            // What is over the limit is not kept either.
            let record = if read::says_more_than(&parts, &body, limit) { 0 } else { self.settings.record };
            return self.pass(parts, CallBody::streaming(body, record), form);
        }
        let complete = body.size_hint().exact().is_some();
        let mut collect = Collect::new(body, limit);
        // A body that is there needs no wait: what is ready is called. If it is not, nobody is woken by this look at it,
        // and the future polls it again with its own waker.
        if complete && let Poll::Ready(collected) = collect.poll(&mut Context::from_waker(Waker::noop())) {
            let (Collected::Whole(body) | Collected::Passed(body)) = collected;
            return self.pass(parts, body, form);
        }
        // What the readied service has reserved must not be held while the caller takes its time.
        let fresh = self.inner.clone();
        drop(mem::replace(&mut self.inner, fresh));
        ResponseFuture::reading(self.inner.clone(), parts, collect, form, self.settings.clone())
    }
}

impl<S: Service<Request<CallBody>>> Intake<S> {
    fn pass<B>(&mut self, parts: Parts, body: CallBody, form: Form) -> ResponseFuture<S, B> {
        ResponseFuture::calling(self.inner.call(read::describe(parts, body, form, &self.settings)))
    }
}
