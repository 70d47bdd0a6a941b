//! Reads the body of a failed response, or the first frame of a gRPC one, bounded in bytes and time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, response};
use http_body::Body;
use tokio::time::{Sleep, sleep};

use super::body::OutcomeBody;
use super::layer::Settings;
use crate::call::ahead::{Frames, ReadAhead, length};
use crate::provider::{ContentEncoding, Decoder};

/// A failed response while its body is read.
pub(super) struct ErrorBody<B: Body> {
    head: response::Parts,
    // Boxed: only failures pay for it, and the future of a good call stays small.
    rest: Option<Pin<Box<B>>>,
    timer: Pin<Box<Sleep>>,
    frames: Frames<B::Error>,
    bytes: usize,
    limit: usize,
}

impl<B: Body<Data = Bytes>> ErrorBody<B> {
    pub(super) fn new(response: Response<B>, bodiless: bool, settings: &Settings) -> Self {
        Self::bounded(response, bodiless, settings.error_body_bytes, settings.error_body_time)
    }

    /// Reads no further than the first byte: to trailers, if nothing stands before them.
    pub(super) fn first_frame(response: Response<B>, time: Duration) -> Self {
        Self::bounded(response, false, 0, time)
    }

    fn bounded(response: Response<B>, bodiless: bool, limit: usize, time: Duration) -> Self {
        let (head, body) = response.into_parts();
        Self {
            rest: (!bodiless).then(|| Box::pin(body)),
            timer: Box::pin(sleep(time)),
            frames: Frames::new(),
            bytes: 0,
            limit,
            head,
        }
    }

    /// The trailers, or that the body broke, where it ended before it had brought a byte.
    pub(super) fn ended_empty(&self) -> Option<Result<Option<&HeaderMap>, ()>> {
        (self.rest.is_none() && self.bytes == 0).then(|| match self.frames.back() {
            Some(Ok(frame)) => Ok(frame.trailers_ref()),
            Some(Err(_)) => Err(()),
            None => Ok(None),
        })
    }

    /// The response with its body as it was.
    pub(super) fn into_read_ahead(self) -> Response<ReadAhead<B>> {
        Response::from_parts(self.head, ReadAhead::new(self.frames, self.rest))
    }

    pub(super) fn head(&self) -> &response::Parts {
        &self.head
    }

    /// Ready when the body is whole, broken, longer than the limit, or took too long.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(body) = &mut self.rest {
            if body.is_end_stream() {
                self.rest = None;
                break;
            }
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    let last = frame.is_trailers();
                    self.bytes =
                        self.bytes.saturating_add(usize::try_from(length(&frame)).unwrap_or(usize::MAX));
                    self.frames.push_back(Ok(frame));
                    if last {
                        self.rest = None;
                    } else if self.bytes > self.limit {
                        break;
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.frames.push_back(Err(error));
                    self.rest = None;
                }
                Poll::Ready(None) => self.rest = None,
                Poll::Pending => return self.timer.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }

    /// The response with its body as it was, and a copy of the text to classify, decoded and bounded.
    pub(super) fn into_response(self) -> (Response<OutcomeBody<B>>, Vec<u8>) {
        let mut text = Vec::with_capacity(self.bytes.min(self.limit));
        let mut decoder = match ContentEncoding::of(&self.head.headers) {
            ContentEncoding::One(encoding) => Some(Decoder::with_limit(encoding, self.limit)),
            ContentEncoding::Identity | ContentEncoding::Unknown => None,
        };
        for data in self.frames.iter().filter_map(|frame| frame.as_ref().ok()?.data_ref()) {
            match &mut decoder {
                Some(decoder) => decoder.feed(data, |part| text.extend_from_slice(part)),
                None => text.extend_from_slice(data),
            }
        }
        text.truncate(self.limit);
        (self.into_read_ahead().map(OutcomeBody::passing), text)
    }
}
