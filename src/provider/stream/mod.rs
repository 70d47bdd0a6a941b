//! What the events of a stream mean, for every API at once.
//!
//! A [`StreamReader`] is fed the frames of an event stream as they pass and says of each what it brought: a sign of
//! life, content, usage, the end, an error. It reads OpenAI chat and responses, Anthropic messages, Gemini, Cohere, and
//! the many servers that are compatible with one of these. Which one it is need not be said: their events differ, and
//! where they do not they mean the same.
//!
//! - **Alive** is anything at all. Comments, pings and blank lines are no more than that.
//! - **Content** is the first part of an answer in an event: text, reasoning, a tool call, audio. An event that only names
//!   the role or opens an empty part is none, so a fallback that waits for content can still change the target.
//! - **Usage** replaces what was said before ([`usage`](crate::provider::usage)); it is read whatever else is in the event.
//! - **Terminal** is `[DONE]`, `message_stop`, `response.completed`, `.incomplete` or `.failed`, `message-end`. Clients stop
//!   reading there. A finish reason is none, since usage may follow it, but it is enough for a good end where the server
//!   sends no more.
//! - **Error** is an `error` in an event or beside its choices, `response.failed`, a finish reason that names a failure,
//!   a blocked prompt, or a bare JSON error between the events. The first one stands.
//!
//! A stream that ends with none of the last two was cut off, which is [`Class::Transient`].
//!
//! Nothing is held of what passes: see [`Parser`] for lines, and a message is read piece by piece. Usage and error
//! objects are copied, at most 16 KiB each. Keys are matched as providers write them, without escapes.

mod cursor;
mod facts;
mod kept;
mod message;
mod node;
mod prefix;
mod scan;
mod seen;
mod tap;

pub(crate) use message::Message;
pub use seen::Seen;

use std::time::Duration;

use crate::call::Usage;
use crate::provider::sse::Parser;
use crate::verdict::{Class, Verdict};
use tap::Tap;

/// Reads an event stream as its frames pass; see the [module](self).
///
/// ```
/// use seawall::provider::StreamReader;
///
/// let mut reader = StreamReader::new();
/// assert!(!reader.feed(b": keep-alive\n\n").has_content());
/// let seen = reader.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
/// assert!(seen.has_content());
/// reader.feed(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"comp");
/// let seen = reader.feed(b"letion_tokens\":2}}\n\ndata: [DONE]\n\n");
/// assert!(seen.has_usage() && seen.is_terminal());
/// assert_eq!(reader.usage().total(), Some(9));
/// assert!(reader.finish().unwrap().is_success());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StreamReader {
    parser: Parser,
    tap: Tap,
}

impl StreamReader {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what time it is, since the Unix epoch, for an error that names the end of a limit as a date.
    #[must_use]
    pub fn with_wall(mut self, wall: Duration) -> Self {
        self.tap.set_wall(wall);
        self
    }

    /// Reads the next frame, in time linear in its length, and says what it brought. An event that is cut by frames is
    /// brought by the one that ends it.
    pub fn feed(&mut self, frame: &[u8]) -> Seen {
        self.parser.feed(frame, &mut self.tap);
        let seen = self.tap.take_seen();
        if frame.is_empty() { seen } else { seen | Seen::ALIVE }
    }

    /// The usage reported so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.tap.usage()
    }

    /// The failure that the stream reported, as soon as it did.
    #[must_use]
    pub fn failure(&self) -> Option<Verdict> {
        self.tap.failure()
    }

    /// Whether the terminal event has passed: nothing of the answer follows.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.tap.is_terminal()
    }

    /// What the stream means, now that its body has ended: the failure it reported; a good answer, if it came to its
    /// end; [`Class::Transient`] if it was cut off, or brought no event at all. `None` if nothing in it belongs to an API
    /// that is known here: nothing can be said.
    ///
    /// An event that lacks only its last blank line is taken here, if its JSON is complete.
    pub fn finish(&mut self) -> Option<Verdict> {
        self.parser.finish(&mut self.tap);
        if self.tap.failure().is_some() {
            self.tap.failure()
        } else if self.tap.ended_well() {
            Some(Verdict::SUCCESS)
        } else {
            self.tap.is_known().then_some(Verdict::new(Class::Transient))
        }
    }
}

#[cfg(test)]
mod tests;
