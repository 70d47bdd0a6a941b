//! Makes reading a good response part of the attempt.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Response;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::commit::{Bounds, Goal, Held, Hold};
use crate::call::{CommitBody, Describe, HttpResponse, Outcome};
use crate::time::{self, Instant};
use crate::timeout::Limit;
use crate::verdict::Verdict;

/// How far a good response is held back, so that what fails up to there is a failure of the attempt.
///
/// Stands between the retry and what is below it: see [`RetryLayer::until_content`](super::RetryLayer::until_content) and
/// [`RetryLayer::buffer_response`](super::RetryLayer::buffer_response). A response that fails while it is held is judged by
/// its [`Outcome`], which says so. Frames are kept in order and byte for byte, and passed on as they come from then on; what
/// is larger, or takes longer, than it may is passed on as far as it is.
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until a layer has it"]
pub struct HoldLayer {
    goal: Goal,
    bytes: usize,
    time: Limit,
}

/// A role chunk and a ping are a few hundred bytes; this is many of them.
const PREAMBLE_BYTES: usize = 64 * 1024;

impl HoldLayer {
    /// To the first bytes that carry an answer: pings, comments, role chunks and empty chunks are held. At most 64 KiB, and for
    /// 30 s and 500 ms a 1 000 tokens, at most 120 s. For event streams, and for whatever a layer below reads; other bodies
    /// pass.
    pub fn until_content() -> Self {
        let (base, per_1k_tokens) = (Duration::from_secs(30), Duration::from_millis(500));
        let time = Limit::by_size(base, per_1k_tokens).at_most(Duration::from_secs(120));
        Self { goal: Goal::FirstContent, bytes: PREAMBLE_BYTES, time }
    }

    /// To its end, or to as many bytes. There is no limit of time but what the deadline and the timeouts below set.
    pub fn whole(bytes: usize) -> Self {
        Self { goal: Goal::End, bytes, time: Limit::fixed(Duration::MAX) }
    }

    /// At most so many bytes. Each frame counts 64 more than its data.
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// At most as long, from when the attempt was sent.
    pub fn within(mut self, time: impl Into<Limit>) -> Self {
        self.time = time.into();
        self
    }
}

impl<S> Layer<S> for HoldLayer {
    type Service = Holding<S>;

    fn layer(&self, inner: S) -> Holding<S> {
        Holding { inner, hold: *self }
    }
}

/// A service whose good responses are held back: see [`HoldLayer`].
#[derive(Clone, Copy, Debug)]
pub struct Holding<S> {
    inner: S,
    hold: HoldLayer,
}

impl<S, Req> Service<Req> for Holding<S>
where
    S: Service<Req, Response: HttpResponse>,
    Req: Describe,
{
    type Response = Response<CommitBody<<S::Response as HttpResponse>::Body>>;
    type Error = S::Error;
    type Future = HoldFuture<S::Future, <S::Response as HttpResponse>::Body>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let HoldLayer { goal, bytes, time } = self.hold;
        let settings = Settings { goal, bytes, time: time.of(request.call()) };
        let state = State::Calling { future: self.inner.call(request) };
        HoldFuture { state, settings, sent: None }
    }
}

/// The settings for one call.
#[derive(Clone, Copy, Debug)]
struct Settings {
    goal: Goal,
    bytes: usize,
    time: Duration,
}

pin_project! {
    /// The response of a [`Holding`]. Dropping it drops the attempt, and what is held of its response.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct HoldFuture<F, B: http_body::Body> {
        #[pin]
        state: State<F, B>,
        settings: Settings,
        // When the inner service was first found to take time.
        sent: Option<Instant>,
    }
}

pin_project! {
    #[project = StateProj]
    #[project_replace = StateOwned]
    #[derive(Debug)]
    enum State<F, B: http_body::Body> {
        Calling { #[pin] future: F },
        Holding { held: Hold<B> },
        Done,
    }
}

impl<F, R, E> Future for HoldFuture<F, R::Body>
where
    F: Future<Output = Result<R, E>>,
    R: HttpResponse,
{
    type Output = Result<Response<CommitBody<R::Body>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // ## Calling => (Holding | Done)
        if let StateProj::Calling { future } = this.state.as_mut().project() {
            let Poll::Ready(output) = future.poll(cx) else {
                this.sent.get_or_insert_with(time::now);
                return Poll::Pending;
            };
            // The inner future goes before what it answered is looked at.
            this.state.set(State::Done);
            let response = match output {
                Ok(response) => response.into_http(),
                Err(error) => return Poll::Ready(Err(error)),
            };
            match held_back(response, *this.settings, *this.sent) {
                Ok(held) => this.state.set(State::Holding { held }),
                Err(response) => return Poll::Ready(Ok(response.map(CommitBody::passing))),
            }
        }
        // ## Holding => Done: the body, or a timer, registers the waker.
        let StateProj::Holding { held } = this.state.as_mut().project() else {
            panic!("`HoldFuture` polled after it was done");
        };
        let reached = ready!(held.poll(cx));
        let StateOwned::Holding { held } = this.state.as_mut().project_replace(State::Done) else {
            unreachable!("the state was Holding a line ago");
        };
        let mut response = held.into_response();
        if let Held::Failed(verdict) = reached {
            tell(&mut response, verdict, *this.sent);
        }
        Poll::Ready(Ok(response))
    }
}

/// Holds a good response back, where that can bring anything.
fn held_back<B: http_body::Body<Data = bytes::Bytes>>(
    response: Response<B>,
    settings: Settings,
    sent: Option<Instant>,
) -> Result<Hold<B>, Response<B>> {
    let read = Outcome::of(&response).map(|outcome| (outcome.sent(), outcome.verdict()));
    let verdict = read.and_then(|(_, verdict)| verdict);
    if !verdict.unwrap_or_else(|| Verdict::of_status(response.status())).is_success() {
        return Err(response);
    }
    let until = (settings.time < Duration::MAX).then(|| {
        let sent = read.map(|(sent, _)| sent).or(sent).unwrap_or_else(time::now);
        time::checked_add(sent, settings.time)
    });
    Hold::new(response, settings.goal, Bounds { bytes: settings.bytes, until: until.flatten() })
}

/// Writes down that the response has failed, though its head was good.
fn tell<B>(response: &mut Response<B>, verdict: Verdict, sent: Option<Instant>) {
    if let Some(outcome) = Outcome::of(response) {
        outcome.set_verdict(verdict);
        return;
    }
    let outcome = Outcome::new(sent.unwrap_or_else(time::now));
    outcome.set_verdict(verdict);
    response.extensions_mut().insert(Arc::new(outcome));
}
