//! What is read of a good response while it passes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use crate::call::{Outcome, Usage, media};
use crate::provider::{BodyReader, ContentEncoding, Decoder, Seen, StreamReader, grpc};
use crate::time;
use crate::verdict::{Class, Verdict};

/// Reads the frames of one response and writes its [`Outcome`].
pub(super) struct Tap {
    outcome: Arc<Outcome>,
    reader: Reader,
    decoder: Option<Decoder>,
    content: bool,
    concluded: bool,
}

enum Reader {
    // Boxed: a body that is only passed on should not be larger for what others keep.
    Stream(Box<StreamReader>),
    Json(Box<BodyReader>),
    Grpc(Box<GrpcHead>),
    /// Nothing is known of such bodies but that they come.
    Opaque,
}

struct GrpcHead {
    status: StatusCode,
    headers: HeaderMap,
    trailers: Option<HeaderMap>,
    wall: Duration,
}

impl Tap {
    pub(super) fn new<B>(
        response: &Response<B>,
        outcome: Arc<Outcome>,
        is_grpc: bool,
        wall: impl FnOnce() -> Duration,
    ) -> Self {
        let headers = response.headers();
        let (reader, decoder) = if is_grpc {
            let status = response.status();
            let head = GrpcHead { status, headers: headers.clone(), trailers: None, wall: wall() };
            (Reader::Grpc(Box::new(head)), None)
        } else {
            match ContentEncoding::of(headers) {
                ContentEncoding::Unknown => (Reader::Opaque, None),
                ContentEncoding::Identity => (Reader::of(headers, wall), None),
                ContentEncoding::One(encoding) => (Reader::of(headers, wall), Some(Decoder::new(encoding))),
            }
        };
        Self { outcome, reader, decoder, content: false, concluded: false }
    }

    /// Reads a frame of data. For one that brings nothing new this is one branch after the reader.
    pub(super) fn data(&mut self, data: &Bytes) {
        if self.concluded {
            return;
        }
        self.outcome.add_body_bytes(data.len() as u64);
        let seen = match &mut self.decoder {
            None => self.reader.feed(data),
            Some(decoder) => {
                let reader = &mut self.reader;
                let mut seen = Seen::NOTHING;
                decoder.feed(data, |part| seen |= reader.feed(part));
                seen
            }
        };
        if seen.is_news() {
            self.news(seen);
        }
    }

    fn news(&mut self, seen: Seen) {
        if seen.has_content() && !std::mem::replace(&mut self.content, true) {
            self.outcome.mark_content(time::now());
        }
        if seen.has_usage() {
            self.outcome.update_usage(&self.reader.usage());
        }
        if seen.has_error()
            && let Some(failure) = self.reader.failure()
        {
            self.outcome.set_verdict(failure);
        }
        if seen.is_terminal() {
            if self.reader.failure().is_none() {
                self.outcome.set_verdict(Verdict::SUCCESS);
            }
            self.outcome.mark_finished();
        }
    }

    pub(super) fn trailers(&mut self, trailers: &HeaderMap) {
        if let Reader::Grpc(head) = &mut self.reader {
            head.trailers = Some(trailers.clone());
        }
    }

    /// Whether the status is still to come, behind the data.
    pub(super) fn wants_trailers(&self) -> bool {
        matches!(self.reader, Reader::Grpc(_))
    }

    /// The body has ended, or its last byte has passed.
    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.concluded, true) {
            return;
        }
        self.outcome.mark_end(time::now());
        // A copy that could not be decoded to its end says nothing about whether the answer was complete.
        let unread = self.decoder.as_ref().is_some_and(Decoder::has_stopped);
        let verdict = self.reader.finish();
        let usage = self.reader.usage();
        if !usage.is_empty() {
            self.outcome.update_usage(&usage);
        }
        let verdict = match verdict {
            Some(verdict)
                if unread && verdict.class() == Class::Transient && self.reader.failure().is_none() =>
            {
                None
            }
            verdict => verdict,
        };
        self.outcome.set_verdict(verdict.unwrap_or(Verdict::SUCCESS));
    }

    /// The body failed. An answer that was complete before stays one; a failure that it reported stays that.
    pub(super) fn broken(&mut self) {
        if std::mem::replace(&mut self.concluded, true) {
            return;
        }
        self.outcome.mark_end(time::now());
        if !self.outcome.is_finished() && self.reader.failure().is_none() {
            self.outcome.set_verdict(Verdict::new(Class::Transient));
        }
    }
}

impl Drop for Tap {
    /// A client that stops at the terminal event drops the body there: that is its end.
    fn drop(&mut self) {
        if !self.concluded && self.outcome.is_finished() {
            self.outcome.mark_end(time::now());
        }
    }
}

impl Reader {
    fn of(headers: &HeaderMap, wall: impl FnOnce() -> Duration) -> Self {
        match media::of(headers) {
            Some(kind) if media::is_event_stream(kind) => {
                Self::Stream(Box::new(StreamReader::new().with_wall(wall())))
            }
            Some(kind) if media::is_json(kind) => Self::Json(Box::new(BodyReader::new().with_wall(wall()))),
            _ => Self::Opaque,
        }
    }

    fn feed(&mut self, data: &[u8]) -> Seen {
        match self {
            Self::Stream(reader) => reader.feed(data),
            Self::Json(reader) => reader.feed(data),
            Self::Grpc(_) | Self::Opaque if data.is_empty() => Seen::NOTHING,
            Self::Grpc(_) | Self::Opaque => Seen::CONTENT,
        }
    }

    fn usage(&self) -> Usage {
        match self {
            Self::Stream(reader) => reader.usage(),
            Self::Json(reader) => reader.usage(),
            Self::Grpc(_) | Self::Opaque => Usage::default(),
        }
    }

    fn failure(&self) -> Option<Verdict> {
        match self {
            Self::Stream(reader) => reader.failure(),
            Self::Json(reader) => reader.failure(),
            Self::Grpc(_) | Self::Opaque => None,
        }
    }

    fn finish(&mut self) -> Option<Verdict> {
        match self {
            Self::Stream(reader) => reader.finish(),
            Self::Json(reader) => reader.finish(),
            Self::Grpc(head) => {
                Some(grpc::at_end(head.status, &head.headers, head.trailers.as_ref(), head.wall))
            }
            Self::Opaque => None,
        }
    }
}
