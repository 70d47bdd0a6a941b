//! What can be done to a call.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

/// One fault, done to one call; see [the module](crate::fault) for what each of them looks like.
#[derive(Clone, Debug)]
#[must_use]
pub struct Inject {
    pub(super) kind: Kind,
    pub(super) wait: Duration,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Nothing,
    // Boxed: a head is large, and most faults have none.
    Answer(Box<Response<Bytes>>),
    Reset,
    Hang,
    Body(Change),
}

/// What happens to a body once so many of its bytes have passed.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) after: u64,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Cut,
    /// For ever without a time.
    Stall(Option<Duration>),
    Event(Bytes),
}

/// Understood by the readers of OpenAI's streams and of Anthropic's.
const ERROR_EVENT: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"server_error\",\
                           \"code\":null,\"message\":\"injected fault\"}}\n\n";

impl Inject {
    const fn of(kind: Kind) -> Self {
        Self { kind, wait: Duration::ZERO }
    }

    /// No fault: an entry of a script that lets a call through, untouched.
    pub const fn nothing() -> Self {
        Self::of(Kind::Nothing)
    }

    /// The client's own answer, so much later than it came.
    pub const fn delay(wait: Duration) -> Self {
        Self::nothing().delayed(wait)
    }

    /// An answer with this status and an error in JSON, as providers word it.
    pub fn status(status: StatusCode) -> Self {
        let kind = match status.as_u16() {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "injected_error",
        };
        let text = format!(r#"{{"error":{{"type":"{kind}","code":null,"message":"injected fault"}}}}"#);
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self::response(response)
    }

    /// A 429 that asks to come back after this time, rounded up to whole seconds.
    pub fn throttled(retry_after: Duration) -> Self {
        let mut throttled = Self::status(StatusCode::TOO_MANY_REQUESTS);
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        if let Kind::Answer(response) = &mut throttled.kind {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        throttled
    }

    /// This answer, word for word.
    pub fn response(response: Response<Bytes>) -> Self {
        Self::of(Kind::Answer(Box::new(response)))
    }

    /// An error, as if the connection had been reset before the head came.
    pub const fn reset() -> Self {
        Self::of(Kind::Reset)
    }

    /// No head, ever.
    pub const fn hang() -> Self {
        Self::of(Kind::Hang)
    }

    /// Silence for ever once so many bytes of the body have passed; in place of its end, where it is shorter.
    pub const fn stall(after_bytes: u64) -> Self {
        Self::of(Kind::Body(Change { after: after_bytes, what: What::Stall(None) }))
    }

    /// Silence for this time once so many bytes of the body have passed, then the rest of it.
    pub const fn stall_for(after_bytes: u64, silence: Duration) -> Self {
        Self::of(Kind::Body(Change { after: after_bytes, what: What::Stall(Some(silence)) }))
    }

    /// An error of the body, as if the connection had been lost, once so many of its bytes have passed; in place of its
    /// end, where it is shorter.
    pub const fn cut(after_bytes: u64) -> Self {
        Self::of(Kind::Body(Change { after: after_bytes, what: What::Cut }))
    }

    /// An error event in a stream of events, at the first end of an event at which so many bytes have passed, or else at the
    /// end of the stream; with zero it is the first event. The stream ends with it.
    pub const fn error_event(after_bytes: u64) -> Self {
        Self::of(Kind::Body(Change {
            after: after_bytes,
            what: What::Event(Bytes::from_static(ERROR_EVENT.as_bytes())),
        }))
    }

    /// As [`error_event`](Self::error_event), in these words: whole lines, with the empty one that ends an event.
    pub fn error_event_of(after_bytes: u64, event: impl Into<Bytes>) -> Self {
        Self::of(Kind::Body(Change { after: after_bytes, what: What::Event(event.into()) }))
    }

    /// The same fault, with a head that comes so much later: a 503 after thirty seconds. A hang stays a hang.
    pub const fn delayed(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Whether it changes anything at all.
    pub(super) fn is_fault(&self) -> bool {
        !matches!(self.kind, Kind::Nothing) || !self.wait.is_zero()
    }
}

/// The mark of what this layer did: in the extensions of an answer that it made or changed, and within an error that it
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected(());

impl Injected {
    pub(super) const MARK: Self = Self(());

    pub(super) fn error(kind: io::ErrorKind) -> io::Error {
        io::Error::new(kind, Self(()))
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("injected fault")
    }
}

impl Error for Injected {}
