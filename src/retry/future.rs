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
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, S> {
        Calling { #[pin] future: F },
        // Nothing of the inner service, and nothing of the failed response, is held meanwhile.
        Waiting { #[pin] sleep: Sleep },
        Awaiting { ready: Waiting },
        Readying { inner: S },
        Done,
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
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                // ## Calling => (Waiting | Awaiting | Readying | Done)
                StateProj::Calling { future } => {
                    let Poll::Ready(output) = future.poll(cx) else {
                        this.run.pending();
                        return Poll::Pending;
                    };
                    // The inner future goes before what it answered is judged, and so before any wait.
                    this.state.set(State::Done);
                    match P::judge(&this.shared.rules, this.run, output) {
                        Next::Done(output) => return Poll::Ready(output),
                        Next::Again(When::At(at)) => {
                            this.state.set(State::Waiting { sleep: tokio::time::sleep_until(at) });
                        }
                        Next::Again(When::Ready(ready)) => this.state.set(State::Awaiting { ready }),
                        Next::Again(When::Now) => {
                            this.state.set(State::Readying { inner: this.shared.fresh() });
                            // A service that always fails at once must not keep the task from yielding.
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                    }
                }
                // ## Waiting => Readying: the timer registers the waker.
                StateProj::Waiting { sleep } => {
                    ready!(sleep.poll(cx));
                    this.state.set(State::Readying { inner: this.shared.fresh() });
                }
                // ## Awaiting => Readying: what is awaited registers the waker.
                StateProj::Awaiting { ready } => {
                    ready!(ready.as_mut().poll(cx));
                    this.state.set(State::Readying { inner: this.shared.fresh() });
                }
                // ## Readying => (Calling | Done): the inner service registers the waker.
                StateProj::Readying { inner } => {
                    if let Err(error) = ready!(P::poll_ready(inner, cx)) {
                        this.state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    let StateOwned::Readying { mut inner } = this.state.as_mut().project_replace(State::Done)
                    else {
                        unreachable!("the state was Readying a line ago");
                    };
                    let request = P::next(&this.shared.rules, this.run);
                    let request = request.expect("a copy was kept, or no other attempt was decided");
                    this.state.set(State::Calling { future: P::call(&mut inner, request) });
                }
                StateProj::Done => panic!("`ResponseFuture` polled after it was done"),
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
            State::Waiting { .. } | State::Awaiting { .. } => "waiting",
            State::Readying { .. } => "readying",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("attempt", &self.run.number())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
