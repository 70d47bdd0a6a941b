//! The events of a stream begin alike: an id, a model, a time. What was read once need not be read again.

use super::message::Message;
use super::scan::Scan;

/// The longest beginning that is remembered, in bytes.
const LONGEST: usize = 512;
/// Below this, resuming saves nothing.
const SHORTEST: usize = 24;

/// How far a scan gets with the bytes that the last events had in common. Equal bytes are read equally, so resuming
/// changes nothing but the time it takes.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    bytes: Vec<u8>,
    scan: Scan,
    /// The beginning of the last event that did not begin with `bytes`.
    last: Vec<u8>,
}

impl Default for Prefix {
    fn default() -> Self {
        Self { bytes: Vec::new(), scan: Scan::new(), last: Vec::new() }
    }
}

impl Prefix {
    /// Begins a message with what is known of its beginning, and returns what is still to be read.
    pub(super) fn begin<'a>(&mut self, data: &'a [u8], message: &mut Message) -> &'a [u8] {
        if !self.bytes.is_empty()
            && let Some(rest) = data.strip_prefix(self.bytes.as_slice())
        {
            message.resume(self.scan);
            return rest;
        }
        message.restart();
        self.learn(data, message)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity() + self.last.capacity()
    }

    #[cold]
    fn learn<'a>(&mut self, data: &'a [u8], message: &mut Message) -> &'a [u8] {
        let head = data.get(..LONGEST).unwrap_or(data);
        let common = head.iter().zip(&self.last).take_while(|(one, other)| one == other).count();
        self.last.clear();
        self.last.extend_from_slice(head);
        // A message must not end in what is common: its end has to be seen.
        let common = common.min(data.len().saturating_sub(1));
        let Some((same, rest)) = data.split_at_checked(common).filter(|_| common >= SHORTEST) else {
            return data;
        };
        let (_, complete) = message.feed(same);
        if complete {
            message.restart();
            return data;
        }
        if message.scan.is_free() && message.kept.is_empty() {
            self.bytes.clear();
            self.bytes.extend_from_slice(same);
            self.scan = message.scan;
        }
        rest
    }
}
