//! The body of a response that is read while it passes.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::tap::Tap;

pin_project! {
    /// Passes the frames of a response on as they are: those that were read ahead of an error, then the rest.
    pub struct OutcomeBody<B: Body> {
        ahead: VecDeque<Result<Frame<Bytes>, B::Error>>,
        #[pin]
        rest: Rest<B>,
        // Boxed, so that a body which nobody reads any more is small.
        tap: Option<Box<Tap>>,
    }
}

pin_project! {
    #[project = RestProj]
    enum Rest<B> {
        Inline { #[pin] body: B },
        // What is left of an error body: it was pinned while the rest of it was read.
        Boxed { body: Pin<Box<B>> },
        Nothing,
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

    fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut B>> {
        match self.project() {
            RestProj::Inline { body } => Some(body),
            RestProj::Boxed { body } => Some(body.as_mut()),
            RestProj::Nothing => None,
        }
    }
}

impl<B: Body> OutcomeBody<B> {
    /// Passes everything on, unread.
    pub(super) fn passing(body: B) -> Self {
        Self { ahead: VecDeque::new(), rest: Rest::Inline { body }, tap: None }
    }

    /// Reads what passes.
    pub(super) fn tapped(body: B, tap: Tap) -> Self {
        Self { ahead: VecDeque::new(), rest: Rest::Inline { body }, tap: Some(Box::new(tap)) }
    }

    /// What was read ahead, and what is left if it was not all.
    pub(super) fn read_ahead(
        ahead: VecDeque<Result<Frame<Bytes>, B::Error>>,
        rest: Option<Pin<Box<B>>>,
    ) -> Self {
        let rest = rest.map_or(Rest::Nothing, |body| Rest::Boxed { body });
        Self { ahead, rest, tap: None }
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
        if let Some(frame) = this.ahead.pop_front() {
            return Poll::Ready(Some(frame));
        }
        let Some(mut body) = this.rest.get_pin_mut() else { return Poll::Ready(None) };
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
        self.ahead.is_empty() && self.rest.get().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead: u64 = self.ahead.iter().map(|frame| frame.as_ref().ok().map_or(0, length)).sum();
        let mut hint = SizeHint::new();
        let Some(rest) = self.rest.get() else {
            // An exact size would end the body before trailers, or an error, that are still to come.
            let data_only = self.ahead.iter().all(|frame| frame.as_ref().is_ok_and(Frame::is_data));
            if data_only {
                return SizeHint::with_exact(ahead);
            }
            hint.set_lower(ahead);
            return hint;
        };
        let rest = rest.size_hint();
        hint.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(ahead)) {
            hint.set_upper(upper);
        }
        hint
    }
}

/// Bytes of data in a frame.
pub(super) fn length(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}

impl<B: Body> fmt::Debug for OutcomeBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeBody")
            .field("read_ahead", &self.ahead.len())
            .field("tapped", &self.tap.is_some())
            .finish_non_exhaustive()
    }
}
