//! A body to which something happens on its way.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use super::inject::{Change, Injected, What};
use crate::gate::{Content, ContentProj};
use crate::refusal::BoxError;
use crate::time;

pin_project! {
    /// Passes frames on unchanged up to its fault, if it has one.
    ///
    /// Its error is boxed: the inner body's own, or the [`io::Error`] of a cut.
    pub struct FaultBody<B> {
        #[pin]
        content: Content<B>,
        // Boxed, so that a body without a fault is no larger for it.
        due: Option<Box<Due>>,
    }
}

/// A fault that is still to come, and what is held until it has.
struct Due {
    /// Bytes still to pass before it.
    left: u64,
    what: What,
    /// Whether what has passed ends with the end of a line: a further one ends an event.
    line_over: bool,
    /// The fault is next.
    now: bool,
    /// What of the inner body comes after it.
    held: Option<Frame<Bytes>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> FaultBody<B> {
    pub(super) fn passing(body: B) -> Self {
        Self { content: Content::Inner { body }, due: None }
    }

    pub(super) fn changed(body: B, change: Change) -> Self {
        let due = Due {
            left: change.after,
            what: change.what,
            line_over: true,
            now: change.after == 0,
            held: None,
            timer: None,
        };
        Self { content: Content::Inner { body }, due: Some(Box::new(due)) }
    }

    pub(super) fn text(text: Bytes) -> Self {
        Self { content: Content::text(text), due: None }
    }
}

/// An empty body, without a fault.
impl<B> Default for FaultBody<B> {
    fn default() -> Self {
        Self::text(Bytes::new())
    }
}

/// What a fault comes to.
enum Happens {
    NotYet,
    Then(Bytes),
    Error,
    Over,
}

impl Due {
    /// How much of this data passes before the fault, if it is within it or right behind it.
    fn within(&mut self, data: &[u8]) -> Option<usize> {
        if !matches!(self.what, What::Event(_)) {
            let length = data.len() as u64;
            let at = usize::try_from(self.left).ok().filter(|_| self.left <= length);
            self.left = self.left.saturating_sub(length);
            return at;
        }
        for (at, byte) in data.iter().enumerate() {
            self.left = self.left.saturating_sub(1);
            match byte {
                b'\n' if self.line_over && self.left == 0 => return Some(at + 1),
                b'\n' => self.line_over = true,
                b'\r' => {}
                _ => self.line_over = false,
            }
        }
        None
    }

    /// Takes a frame of the inner body; what of it passes at once.
    fn frame(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let mut data = match frame.into_data() {
            Ok(data) => data,
            // Trailers are the end.
            Err(trailers) => {
                (self.now, self.held) = (true, Some(trailers));
                return None;
            }
        };
        let Some(at) = self.within(&data) else { return Some(Frame::data(data)) };
        self.now = true;
        let before = data.split_to(at);
        self.held = Some(data).filter(|rest| !rest.is_empty()).map(Frame::data);
        Some(before).filter(|before| !before.is_empty()).map(Frame::data)
    }

    fn happen(&mut self, cx: &mut Context<'_>) -> Happens {
        match &mut self.what {
            What::Cut => Happens::Error,
            What::Event(event) => Happens::Then(std::mem::take(event)),
            What::Stall(None) => Happens::NotYet,
            What::Stall(Some(silence)) => {
                if self.timer.is_none() {
                    let Some(at) = time::checked_add(time::now(), *silence) else { return Happens::NotYet };
                    self.timer = Some(Box::pin(sleep_until(at)));
                }
                let timer = self.timer.as_mut().is_none_or(|timer| timer.as_mut().poll(cx).is_ready());
                if timer { Happens::Over } else { Happens::NotYet }
            }
        }
    }
}

impl<B> Body for FaultBody<B>
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
        loop {
            if let Some(due) = this.due.as_mut().filter(|due| due.now) {
                match due.happen(cx) {
                    Happens::NotYet => return Poll::Pending,
                    Happens::Error => {
                        *this.due = None;
                        this.content.set(Content::over());
                        let error = Injected::error(io::ErrorKind::UnexpectedEof);
                        return Poll::Ready(Some(Err(error.into())));
                    }
                    Happens::Then(event) => {
                        *this.due = None;
                        this.content.set(Content::text(event));
                    }
                    Happens::Over => {
                        if let Some(frame) = this.due.take().and_then(|due| due.held) {
                            return Poll::Ready(Some(Ok(frame)));
                        }
                    }
                }
            }
            let body = match this.content.as_mut().project() {
                ContentProj::Text { text } => {
                    return Poll::Ready(text.take().map(|text| Ok(Frame::data(text))));
                }
                ContentProj::Inner { body } => body,
            };
            let polled = match body.poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(polled) => polled.map(|frame| frame.map_err(Into::into)),
            };
            match (this.due.as_mut(), polled) {
                (None, polled) => return Poll::Ready(polled),
                (Some(due), Some(Ok(frame))) => {
                    if let Some(frame) = due.frame(frame) {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
                (Some(_), Some(Err(error))) => {
                    *this.due = None;
                    return Poll::Ready(Some(Err(error)));
                }
                // It is shorter: the fault comes in place of its end.
                (Some(due), None) => {
                    due.now = true;
                    this.content.set(Content::over());
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.due.is_none() && self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.due.is_some() { SizeHint::default() } else { self.content.size_hint() }
    }
}

impl<B> fmt::Debug for FaultBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultBody").field("fault_to_come", &self.due.is_some()).finish_non_exhaustive()
    }
}
