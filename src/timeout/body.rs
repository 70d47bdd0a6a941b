//! A body that ends with an error when it is silent for too long.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use super::clocks::Stage;
use super::mode::Watch;
use crate::call::Outcome;
use crate::gate::{Content, ContentProj};
use crate::refusal::{BoxError, Phase};
use crate::time;

pin_project! {
    /// Passes frames on unchanged, and watches the clocks of what is still to come.
    ///
    /// Its error is boxed, since a body's own error type seldom can carry a refusal;
    /// [`refusal::find`](crate::refusal::find) and [`Failure`](crate::Failure) find it again.
    pub struct TimeoutBody<B> {
        #[pin]
        content: Content<B>,
        guard: Option<Guard>,
    }
}

/// The clocks of a body, and how far it has come.
struct Guard {
    watch: Watch,
    stage: Stage,
    outcome: Option<Arc<Outcome>>,
    phase: Phase,
    // Boxed, so that the body stays movable; made when the body is first pending.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> TimeoutBody<B> {
    pub(super) fn watched(body: B, watch: Watch, outcome: Option<Arc<Outcome>>) -> Self {
        let guard = watch.clocks.watch_body().then(|| Guard {
            watch,
            stage: Stage::Begun { silent_since: None },
            outcome,
            phase: Phase::Idle,
            timer: None,
        });
        Self { content: Content::Inner { body }, guard }
    }

    pub(super) fn text(text: Bytes) -> Self {
        Self { content: Content::text(text), guard: None }
    }
}

/// An empty body that nothing watches.
impl<B> Default for TimeoutBody<B> {
    fn default() -> Self {
        Self::text(Bytes::new())
    }
}

impl Guard {
    /// A frame has come: the silence is over.
    fn frame(&mut self, has_data: bool) {
        let content = match (&self.outcome, self.stage) {
            (_, Stage::Flowing { .. }) => true,
            (Some(outcome), _) => outcome.to_content().is_some(),
            (None, _) => has_data,
        };
        self.stage =
            if content { Stage::Flowing { silent_since: None } } else { Stage::Begun { silent_since: None } };
    }

    /// Nothing has come. Says whether that has lasted too long.
    fn pending(&mut self, cx: &mut Context<'_>) -> bool {
        let (Stage::Begun { silent_since } | Stage::Flowing { silent_since }) = &mut self.stage else {
            return false;
        };
        if silent_since.is_none() {
            *silent_since = Some(time::now());
            let Some((at, phase)) = self.watch.clocks.next(self.stage) else { return false };
            self.phase = phase;
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(at),
                None => self.timer = Some(Box::pin(sleep_until(at))),
            }
        }
        self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
    }
}

impl<B> Body for TimeoutBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        let body = match this.content.as_mut().project() {
            ContentProj::Text { text } => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            ContentProj::Inner { body } => body,
        };
        match (body.poll_frame(cx), &mut *this.guard) {
            (Poll::Ready(Some(Ok(frame))), guard) => {
                if let Some(guard) = guard {
                    guard.frame(frame.data_ref().is_some_and(|data| !data.is_empty()));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            (Poll::Ready(end), guard) => {
                *guard = None;
                Poll::Ready(end.map(|frame| frame.map_err(Into::into)))
            }
            (Poll::Pending, None) => Poll::Pending,
            (Poll::Pending, Some(guard)) => {
                if !guard.pending(cx) {
                    return Poll::Pending;
                }
                let refusal = guard.watch.settings.refusal(guard.phase);
                if let Some(outcome) = &guard.outcome {
                    outcome.set_verdict(refusal.verdict());
                }
                *this.guard = None;
                // What is too late is dropped at once; after the error the body is over.
                this.content.set(Content::over());
                Poll::Ready(Some(Err(refusal.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

impl<B> fmt::Debug for TimeoutBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutBody").field("watched", &self.guard.is_some()).finish_non_exhaustive()
    }
}
