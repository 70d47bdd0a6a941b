//! Collects a body up to a limit, and goes on with what it has where that is not all.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::call::CallBody;
use crate::refusal::BoxError;

/// A body on its way in.
#[derive(Debug)]
pub(super) struct Collect<B> {
    /// Not here once it is handed on.
    body: Option<B>,
    limit: usize,
    /// All that was read, as long as it is one frame: it is not copied then.
    first: Bytes,
    /// All that was read, when it is more. It grows with what came, whatever length was announced.
    joined: BytesMut,
}

/// What came of it.
pub(super) enum Collected {
    /// All of it.
    Whole(CallBody),
    /// Too much, or it failed: what was read, and the rest as it comes.
    Passed(CallBody),
}

impl<B> Collect<B>
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError>,
{
    pub(super) fn new(body: B, limit: usize) -> Self {
        Self { body: Some(body), limit, first: Bytes::new(), joined: BytesMut::new() }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Collected> {
        loop {
            let Some(body) = &mut self.body else { return Poll::Ready(self.whole(None)) };
            let frame = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(self.pass(Some(error.into()))),
                None => return Poll::Ready(self.whole(None)),
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(frame) => return Poll::Ready(self.whole(frame.into_trailers().ok())),
            };
            let over = body.is_end_stream();
            self.push(data);
            if self.first.len() + self.joined.len() > self.limit {
                return Poll::Ready(self.pass(None));
            }
            if over {
                return Poll::Ready(self.whole(None));
            }
        }
    }

    fn push(&mut self, data: Bytes) {
        if self.first.is_empty() && self.joined.is_empty() {
            self.first = data;
            return;
        }
        if !self.first.is_empty() {
            self.joined.reserve(self.first.len() + data.len());
            self.joined.extend_from_slice(&mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&data);
    }

    fn read(&mut self) -> Bytes {
        if self.joined.is_empty() { mem::take(&mut self.first) } else { mem::take(&mut self.joined).freeze() }
    }

    fn whole(&mut self, trailers: Option<HeaderMap>) -> Collected {
        self.body = None;
        Collected::Whole(CallBody::from(self.read()).with_trailers(trailers.unwrap_or_default()))
    }

    fn pass(&mut self, error: Option<BoxError>) -> Collected {
        let rest = self.body.take().filter(|_| error.is_none());
        let resumed = Resumed { read: self.read(), rest, error };
        Collected::Passed(CallBody::streaming(resumed, 0))
    }
}

/// What was read of a body, then the rest of it, or the error that ended it.
struct Resumed<B> {
    read: Bytes,
    rest: Option<B>,
    error: Option<BoxError>,
}

impl<B> Body for Resumed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(&mut self.read)))));
        }
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx).map_err(Into::into),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.error.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.len() as u64;
        let rest = match &self.rest {
            Some(rest) => rest.size_hint(),
            // It was to be longer, by how much nobody can say now.
            None if self.error.is_some() => SizeHint::default(),
            None => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint.set_lower(rest.lower().saturating_add(read));
        hint
    }
}
