//! How much of a response is held back, while another attempt may still replace it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{Response, response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use crate::call::ahead::{Frames, ReadAhead};
use crate::call::{Outcome, media};
use crate::provider::StreamReader;
use crate::time::Instant;
use crate::verdict::{Class, Verdict};

/// The point in a response after which no other attempt may replace it.
///
/// What comes before that point is held back, in order and byte for byte, and only as far as this says; from there on
/// frames pass as they come. After it an error is an error: the caller has seen a part of this answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Commit {
    /// The head: nothing is held back.
    Head,
    /// The first bytes that carry an answer. Pings, comments, role chunks and empty chunks are held; an error or an end
    /// before content is a failure.
    #[default]
    FirstContent,
    /// The end: the whole answer is held, so that one which is cut off is a failure too. One that is too large to be
    /// held commits when its limit is reached.
    End,
}

/// A frame without data is not free either: each counts so many bytes more than it carries.
const FRAME: usize = 64;

/// What a response is held back for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Its first content.
    FirstContent,
    /// Its end, good or bad.
    End,
    /// Its end, whatever it means: the response has failed, and is kept without what it holds elsewhere.
    Keep,
}

/// Why a response is no longer held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// What was waited for is there.
    Reached,
    /// As much is held as may be.
    Full,
    /// The time is over.
    Late,
    /// It has failed. Not for [`Goal::Keep`].
    Failed(Verdict),
}

/// How much may be held, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub(crate) bytes: usize,
    pub(crate) until: Option<Instant>,
}

/// A response that is held back. Dropping it drops the inner body and all that hangs on it.
pub struct Hold<B: Body> {
    head: response::Parts,
    rest: Option<Pin<Box<B>>>,
    frames: Frames<B::Error>,
    bytes: usize,
    bounds: Bounds,
    timer: Option<Pin<Box<Sleep>>>,
    goal: Goal,
    is_stream: bool,
    /// Where nobody below reads the response.
    reader: Option<Box<StreamReader>>,
    has_content: bool,
}

impl<B: Body<Data = Bytes>> Hold<B> {
    /// Holds this response back, or gives it back where nothing could be learned by that.
    pub(crate) fn new(response: Response<B>, goal: Goal, bounds: Bounds) -> Result<Self, Response<B>> {
        let read = Outcome::of(&response).is_some();
        let is_stream = media::of(response.headers()).is_some_and(media::is_event_stream);
        let is_plain = !response.headers().contains_key(CONTENT_ENCODING);
        let reader = is_stream && is_plain && !read && goal != Goal::Keep;
        if response.body().is_end_stream() || (goal == Goal::FirstContent && !read && !reader) {
            return Err(response);
        }
        let (head, body) = response.into_parts();
        Ok(Self {
            head,
            rest: Some(Box::pin(body)),
            frames: Frames::new(),
            bytes: 0,
            bounds,
            timer: None,
            goal,
            is_stream,
            reader: reader.then(Box::default),
            has_content: false,
        })
    }

    /// Ready when nothing more is to be held back. Asked again after that, it goes on holding.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Held> {
        while let Some(body) = &mut self.rest {
            match body.as_mut().poll_frame(cx) {
                Poll::Pending => {
                    return if self.is_late(cx) { Poll::Ready(Held::Late) } else { Poll::Pending };
                }
                Poll::Ready(None) => self.rest = None,
                Poll::Ready(Some(Err(error))) => {
                    self.frames.push_back(Err(error));
                    self.rest = None;
                    let verdict = self.failure().unwrap_or(Verdict::new(Class::Transient));
                    let failed = self.goal != Goal::Keep && !self.is_finished();
                    return Poll::Ready(if failed { Held::Failed(verdict) } else { Held::Reached });
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if frame.is_trailers() || body.is_end_stream() {
                        self.rest = None;
                    }
                    let length = frame.data_ref().map_or(0, Bytes::len);
                    self.bytes = self.bytes.saturating_add(length).saturating_add(FRAME);
                    self.read(&frame);
                    self.frames.push_back(Ok(frame));
                    if let Some(held) = self.looked_at() {
                        return Poll::Ready(held);
                    }
                }
            }
        }
        Poll::Ready(self.at_end())
    }

    /// The response: first what was held, then the rest as it comes.
    pub(crate) fn into_response(self) -> Response<CommitBody<B>> {
        Response::from_parts(self.head, CommitBody { frames: ReadAhead::new(self.frames, self.rest) })
    }

    /// Whether all of it is held, so that it holds nothing elsewhere.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.head.extensions.get()
    }

    fn read(&mut self, frame: &Frame<Bytes>) {
        if let (Some(reader), Some(data)) = (&mut self.reader, frame.data_ref()) {
            self.has_content |= reader.feed(data).has_content();
        }
    }

    /// The failure that the response has reported.
    fn failure(&self) -> Option<Verdict> {
        match &self.reader {
            Some(reader) => reader.failure(),
            None => self.outcome()?.verdict().filter(|verdict| !verdict.is_success()),
        }
    }

    fn has_content(&self) -> bool {
        self.has_content || self.outcome().is_some_and(|outcome| outcome.to_content().is_some())
    }

    /// Whether the answer is complete, though its body may not be.
    fn is_finished(&self) -> bool {
        match &self.reader {
            Some(reader) => reader.is_terminal(),
            None => self.outcome().is_some_and(|outcome| outcome.is_finished()),
        }
    }

    /// What is known after a frame.
    fn looked_at(&mut self) -> Option<Held> {
        if self.goal != Goal::Keep {
            // Nothing of it was passed on: an error in the same frame as the first content can still be got away from.
            if let Some(failure) = self.failure() {
                return Some(Held::Failed(failure));
            }
            if self.goal == Goal::FirstContent && self.has_content() {
                return Some(Held::Reached);
            }
            if self.is_finished() {
                return Some(self.at_end());
            }
        }
        (self.rest.is_some() && self.bytes > self.bounds.bytes).then_some(Held::Full)
    }

    fn at_end(&mut self) -> Held {
        if self.goal == Goal::Keep {
            return Held::Reached;
        }
        if let Some(reader) = &mut self.reader
            && let Some(verdict) = reader.finish()
            && !verdict.is_success()
        {
            return Held::Failed(verdict);
        }
        match self.failure() {
            Some(failure) => Held::Failed(failure),
            // It says that it is over, and has not said anything.
            None if self.is_stream && self.is_finished() && !self.has_content() => {
                Held::Failed(Verdict::new(Class::Transient))
            }
            None => Held::Reached,
        }
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(until) = self.bounds.until else { return false };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        let late = timer.as_mut().poll(cx).is_ready();
        if late {
            // Asked on, it waits without a limit.
            (self.bounds.until, self.timer) = (None, None);
        }
        late
    }
}

impl<B: Body> fmt::Debug for Hold<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold").field("goal", &self.goal).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of a response that may have been held back: what was held, then the rest as it comes.
    pub struct CommitBody<B: Body> {
        #[pin]
        frames: ReadAhead<B>,
    }
}

impl<B: Body> CommitBody<B> {
    /// Nothing was held.
    pub(crate) fn passing(body: B) -> Self {
        Self { frames: ReadAhead::none(body) }
    }

    /// A text of our own.
    pub(crate) fn text(text: Bytes) -> Self {
        let frame = (!text.is_empty()).then(|| Ok(Frame::data(text)));
        Self { frames: ReadAhead::new(frame.into_iter().collect(), None) }
    }
}

/// An empty body.
impl<B: Body> Default for CommitBody<B> {
    fn default() -> Self {
        Self { frames: ReadAhead::default() }
    }
}

impl<B: Body<Data = Bytes>> Body for CommitBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.project().frames.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.frames.size_hint()
    }
}

impl<B: Body> fmt::Debug for CommitBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitBody").field("held", &self.frames.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
