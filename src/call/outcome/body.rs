//! The body of a response that is read while it passes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::tap::Tap;
use crate::call::ahead::ReadAhead;

pin_project! {
    /// Passes the frames of a response on as they are: those that were read ahead of an error, then the rest.
    pub struct OutcomeBody<B: Body> {
        #[pin]
        frames: ReadAhead<B>,
        // Boxed, so that a body which nobody reads any more is small.
        tap: Option<Box<Tap>>,
    }
}

impl<B: Body> OutcomeBody<B> {
    /// Passes everything on, unread.
    pub(super) fn passing(frames: ReadAhead<B>) -> Self {
        Self { frames, tap: None }
    }

    /// Reads what passes.
    pub(super) fn tapped(frames: ReadAhead<B>, tap: Tap) -> Self {
        Self { frames, tap: Some(Box::new(tap)) }
    }
}

/// An empty body.
impl<B: Body> Default for OutcomeBody<B> {
    fn default() -> Self {
        Self::passing(ReadAhead::default())
    }
}

impl<B> Body for OutcomeBody<B>
where
    B: Body<Data = Bytes>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let mut body = this.frames;
        let frame = ready!(body.as_mut().poll_frame(cx));
        let Some(tap) = this.tap else { return Poll::Ready(frame) };
        match &frame {
            None => tap.end(),
            Some(Err(_)) => tap.broken(),
            Some(Ok(frame)) => {
                match (frame.data_ref(), frame.trailers_ref()) {
                    (Some(data), _) => tap.data(data),
                    (None, Some(trailers)) => tap.trailers(trailers),
                    (None, None) => {}
                }
                // Whoever reads this may stop here: trailers end every body, and a known length says where it ends,
                // unless trailers must follow.
                let last = || body.size_hint().exact() == Some(0) && !tap.wants_trailers();
                if frame.is_trailers() || body.is_end_stream() || last() {
                    tap.end();
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.frames.size_hint()
    }
}

impl<B: Body> fmt::Debug for OutcomeBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeBody")
            .field("read_ahead", &self.frames.len())
            .field("tapped", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}
