//! Takes the event with the usage out of a stream. Pure.

use std::mem;

use bytes::Bytes;
use memchr::{memchr2, memmem};
use serde_json::Value;

/// A begun event that is longer cannot be the one with the usage.
const LONGEST: usize = 64 << 10;

/// Goes through a stream frame by frame.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what a scanner remembers of the bytes before; any of them may be"
)]
pub(super) struct Hider {
    /// An event that has begun, where it may be the one to hide.
    held: Vec<u8>,
    /// The event that has begun is passing already.
    passing: bool,
    /// Whether the current line has any bytes.
    filled: bool,
    /// The last byte was a CR: an LF that follows belongs to it.
    after_cr: bool,
    /// The last event was hidden: so is an LF that belongs to it.
    swallow: bool,
    /// There is one such event in a stream, and it has passed.
    done: bool,
}

impl Hider {
    /// How many bytes are held back.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing will be taken out any more.
    pub(super) fn is_done(&self) -> bool {
        self.done && !self.swallow
    }

    /// What is to pass of this frame, and of what was held back before it; maybe nothing.
    pub(super) fn feed(&mut self, frame: &Bytes) -> Bytes {
        // What passes of earlier frames, and what of this one is left out.
        let (mut before, mut cut) = (Vec::new(), 0..0);
        // Where the event begins that is looked at, and where its end is looked for.
        let (mut start, mut from) = (0, 0);
        if self.after_cr && frame.first() == Some(&b'\n') {
            from = 1;
            if self.swallow {
                cut = 0..1;
            } else if self.held.is_empty() && !self.passing {
                start = 1;
            }
        }
        if !frame.is_empty() {
            (self.after_cr, self.swallow) = (false, false);
        }
        while !self.done {
            let Some(end) = self.end_of_event(frame, from) else { break };
            if self.ends_with(frame.get(start..end).unwrap_or_default()) {
                self.held.clear();
                (self.done, self.swallow, cut) = (true, self.after_cr, start..end);
            } else if !self.held.is_empty() {
                before = mem::take(&mut self.held);
            }
            (start, from) = (end, end);
        }
        if self.done || self.passing {
            start = frame.len();
        } else if self.held.len() + (frame.len() - start) > LONGEST {
            self.passing = true;
            before.append(&mut self.held);
            start = frame.len();
        } else {
            self.held.extend_from_slice(frame.get(start..).unwrap_or_default());
        }
        join(Bytes::from(before), frame.slice(..cut.start.min(start)), frame.slice(cut.end.min(start)..start))
    }

    /// Whether an event that ends like this is the one to hide.
    fn ends_with(&mut self, last: &[u8]) -> bool {
        if mem::take(&mut self.passing) {
            return false;
        }
        if self.held.is_empty() { is_usage(last) } else { is_usage(&[&self.held, last].concat()) }
    }

    /// What is left when the stream is over.
    pub(super) fn finish(&mut self) -> Bytes {
        self.done = true;
        Bytes::from(mem::take(&mut self.held))
    }

    /// Behind the next blank line, if one ends in this frame.
    fn end_of_event(&mut self, frame: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            let rest = frame.get(at..).unwrap_or_default();
            let Some(length) = memchr2(b'\n', b'\r', rest) else {
                self.filled |= !rest.is_empty();
                return None;
            };
            let blank = length == 0 && !self.filled;
            let cr = rest.get(length) == Some(&b'\r');
            let lf_too = cr && rest.get(length + 1) == Some(&b'\n');
            at += length + 1 + usize::from(lf_too);
            self.filled = false;
            self.after_cr = cr && !lf_too && at == frame.len();
            if blank {
                return Some(at);
            }
        }
    }
}

/// One after the other, without a copy where only one of them is there.
fn join(before: Bytes, first: Bytes, second: Bytes) -> Bytes {
    match (before.is_empty(), first.is_empty(), second.is_empty()) {
        (_, true, true) => before,
        (true, false, true) => first,
        (true, true, false) => second,
        _ => [before, first, second].concat().into(),
    }
}

/// Whether this is the event that carries the usage and nothing else.
fn is_usage(event: &[u8]) -> bool {
    if !has_empty_choices(event) {
        return false;
    }
    let mut data =
        event.split(|byte| matches!(byte, b'\n' | b'\r')).filter_map(|line| line.strip_prefix(b"data:"));
    let (Some(data), None) = (data.next(), data.next()) else { return false };
    let Ok(Value::Object(chunk)) = serde_json::from_slice(data) else { return false };
    let no_choices = chunk.get("choices").and_then(Value::as_array).is_some_and(Vec::is_empty);
    no_choices && chunk.get("usage").is_some_and(Value::is_object) && !chunk.contains_key("error")
}

/// A quick look that spares nearly every event from being parsed.
fn has_empty_choices(event: &[u8]) -> bool {
    const NAME: &[u8] = b"\"choices\"";
    memmem::find_iter(event, NAME).any(|at| {
        let mut rest =
            event.get(at + NAME.len()..).unwrap_or_default().iter().filter(|b| !b.is_ascii_whitespace());
        [b':', b'[', b']'].iter().all(|expected| rest.next() == Some(expected))
    })
}
