//! The future: the inner call and what is done to its answer, or what stands in its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use http::header::CONTENT_LENGTH;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use super::body::FaultBody;
use super::inject::{Change, Injected, What};
use crate::call::HttpResponse;
use crate::time;

pin_project! {
    /// The response of a service with faults. Dropping it drops the call and ends its wait.
    #[must_use = "futures do nothing unless polled"]
    pub struct FaultFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

type Answer<B, E> = Result<Response<FaultBody<B>>, E>;

pin_project! {
    #[project = StateProj]
    enum State<F, B, E> {
        Passing { #[pin] future: F },
        Changing { #[pin] future: F, wait: Duration, change: Option<Change> },
        Waiting { #[pin] sleep: Option<Sleep>, answer: Option<Answer<B, E>> },
        Hanging,
    }
}

impl<F, B, E> FaultFuture<F, B, E> {
    pub(super) fn passing(future: F) -> Self {
        Self { state: State::Passing { future } }
    }

    pub(super) fn changing(future: F, wait: Duration, change: Option<Change>) -> Self {
        Self { state: State::Changing { future, wait, change } }
    }

    /// This in place of a call; without an answer there never is one.
    pub(super) fn instead(answer: Option<Answer<B, E>>, wait: Duration) -> Self {
        Self { state: answer.map_or(State::Hanging, |answer| State::after(wait, answer)) }
    }
}

impl<F, B, E> State<F, B, E> {
    fn after(wait: Duration, answer: Answer<B, E>) -> Self {
        if wait.is_zero() {
            return Self::Waiting { sleep: None, answer: Some(answer) };
        }
        match time::checked_add(time::now(), wait) {
            Some(at) => Self::Waiting { sleep: Some(sleep_until(at)), answer: Some(answer) },
            None => Self::Hanging,
        }
    }
}

impl<F, R, E> Future for FaultFuture<F, R::Body, E>
where
    F: Future<Output = Result<R, E>>,
    R: HttpResponse,
{
    type Output = Answer<R::Body, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Passing { future } => {
                    return future.poll(cx).map_ok(|response| response.into_http().map(FaultBody::passing));
                }
                StateProj::Changing { future, wait, change } => match future.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(result) => {
                        let answer = result.map(|response| changed(response.into_http(), change.take()));
                        State::after(*wait, answer)
                    }
                },
                StateProj::Waiting { sleep, answer } => {
                    if sleep.as_pin_mut().is_some_and(|sleep| sleep.poll(cx).is_pending()) {
                        return Poll::Pending;
                    }
                    return Poll::Ready(answer.take().expect("a future answers once"));
                }
                StateProj::Hanging => return Poll::Pending,
            };
            // Drops the inner future before the wait.
            this.state.set(next);
        }
    }
}

fn changed<B>(mut response: Response<B>, change: Option<Change>) -> Response<FaultBody<B>> {
    response.extensions_mut().insert(Injected::MARK);
    if change.as_ref().is_some_and(|change| matches!(change.what, What::Event(_))) {
        // Another event, and an earlier end: the length is not known any more.
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response.map(|body| match change {
        Some(change) => FaultBody::changed(body, change),
        None => FaultBody::passing(body),
    })
}

impl<F, B, E> fmt::Debug for FaultFuture<F, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Passing { .. } => "passing",
            State::Changing { .. } => "changing",
            State::Waiting { .. } => "waiting",
            State::Hanging => "hanging",
        };
        f.debug_struct("FaultFuture").field("state", &state).finish_non_exhaustive()
    }
}
