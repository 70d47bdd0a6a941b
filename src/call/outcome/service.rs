//! The service and its future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::OutcomeBody;
use super::error_body::ErrorBody;
use super::layer::{Outcomes, Settings};
use super::tap::Tap;
use crate::call::{Describe, Outcome};
use crate::provider::{self, grpc};
use crate::time::{self, Instant};
use crate::verdict::Verdict;

/// A response that can be read: an [`http::Response`] with a body of [`Bytes`]. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an HTTP response with a body of `Bytes`",
    note = "the outcome layer reads `http::Response<B>` where `B: http_body::Body<Data = Bytes>`; \
            for your own response type implement `seawall::call::Answer`"
)]
pub trait HttpResponse: sealed::Sealed {
    /// Its body.
    type Body: Body<Data = Bytes>;
    #[doc(hidden)]
    fn into_http(self) -> Response<Self::Body>;
    #[doc(hidden)]
    fn http_status(&self) -> StatusCode;
}

impl<B: Body<Data = Bytes>> HttpResponse for Response<B> {
    type Body = B;

    fn into_http(self) -> Self {
        self
    }

    fn http_status(&self) -> StatusCode {
        self.status()
    }
}

mod sealed {
    pub trait Sealed {}
    impl<B> Sealed for http::Response<B> {}
}

impl<S, Req> Service<Req> for Outcomes<S>
where
    S: Service<Req, Response: HttpResponse>,
    Req: Describe,
{
    type Response = Response<OutcomeBody<<S::Response as HttpResponse>::Body>>;
    type Error = S::Error;
    type Future = OutcomeFuture<S::Future, <S::Response as HttpResponse>::Body>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let bodiless = request.expects_no_body();
        let sent = time::now();
        let state = State::Sending { future: self.inner.call(request) };
        OutcomeFuture { state, sent, bodiless, settings: self.settings.clone() }
    }
}

pin_project! {
    /// The response of [`Outcomes`]. A failed one is there when its body has been read; dropping the future drops the call.
    #[must_use = "futures do nothing unless polled"]
    pub struct OutcomeFuture<F, B> where B: Body {
        #[pin]
        state: State<F, B>,
        sent: Instant,
        bodiless: bool,
        settings: Arc<Settings>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, B> where B: Body {
        Sending { #[pin] future: F },
        Reading { error: Option<ErrorBody<B>>, outcome: Arc<Outcome> },
        Done,
    }
}

impl<F, R, E> Future for OutcomeFuture<F, R::Body>
where
    F: Future<Output = Result<R, E>>,
    R: HttpResponse,
{
    type Output = Result<Response<OutcomeBody<R::Body>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Sending { future } => {
                    let response = match ready!(future.poll(cx)) {
                        Ok(response) => response.into_http(),
                        Err(error) => {
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error));
                        }
                    };
                    let outcome = Arc::new(Outcome::new(*this.sent));
                    outcome.mark_head(time::now());
                    let is_grpc = grpc::is_grpc(response.headers());
                    if is_grpc || Verdict::of_status(response.status()).is_success() {
                        this.state.set(State::Done);
                        return Poll::Ready(Ok(tapped(
                            response,
                            outcome,
                            *this.bodiless,
                            is_grpc,
                            this.settings,
                        )));
                    }
                    let error = ErrorBody::new(response, *this.bodiless, this.settings);
                    this.state.set(State::Reading { error: Some(error), outcome });
                }
                StateProj::Reading { error, outcome } => {
                    let reading = error.as_mut().expect("an error body is taken only when it is whole");
                    ready!(reading.poll(cx));
                    let error = error.take().expect("it was there a line ago");
                    let outcome = outcome.clone();
                    this.state.set(State::Done);
                    let (response, text) = error.into_response();
                    let wall = this.settings.wall.since_epoch();
                    outcome.set_verdict(provider::classify(
                        response.status(),
                        response.headers(),
                        &text,
                        wall,
                    ));
                    // Some upstreams bill what they refuse, and say so.
                    outcome.update_usage(&provider::usage::of_json(&text));
                    if response.body().is_end_stream() {
                        outcome.mark_end(time::now());
                    }
                    return Poll::Ready(Ok(with(response, outcome)));
                }
                StateProj::Done => panic!("`OutcomeFuture` polled after it was done"),
            }
        }
    }
}

/// A response whose body says the rest while it passes.
fn tapped<B: Body<Data = Bytes>>(
    response: Response<B>,
    outcome: Arc<Outcome>,
    bodiless: bool,
    is_grpc: bool,
    settings: &Settings,
) -> Response<OutcomeBody<B>> {
    let ended = bodiless || response.body().is_end_stream();
    let wall = || settings.wall.since_epoch();
    if is_grpc {
        if let Some(verdict) = grpc::at_head(response.status(), response.headers(), ended, wall()) {
            outcome.set_verdict(verdict);
            if ended {
                outcome.mark_end(time::now());
            }
            return with(response.map(OutcomeBody::passing), outcome);
        }
    } else if ended {
        outcome.set_verdict(Verdict::SUCCESS);
        outcome.mark_end(time::now());
        return with(response.map(OutcomeBody::passing), outcome);
    }
    let tap = Tap::new(&response, outcome.clone(), is_grpc, wall);
    with(response.map(|body| OutcomeBody::tapped(body, tap)), outcome)
}

fn with<B>(mut response: Response<B>, outcome: Arc<Outcome>) -> Response<B> {
    response.extensions_mut().insert(outcome);
    response
}

impl<F, B: Body> fmt::Debug for OutcomeFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeFuture").field("sent", &self.sent).finish_non_exhaustive()
    }
}
