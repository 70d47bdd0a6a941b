//! Goes on reading what a caller has left, to learn what it used.

use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Response;
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Outcome;
use crate::cost_guard::cut::CutStreamsLayer;
use crate::cost_guard::layer::CostGuardLayer;

impl<G, M> CostGuardLayer<G, M> {
    /// Where a caller leaves, the call goes on in the background, so that it is charged what the upstream says was used and
    /// not what was reserved: at most so many calls at once, each for so long at most. Those beyond are dropped and charged by the
    /// [rule](crate::cost_guard::Unreported), as without this.
    ///
    /// For upstreams that go on, and bill, whether or not somebody reads. The layers *below* the guard (token bucket,
    /// bulkhead) keep their permits meanwhile; those above see the caller leave at once. It costs two allocations a call,
    /// for the future and the body. Without a tokio runtime around the drop nothing is drained.
    pub fn drain(self, most: NonZeroUsize, longest: Duration) -> DrainLayer<Self> {
        DrainLayer::new(self, most, longest)
    }
}

impl<L> CutStreamsLayer<L> {
    /// As [`CostGuardLayer::drain`].
    pub fn drain(self, most: NonZeroUsize, longest: Duration) -> DrainLayer<Self> {
        DrainLayer::new(self, most, longest)
    }
}

/// A guard that reads on: see [`CostGuardLayer::drain`].
#[derive(Clone, Debug)]
pub struct DrainLayer<L> {
    guard: L,
    drains: Drains,
}

impl<L> DrainLayer<L> {
    fn new(guard: L, most: NonZeroUsize, longest: Duration) -> Self {
        let drains = Drains { running: Arc::new(AtomicUsize::new(0)), most: most.get(), longest };
        Self { guard, drains }
    }

    /// How many calls are read on now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.drains.running.load(Ordering::Relaxed)
    }
}

/// The calls that are read on; clones share their number.
#[derive(Clone, Debug)]
struct Drains {
    running: Arc<AtomicUsize>,
    most: usize,
    longest: Duration,
}

/// One of them.
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drains {
    fn begin(&self) -> Option<Running> {
        let below = |running: usize| (running < self.most).then_some(running + 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below).ok()?;
        Some(Running(self.running.clone()))
    }

    /// Has it read on, if there is room and a runtime; else it is dropped here.
    fn go_on(&self, work: impl Future<Output = ()> + Send + 'static) {
        let (Some(running), Ok(runtime)) = (self.begin(), Handle::try_current()) else { return };
        let longest = self.longest;
        runtime.spawn(async move {
            let _running = running;
            // What takes longer is dropped, and charged by the rule.
            let _ = tokio::time::timeout(longest, work).await;
        });
    }
}

async fn read_to_the_end<B: Body>(mut body: Pin<Box<B>>, outcome: Option<Arc<Outcome>>) {
    while !outcome.as_ref().is_some_and(|outcome| outcome.is_finished()) {
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(_)) if !body.is_end_stream() => {}
            _ => return,
        }
    }
}

impl<S, L: Layer<S>> Layer<S> for DrainLayer<L> {
    type Service = Drain<L::Service>;

    fn layer(&self, inner: S) -> Drain<L::Service> {
        Drain { inner: self.guard.layer(inner), drains: self.drains.clone() }
    }
}

/// The service of [`DrainLayer`].
#[derive(Clone, Debug)]
pub struct Drain<S> {
    inner: S,
    drains: Drains,
}

/// A response that can be read on in the background: an [`http::Response`]. Sealed.
pub trait Drainable: sealed::Sealed + Send + 'static {
    /// Its body.
    type Body: Body + Send + 'static;
    #[doc(hidden)]
    fn into_drained(self) -> Response<Self::Body>;
}

impl<B: Body + Send + 'static> Drainable for Response<B> {
    type Body = B;

    fn into_drained(self) -> Self {
        self
    }
}

impl<S, Req, F, R, E> Service<Req> for Drain<S>
where
    S: Service<Req, Future = F, Response = R, Error = E>,
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Drainable,
    E: Send + 'static,
{
    type Response = Response<DrainBody<R::Body>>;
    type Error = E;
    type Future = DrainFuture<F, R, E>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        DrainFuture {
            future: Some(Box::pin(self.inner.call(request))),
            polled: false,
            drains: self.drains.clone(),
        }
    }
}

/// The response of [`Drain`]. Once it has been polled, dropping it lets the call go on in the background.
#[must_use = "futures do nothing unless polled"]
pub struct DrainFuture<F, R, E>
where
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Drainable,
    E: Send + 'static,
{
    future: Option<Pin<Box<F>>>,
    /// A call that was never polled has sent nothing worth reading.
    polled: bool,
    drains: Drains,
}

impl<F, R, E> Future for DrainFuture<F, R, E>
where
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Drainable,
    E: Send + 'static,
{
    type Output = Result<Response<DrainBody<R::Body>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.polled = true;
        let future = this.future.as_mut().expect("a future is polled until it is done");
        let answer = ready!(future.as_mut().poll(cx));
        this.future = None;
        let drains = this.drains.clone();
        Poll::Ready(answer.map(|response| drained(response.into_drained(), drains)))
    }
}

impl<F, R, E> Drop for DrainFuture<F, R, E>
where
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Drainable,
    E: Send + 'static,
{
    fn drop(&mut self) {
        let Some(future) = self.future.take().filter(|_| self.polled && !std::thread::panicking()) else {
            return;
        };
        self.drains.go_on(async move {
            if let Ok(response) = future.await {
                let response = response.into_drained();
                let outcome = Outcome::of(&response).cloned();
                read_to_the_end(Box::pin(response.into_body()), outcome).await;
            }
        });
    }
}

fn drained<B: Body + Send + 'static>(response: Response<B>, drains: Drains) -> Response<DrainBody<B>> {
    let outcome = Outcome::of(&response).cloned();
    response.map(|body| DrainBody { body: Some(Box::pin(body)), over: false, outcome, drains })
}

/// Passes frames on unchanged. Dropping it before its end lets the rest be read in the background.
pub struct DrainBody<B: Body + Send + 'static> {
    body: Option<Pin<Box<B>>>,
    over: bool,
    outcome: Option<Arc<Outcome>>,
    drains: Drains,
}

impl<B: Body + Send + 'static> Body for DrainBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let frame = ready!(body.as_mut().poll_frame(cx));
        this.over |= !matches!(&frame, Some(Ok(frame)) if frame.is_data());
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl<B: Body + Send + 'static> Drop for DrainBody<B> {
    fn drop(&mut self) {
        let outcome = self.outcome.take();
        let over = self.over
            || self.is_end_stream()
            || outcome
                .as_ref()
                .is_some_and(|o| o.is_finished() || o.verdict().is_some_and(|v| !v.is_success()));
        let Some(body) = self.body.take().filter(|_| !over && !std::thread::panicking()) else { return };
        self.drains.go_on(read_to_the_end(body, outcome));
    }
}

impl<F, R, E> fmt::Debug for DrainFuture<F, R, E>
where
    F: Future<Output = Result<R, E>> + Send + 'static,
    R: Drainable,
    E: Send + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainFuture").finish_non_exhaustive()
    }
}

impl<B: Body + Send + 'static> fmt::Debug for DrainBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainBody").field("over", &self.over).finish_non_exhaustive()
    }
}

mod sealed {
    pub trait Sealed {}
    impl<B> Sealed for http::Response<B> {}
}
