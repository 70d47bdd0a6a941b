//! A body of which some frames were read ahead: those come first, then the rest.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// Frames as they came from a body, the last of which may be its error.
pub(super) type Frames<E> = VecDeque<Result<Frame<Bytes>, E>>;

pin_project! {
    /// What was read ahead of a body, then the rest of it as it comes.
    pub(super) struct ReadAhead<B: Body> {
        frames: Frames<B::Error>,
        #[pin]
        rest: Rest<B>,
    }
}

pin_project! {
    #[project = RestProj]
    enum Rest<B> {
        Inline { #[pin] body: B },
        // It was pinned while its first frames were read.
        Boxed { body: Pin<Box<B>> },
        Nothing,
    }
}

impl<B: Body> ReadAhead<B> {
    /// Nothing was read.
    pub(super) fn none(body: B) -> Self {
        Self { frames: VecDeque::new(), rest: Rest::Inline { body } }
    }

    /// These frames were read, and this is left if they are not all.
    pub(super) fn new(frames: Frames<B::Error>, rest: Option<Pin<Box<B>>>) -> Self {
        Self { frames, rest: rest.map_or(Rest::Nothing, |body| Rest::Boxed { body }) }
    }

    /// How many frames are still to be passed on before the rest.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }
}

/// Nothing at all.
impl<B: Body> Default for ReadAhead<B> {
    fn default() -> Self {
        Self::new(VecDeque::new(), None)
    }
}

impl<B> Rest<B> {
    fn get(&self) -> Option<&B> {
        match self {
            Self::Inline { body } => Some(body),
            Self::Boxed { body } => Some(body),
            Self::Nothing => None,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for ReadAhead<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(frame) = this.frames.pop_front() {
            return Poll::Ready(Some(frame));
        }
        match this.rest.project() {
            RestProj::Inline { body } => body.poll_frame(cx),
            RestProj::Boxed { body } => body.as_mut().poll_frame(cx),
            RestProj::Nothing => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.rest.get().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead: u64 = self.frames.iter().flatten().map(length).sum();
        let rest = self.rest.get().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(ahead));
        // An exact size would end the body before trailers, or an error, that are still to come.
        let data_only = self.frames.iter().all(|frame| frame.as_ref().is_ok_and(Frame::is_data));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(ahead)).filter(|_| data_only) {
            hint.set_upper(upper);
        }
        hint
    }
}

/// Bytes of data in a frame.
pub(super) fn length(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}
