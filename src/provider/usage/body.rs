//! Reads a JSON answer as it passes.

use std::time::Duration;

use crate::call::Usage;
use crate::provider::stream::{Message, Seen};
use crate::verdict::{Class, Verdict};

/// Reads the body of a JSON answer as its frames pass: usage, and the error that a 200 may hold.
///
/// The body is passed over, not built: what is held is at most a few times 16 KiB, whatever its size, its nesting or
/// its splits. An array of messages, which is what Gemini streams without `alt=sse`, is read message by message.
///
/// Only the content type tells that a body is JSON; do not feed this what is not.
#[derive(Clone, Debug, Default)]
pub struct BodyReader {
    message: Message,
    failure: Option<Verdict>,
    messages: bool,
}

impl BodyReader {
    /// At the start of a body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what time it is, since the Unix epoch, for an error that names the end of a limit as a date.
    #[must_use]
    pub fn with_wall(mut self, wall: Duration) -> Self {
        self.message.set_wall(wall);
        self
    }

    /// Reads the next frame. White space before the JSON is a sign of life, which some servers send while a request is
    /// queued.
    pub fn feed(&mut self, frame: &[u8]) -> Seen {
        let mut seen = if frame.is_empty() { Seen::NOTHING } else { Seen::ALIVE };
        let mut rest = frame;
        while !rest.is_empty() {
            let (read, complete) = self.message.feed(rest);
            if complete {
                seen |= self.settle();
            }
            rest = rest.get(read..).unwrap_or_default();
        }
        if self.message.has_content() {
            seen |= Seen::CONTENT;
        }
        seen
    }

    fn settle(&mut self) -> Seen {
        let settled = self.message.settle(b"");
        self.messages = true;
        let mut seen = settled.seen - Seen::TERMINAL;
        if let Some(failure) = settled.failure {
            self.failure.get_or_insert(failure);
        } else {
            // A complete message is an answer, also where its API is not known.
            seen |= Seen::CONTENT;
        }
        if self.message.is_done() {
            seen |= Seen::TERMINAL;
        }
        seen
    }

    /// The usage reported so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.message.usage()
    }

    /// The failure that the body holds, as soon as it is known.
    #[must_use]
    pub fn failure(&self) -> Option<Verdict> {
        self.failure
    }

    /// What the body means, now that it has ended: its failure; a good answer; [`Class::Transient`] if it was cut off.
    /// `None` if it is no JSON object or array: nothing can be said.
    #[must_use]
    pub fn finish(&self) -> Option<Verdict> {
        if self.failure.is_some() {
            self.failure
        } else if self.message.is_open() {
            Some(Verdict::new(Class::Transient))
        } else {
            self.messages.then_some(Verdict::SUCCESS)
        }
    }
}
