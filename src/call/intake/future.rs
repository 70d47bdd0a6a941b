//! The future: reads the body, waits for the inner service, calls it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::collect::{Collect, Collected};
use super::layer::Settings;
use super::read::{self, Form};
use crate::call::CallBody;
use crate::refusal::BoxError;

pin_project! {
    /// The response of the inner service, once the request is read. Dropping it drops the request.
    pub struct ResponseFuture<S: Service<Request<CallBody>>, B> {
        #[pin]
        state: State<S, S::Future, B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, F, B> {
        // The body is on its way; nothing below is held. The service is polled for readiness afterwards.
        Reading { waiting: Option<Box<Waiting<S, B>>> },
        // All is read; the service is not ready yet.
        Readying { ready: Option<Box<(S, Request<CallBody>)>> },
        Calling { #[pin] future: F },
    }
}

struct Waiting<S, B> {
    inner: S,
    parts: Parts,
    collect: Collect<B>,
    form: Form,
    settings: Settings,
}

impl<S: Service<Request<CallBody>>, B> ResponseFuture<S, B> {
    pub(super) fn calling(future: S::Future) -> Self {
        Self { state: State::Calling { future } }
    }

    pub(super) fn reading(
        inner: S,
        parts: Parts,
        collect: Collect<B>,
        form: Form,
        settings: Settings,
    ) -> Self {
        let waiting = Some(Box::new(Waiting { inner, parts, collect, form, settings }));
        Self { state: State::Reading { waiting } }
    }
}

impl<S, B> Future for ResponseFuture<S, B>
where
    S: Service<Request<CallBody>>,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                // ## Reading => Readying: all of the body is there, or as much as is collected.
                StateProj::Reading { waiting } => {
                    let reading = waiting.as_mut().expect("taken only when this state is left");
                    let (Collected::Whole(body) | Collected::Passed(body)) = ready!(reading.collect.poll(cx));
                    let Waiting { inner, parts, form, settings, .. } =
                        *waiting.take().expect("it was there a line above");
                    let request = read::describe(parts, body, form, &settings);
                    State::Readying { ready: Some(Box::new((inner, request))) }
                }
                // ## Readying => Calling: what is ready is what is called.
                StateProj::Readying { ready } => {
                    let (inner, _) = &mut **ready.as_mut().expect("taken only when this state is left");
                    ready!(inner.poll_ready(cx))?;
                    let (mut inner, request) = *ready.take().expect("it was there a line above");
                    State::Calling { future: inner.call(request) }
                }
                StateProj::Calling { future } => return future.poll(cx),
            };
            state.set(next);
        }
    }
}

impl<S: Service<Request<CallBody>>, B> fmt::Debug for ResponseFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
