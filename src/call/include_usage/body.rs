//! A body from which one event is left out.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::hide::Hider;

pin_project! {
    /// Passes frames on as they are, except that of an edited call one event is left out.
    pub struct IncludeUsageBody<B: Body> {
        #[pin]
        body: B,
        hider: Option<Hider>,
        // What comes after the last of the bytes that were held back.
        last: Option<Result<Frame<Bytes>, B::Error>>,
    }
}

impl<B: Body> IncludeUsageBody<B> {
    pub(super) fn passing(body: B) -> Self {
        Self { body, hider: None, last: None }
    }

    pub(super) fn hiding(body: B) -> Self {
        Self { body, hider: Some(Hider::default()), last: None }
    }
}

impl<B: Body<Data = Bytes>> Body for IncludeUsageBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        if let Some(last) = this.last.take() {
            return Poll::Ready(Some(last));
        }
        loop {
            let frame = ready!(this.body.as_mut().poll_frame(cx));
            let Some(hider) = this.hider else { return Poll::Ready(frame) };
            match frame {
                Some(Ok(frame)) if frame.is_data() => {
                    let data = frame.into_data().unwrap_or_default();
                    // A frame without bytes is passed on like any other.
                    let out = hider.feed(&data);
                    if hider.is_done() {
                        *this.hider = None;
                    }
                    if !out.is_empty() || data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(out))));
                    }
                }
                // The stream is over, or broken: what was held back is no event of ours.
                last => {
                    let held = hider.finish();
                    *this.hider = None;
                    if held.is_empty() {
                        return Poll::Ready(last);
                    }
                    *this.last = last;
                    return Poll::Ready(Some(Ok(Frame::data(held))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.hider.as_ref().is_none_or(|h| h.held() == 0) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let Some(hider) = &self.hider else { return self.body.size_hint() };
        let mut hint = SizeHint::new();
        if let Some(upper) = self.body.size_hint().upper() {
            hint.set_upper(upper.saturating_add(hider.held() as u64));
        }
        hint
    }
}

impl<B: Body> fmt::Debug for IncludeUsageBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncludeUsageBody").field("hides", &self.hider.is_some()).finish_non_exhaustive()
    }
}
