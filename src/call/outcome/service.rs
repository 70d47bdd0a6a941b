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
use crate::call::ahead::ReadAhead;
use crate::call::{Describe, Outcome};
use crate::provider::{self, grpc};
use crate::time::{self, Instant};
use crate::verdict::{Class, Verdict};

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
    /// Whether its head was good, and a layer below has read on and found that the rest is not.
    #[doc(hidden)]
    fn is_hollow(&self) -> bool;
}

impl<B: Body<Data = Bytes>> HttpResponse for Response<B> {
    type Body = B;

    fn into_http(self) -> Self {
        self
    }

    fn http_status(&self) -> StatusCode {
        self.status()
    }

    fn is_hollow(&self) -> bool {
        let failed = Outcome::of(self).and_then(|outcome| outcome.verdict());
        failed.is_some_and(|verdict| !verdict.is_success())
            && Verdict::of_status(self.status()).is_success()
            // The head of gRPC is always good.
            && !grpc::is_grpc(self.headers())
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
        // `good` is whether it is the first frame of a good response, and not the body of a failed one.
        Reading { body: Option<ErrorBody<B>>, outcome: Arc<Outcome>, good: bool },
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
                    let good = is_grpc || Verdict::of_status(response.status()).is_success();
                    if good && !(is_grpc && this.settings.holds(&response, *this.bodiless)) {
                        this.state.set(State::Done);
                        let response = response.map(ReadAhead::none);
                        return Poll::Ready(Ok(tapped(
                            response,
                            outcome,
                            *this.bodiless,
                            is_grpc,
                            this.settings,
                        )));
                    }
                    let body = if good {
                        ErrorBody::first_frame(response, this.settings.grpc_frame_time)
                    } else {
                        ErrorBody::new(response, *this.bodiless, this.settings)
                    };
                    this.state.set(State::Reading { body: Some(body), outcome, good });
                }
                StateProj::Reading { body, outcome, good } => {
                    let reading = body.as_mut().expect("a body is taken only when it is read");
                    ready!(reading.poll(cx));
                    let body = body.take().expect("it was there a line ago");
                    let (outcome, good) = (outcome.clone(), *good);
                    this.state.set(State::Done);
                    return Poll::Ready(Ok(if good {
                        first_frame_read(body, outcome, this.settings)
                    } else {
                        failed(body, outcome, this.settings)
                    }));
                }
                StateProj::Done => panic!("`OutcomeFuture` polled after it was done"),
            }
        }
    }
}

impl Settings {
    /// Whether the head of this gRPC response is held until its first frame.
    fn holds<B: Body>(&self, response: &Response<B>, bodiless: bool) -> bool {
        let ends_here = bodiless || response.body().is_end_stream();
        !self.grpc_frame_time.is_zero() && !ends_here && response.status() == StatusCode::OK
    }
}

/// A failed response whose body was read.
fn failed<B: Body<Data = Bytes>>(
    body: ErrorBody<B>,
    outcome: Arc<Outcome>,
    settings: &Settings,
) -> Response<OutcomeBody<B>> {
    let (response, text) = body.into_response();
    let wall = settings.wall.since_epoch();
    outcome.set_verdict(provider::classify(response.status(), response.headers(), &text, wall));
    // Some upstreams bill what they refuse, and say so.
    outcome.update_usage(&provider::usage::of_json(&text));
    if response.body().is_end_stream() {
        outcome.mark_end(time::now());
    }
    with(response, outcome)
}

/// A gRPC response of which the first frame was waited for: its verdict is known if it ended there.
fn first_frame_read<B: Body<Data = Bytes>>(
    body: ErrorBody<B>,
    outcome: Arc<Outcome>,
    settings: &Settings,
) -> Response<OutcomeBody<B>> {
    let verdict = body.ended_empty().map(|end| match end {
        Ok(trailers) => {
            let head = body.head();
            grpc::at_end(head.status, &head.headers, trailers, settings.wall.since_epoch())
        }
        Err(()) => Verdict::new(Class::Transient),
    });
    let response = body.into_read_ahead();
    let Some(verdict) = verdict else { return tapped(response, outcome, false, true, settings) };
    outcome.set_verdict(verdict);
    outcome.mark_end(time::now());
    with(response.map(OutcomeBody::passing), outcome)
}

/// A response whose body says the rest while it passes.
fn tapped<B: Body<Data = Bytes>>(
    response: Response<ReadAhead<B>>,
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
