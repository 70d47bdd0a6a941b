//! The future: the inner call, or what is said when it takes too long.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use super::clocks::{Clocks, Stage};
use super::layer::Settings;
use super::mode::{Ends, Watch};
use crate::refusal::{Phase, Refusal};

pin_project! {
    /// The response of a service that is limited in time.
    #[must_use = "futures do nothing unless polled"]
    pub struct TimeoutFuture<S, M, Req>
    where
        M: Ends<S, Req>,
    {
        note: Option<M::Note>,
        #[pin]
        state: State<M::Future>,
        #[pin]
        timer: Option<Sleep>,
        phase: Phase,
        clocks: Clocks,
        settings: Option<Arc<Settings>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Running { #[pin] future: F },
        Refused { refusal: Option<Refusal> },
    }
}

impl<S, M, Req> TimeoutFuture<S, M, Req>
where
    M: Ends<S, Req>,
{
    pub(super) fn running(note: M::Note, future: M::Future, clocks: Clocks, settings: Arc<Settings>) -> Self {
        let next = clocks.next(Stage::Waiting);
        Self {
            note: Some(note),
            state: State::Running { future },
            // Made here, registered only when it is first polled: an answer at once costs no timer.
            timer: next.map(|(at, _)| sleep_until(at)),
            phase: next.map_or(Phase::Total, |(_, phase)| phase),
            clocks,
            settings: Some(settings),
        }
    }

    pub(super) fn refused(note: M::Note, refusal: Refusal) -> Self {
        Self {
            note: Some(note),
            state: State::Refused { refusal: Some(refusal) },
            timer: None,
            phase: Phase::Total,
            clocks: Clocks::default(),
            settings: None,
        }
    }
}

impl<S, M, Req> Future for TimeoutFuture<S, M, Req>
where
    M: Ends<S, Req>,
{
    type Output = Result<M::Response, M::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        const ONCE: &str = "a future answers once";
        let mut this = self.project();
        let refusal = match this.state.as_mut().project() {
            StateProj::Refused { refusal } => refusal.take().expect(ONCE),
            StateProj::Running { future } => {
                if let Poll::Ready(output) = future.poll(cx) {
                    let watch = Watch { clocks: *this.clocks, settings: this.settings.take().expect(ONCE) };
                    this.state.set(State::Refused { refusal: None });
                    return Poll::Ready(M::finish(this.note.take().expect(ONCE), output, watch));
                }
                let timer = this.timer.as_pin_mut();
                if timer.is_none_or(|timer| timer.poll(cx).is_pending()) {
                    return Poll::Pending;
                }
                // The inner call is dropped at once, and its connection with it.
                this.state.set(State::Refused { refusal: None });
                this.settings.take().expect(ONCE).refusal(*this.phase)
            }
        };
        Poll::Ready(M::refuse(this.note.take().expect(ONCE), refusal))
    }
}

impl<S, M, Req> fmt::Debug for TimeoutFuture<S, M, Req>
where
    M: Ends<S, Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutFuture").field("phase", &self.phase).finish_non_exhaustive()
    }
}
