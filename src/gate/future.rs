//! The one future of all gates.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::gate::{End, Gate, Held, Mode};
use crate::refusal::Refusal;

pin_project! {
    /// The response of a gated service. Dropping it at any point gives back what it holds.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, G, M, Req>
    where
        G: Gate<Req>,
        M: Mode<S, Req, G::Permit>,
    {
        note: Option<M::Note>,
        #[pin]
        state: State<S, Req, M, M::Future, G::Wait>,
        // Declared, and so dropped, after the inner future. Empty until the gate has admitted.
        held: Held<G::Permit>,
    }
}

pin_project! {
    // Its drop is so small that it is inlined: the states that few calls see lie behind one variant.
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<S, Req, M, F, W> {
        // The inner service is at work, or has answered.
        Calling { #[pin] running: Running<F> },
        Refused { refusal: Refusal },
        // The inner service is not called yet.
        Before { #[pin] before: Before<S, Req, M, W> },
        Done,
    }
}

pin_project! {
    /// The inner service's future, until it has answered.
    #[doc(hidden)]
    #[derive(Debug)]
    #[project = RunningProj]
    pub enum Running<F> {
        Inner { #[pin] future: F },
        Over,
    }
}

impl<F: Future> Running<F> {
    #[inline]
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project() {
            RunningProj::Inner { future } => future.poll(cx),
            RunningProj::Over => panic!("`ResponseFuture` polled after it was done"),
        }
    }

    /// Drops the future.
    #[inline]
    pub(crate) fn end(mut self: Pin<&mut Self>) {
        self.set(Self::Over);
    }
}

pin_project! {
    #[project = BeforeProj]
    #[project_replace = BeforeOwned]
    enum Before<S, Req, M, W> {
        // The gate said later. Nothing of the inner service is reserved meanwhile.
        Waiting { #[pin] wait: W, mode: M, inner: S, request: Req },
        // Admitted, and the inner service is asked whether it is ready.
        Readying { inner: S, request: Req, mode: M },
        Over,
    }
}

impl<S, G, M, Req> ResponseFuture<S, G, M, Req>
where
    G: Gate<Req>,
    M: Mode<S, Req, G::Permit>,
{
    #[inline]
    pub(super) fn calling(note: M::Note, future: M::Future, held: Held<G::Permit>) -> Self {
        let running = Running::Inner { future };
        Self { note: Some(note), state: State::Calling { running }, held }
    }

    pub(super) fn waiting(note: M::Note, mode: M, wait: G::Wait, inner: S, request: Req) -> Self {
        let before = Before::Waiting { wait, mode, inner, request };
        Self { note: Some(note), state: State::Before { before }, held: Held::none() }
    }

    pub(super) fn readying(note: M::Note, mode: M, inner: S, request: Req, held: Held<G::Permit>) -> Self {
        let before = Before::Readying { inner, request, mode };
        Self { note: Some(note), state: State::Before { before }, held }
    }

    #[inline]
    pub(super) fn refused(note: M::Note, refusal: Refusal) -> Self {
        Self { note: Some(note), state: State::Refused { refusal }, held: Held::none() }
    }
}

impl<S, G, M, Req> Future for ResponseFuture<S, G, M, Req>
where
    G: Gate<Req>,
    M: Mode<S, Req, G::Permit> + Copy,
{
    type Output = Result<M::Response, M::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        match this.state.as_mut().project() {
            // ## Calling => Calling: the inner future goes when it has answered.
            StateProj::Calling { running } => M::poll(running, cx, this.note, this.held),
            // ## Refused => Done
            StateProj::Refused { .. } => {
                let StateOwned::Refused { refusal } = this.state.as_mut().project_replace(State::Done) else {
                    unreachable!("the state was Refused a line ago");
                };
                Poll::Ready(M::refuse(take(this.note), refusal))
            }
            StateProj::Before { .. } => self.poll_before(cx),
            StateProj::Done => panic!("`ResponseFuture` polled after it was done"),
        }
    }
}

impl<S, G, M, Req> ResponseFuture<S, G, M, Req>
where
    G: Gate<Req>,
    M: Mode<S, Req, G::Permit> + Copy,
{
    /// The states of a call that was not admitted at once.
    #[inline(never)]
    fn poll_before(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<M::Response, M::Error>> {
        let mut this = self.as_mut().project();
        let StateProj::Before { mut before } = this.state.as_mut().project() else { return self.poll(cx) };
        match before.as_mut().project() {
            // ## Waiting => (Waiting | Readying | Done): the wait is what registers the waker.
            BeforeProj::Waiting { wait, .. } => {
                let waited = ready!(wait.poll(cx));
                // The moved parts leave; the wait, which is pinned, is dropped in place.
                let BeforeOwned::Waiting { mode, inner, request, .. } = before.project_replace(Before::Over)
                else {
                    unreachable!("the state was Waiting a line ago");
                };
                match waited {
                    Ok(permit) => {
                        *this.held = Held::new(permit);
                        let before = Before::Readying { inner, request, mode };
                        this.state.set(State::Before { before });
                        self.poll_before(cx)
                    }
                    Err(refusal) => {
                        this.state.set(State::Done);
                        Poll::Ready(M::refuse(take(this.note), refusal))
                    }
                }
            }
            // ## Readying => (Readying | Calling | Done): the inner service registers the waker.
            BeforeProj::Readying { inner, mode, .. } => {
                let held = this.held;
                let polled = held.running(End::Unsent, || mode.poll_ready(inner, cx));
                // Until it is called, leaving means that nothing was sent.
                held.not_sent();
                if let Err(error) = ready!(polled) {
                    held.settle(End::Unsent);
                    this.state.set(State::Done);
                    return Poll::Ready(Err(error));
                }
                let BeforeOwned::Readying { mut inner, request, mode } = before.project_replace(Before::Over)
                else {
                    unreachable!("the state was Readying a line ago");
                };
                let future = held.running(End::Failed, || mode.call(&mut inner, request));
                this.state.set(State::Calling { running: Running::Inner { future } });
                self.poll(cx)
            }
            BeforeProj::Over => panic!("`ResponseFuture` polled after a panic"),
        }
    }
}

#[inline]
pub(super) fn take<N>(note: &mut Option<N>) -> N {
    note.take().expect("a future answers once, and its note is taken only then")
}

impl<S, G, M, Req> fmt::Debug for ResponseFuture<S, G, M, Req>
where
    G: Gate<Req>,
    M: Mode<S, Req, G::Permit>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { running: Running::Over } | State::Done => "done",
            State::Calling { .. } => "calling",
            State::Before { before: Before::Waiting { .. } } => "waiting",
            State::Before { .. } => "readying",
            State::Refused { .. } => "refused",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
