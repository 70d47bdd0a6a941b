//! The few parts of a message that have to be read whole: copied as they pass, bounded, and parsed at its end.

use serde_json::Value;

use super::node::Node;

/// What a kept part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Usage,
    Error,
    /// The top level's `code`, which belongs to an error that has no object of its own.
    Code,
    /// The top level's `message`, likewise.
    Message,
    /// The reason to end, where it is a failure.
    Finish,
}

impl Tag {
    pub(super) fn of(node: Node) -> Option<Self> {
        match node {
            Node::Usage => Some(Self::Usage),
            Node::Error => Some(Self::Error),
            Node::Code => Some(Self::Code),
            Node::Message => Some(Self::Message),
            _ => None,
        }
    }
}

/// The largest part that is kept, in bytes. Usage takes some hundred; an error can quote a prompt.
const PART: usize = 16 * 1024;
/// The most parts of a message that are kept. Some servers report usage once more with each choice.
const PARTS: usize = 16;
/// What of the buffer outlives a message.
const RETAINED: usize = 4 * 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    /// Each part with where it ends; it begins where the one before ends.
    parts: Vec<(Tag, usize)>,
    lost_usage: bool,
    lost_error: bool,
    /// The part in progress is too large.
    over: bool,
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), parts: Vec::new(), lost_usage: false, lost_error: false, over: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.parts.is_empty()
    }

    /// A usage or an error was too large to be kept.
    pub(super) fn has_lost(&self) -> bool {
        self.lost_usage || self.lost_error
    }

    pub(super) fn has_lost_usage(&self) -> bool {
        self.lost_usage
    }

    pub(super) fn has_lost_error(&self) -> bool {
        self.lost_error
    }

    pub(super) fn begin(&mut self) {
        self.bytes.truncate(self.whole());
        self.over = self.parts.len() >= PARTS;
    }

    pub(super) fn push(&mut self, part: &[u8]) {
        self.over |= self.bytes.len() - self.whole() + part.len() > PART;
        if !self.over {
            self.bytes.extend_from_slice(part);
        }
    }

    pub(super) fn end(&mut self, tag: Tag) {
        let begin = self.whole();
        let is_null = self.bytes.get(begin..) == Some(b"null");
        // What is null says nothing, and never erases.
        if self.over || is_null {
            self.bytes.truncate(begin);
            self.lost_usage |= self.over && tag == Tag::Usage;
            self.lost_error |= self.over && tag == Tag::Error;
        } else {
            self.parts.push((tag, self.bytes.len()));
        }
    }

    pub(super) fn put(&mut self, tag: Tag, part: &[u8]) {
        self.begin();
        self.push(part);
        self.end(tag);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(RETAINED);
        self.parts.clear();
        self.lost_usage = false;
        self.lost_error = false;
        self.over = false;
    }

    /// The raw parts of one kind, in their order.
    pub(super) fn all(&self, tag: Tag) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.parts.iter().filter_map(move |&(each, end)| {
            let part = self.bytes.get(begin..end);
            begin = end;
            part.filter(|_| each == tag)
        })
    }

    /// The last part of one kind, parsed.
    pub(super) fn json(&self, tag: Tag) -> Option<Value> {
        serde_json::from_slice(self.all(tag).last()?).ok()
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    fn whole(&self) -> usize {
        self.parts.last().map_or(0, |&(_, end)| end)
    }
}
