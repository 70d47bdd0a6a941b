//! A call on its way through its attempts.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::judge::{Next, PolicyFor, Run, When};
use super::layer::Shared;
use super::policy::Waiting;

pin_project! {
    /// The response of a [`Retry`](super::Retry). Dropping it at any point ends the call: no attempt and no timer goes on.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<P, S, Req>
    where
        P: PolicyFor<S, Req>,
    {
        // Declared, and so dropped, before the rest.
        #[pin]
        state: State<P::Future, S>,
        run: Run<Req>,
        shared: Arc<Shared<P, S>>,
    }
}

pin_project! {
    // Its drop is so small that it is inlined: what few calls see lies behind one variant.
    #[project = StateProj]
    enum State<F, S> {
        Calling { #[pin] future: F },
        Between { #[pin] between: Between<S> },
        Done,
    }
}

pin_project! {
    // Between two attempts. Nothing of the inner service, and nothing of the failed response, is held meanwhile.
    #[project = BetweenProj]
    #[project_replace = BetweenOwned]
    enum Between<S> {
        Waiting { #[pin] sleep: Sleep },
        Awaiting { ready: Waiting },
        Readying { inner: S },
        Over,
    }
}

impl<P, S, Req> ResponseFuture<P, S, Req>
where
    P: PolicyFor<S, Req>,
{
    #[inline]
    pub(super) fn new(future: P::Future, shared: Arc<Shared<P, S>>, run: Run<Req>) -> Self {
        Self { state: State::Calling { future }, run, shared }
    }
}

impl<P, S, Req> Future for ResponseFuture<P, S, Req>
where
    S: Clone,
    P: PolicyFor<S, Req>,
{
    type Output = Result<P::Response, P::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        loop {
            match this.state.as_mut().project() {
                // ## Calling => (Between | Done)
                StateProj::Calling { future } => {
                    let Poll::Ready(output) = future.poll(cx) else {
                        this.run.pending();
                        return Poll::Pending;
                    };
                    // The inner future goes before what it answered is judged, and so before any wait.
                    this.state.set(State::Done);
                    let verdict = P::verdict(&this.shared.rules, &output);
                    if P::is_answer(&this.shared.rules, this.run, verdict) {
                        return Poll::Ready(P::answer(output));
                    }
                    // Moved to where it can be changed: so that an answer, which nobody changes, need not lie in memory.
                    let mut judged = output;
                    let Next::Again(when) = P::judge(&this.shared.rules, this.run, verdict, &mut judged)
                    else {
                        return Poll::Ready(P::answer(judged));
                    };
                    drop(judged);
                    let between = match when {
                        When::At(at) => Between::Waiting { sleep: tokio::time::sleep_until(at) },
                        When::Ready(ready) => Between::Awaiting { ready },
                        When::Now => Between::Readying { inner: this.shared.fresh() },
                    };
                    let at_once = matches!(between, Between::Readying { .. });
                    this.state.set(State::Between { between });
                    if at_once {
                        // A service that always fails at once must not keep the task from yielding.
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                // ## Between => (Calling | Done)
                StateProj::Between { .. } => {
                    if let Err(error) = ready!(self.as_mut().poll_between(cx)) {
                        return Poll::Ready(Err(error));
                    }
                    this = self.as_mut().project();
                }
                StateProj::Done => panic!("`ResponseFuture` polled after it was done"),
            }
        }
    }
}

impl<P, S, Req> ResponseFuture<P, S, Req>
where
    S: Clone,
    P: PolicyFor<S, Req>,
{
    /// From a failed attempt to the call of the next one.
    #[inline(never)]
    fn poll_between(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), P::Error>> {
        let mut this = self.project();
        loop {
            let StateProj::Between { mut between } = this.state.as_mut().project() else {
                return Poll::Ready(Ok(()));
            };
            match between.as_mut().project() {
                // ## Waiting => Readying: the timer registers the waker.
                BetweenProj::Waiting { sleep } => {
                    ready!(sleep.poll(cx));
                    between.set(Between::Readying { inner: this.shared.fresh() });
                }
                // ## Awaiting => Readying: what is awaited registers the waker.
                BetweenProj::Awaiting { ready } => {
                    ready!(ready.as_mut().poll(cx));
                    between.set(Between::Readying { inner: this.shared.fresh() });
                }
                // ## Readying => (Calling | Done): the inner service registers the waker.
                BetweenProj::Readying { inner } => {
                    if let Err(error) = ready!(P::poll_ready(inner, cx)) {
                        this.state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    let BetweenOwned::Readying { mut inner } = between.project_replace(Between::Over) else {
                        unreachable!("the state was Readying a line ago");
                    };
                    let request = P::next(&this.shared.rules, this.run);
                    let request = request.expect("a copy was kept, or no other attempt was decided");
                    this.state.set(State::Calling { future: P::call(&mut inner, request) });
                }
                BetweenProj::Over => panic!("`ResponseFuture` polled after a panic"),
            }
        }
    }
}

impl<P, S: Clone> Shared<P, S> {
    /// A clone of the inner service that was never polled.
    #[cold]
    fn fresh(&self) -> S {
        self.template.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<P, S, Req> fmt::Debug for ResponseFuture<P, S, Req>
where
    P: PolicyFor<S, Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { .. } => "calling",
            State::Between { between: Between::Readying { .. } } => "readying",
            State::Between { .. } => "waiting",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("attempt", &self.run.number())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
