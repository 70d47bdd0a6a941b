//! Reads a JSON message piece by piece, keeps what it says about itself and passes over the rest.
//!
//! Nothing is built for what is passed over, and nothing recurses: nesting is a count. Keys are found where they stand,
//! so text that looks like a key never misleads. What has to be read whole (usage, errors) is copied, bounded, and
//! parsed when the message is complete.
//!
//! The scan is lenient: it counts brackets and does not check commas. A malformed message yields nothing, or what its
//! well-formed parts say.

use super::cursor::Cursor;
use super::facts::{Facts, Word};
use super::kept::{Kept, Tag};
use super::node::{Node, adds_nothing};

/// How far a scan has got. A copy of it can be resumed: what follows the same bytes is read the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan {
    mode: Mode,
    /// The value to come, or the one that is being read.
    next: Node,
    open: [Node; DEPTH],
    depth: u8,
    /// How many brackets are open inside a value that is passed over.
    inside: u32,
    /// The last byte of a cut string was a backslash.
    escaped: bool,
    keeping: Option<Tag>,
    /// Inside an answer: the value to come stands under a key that adds nothing.
    nothing: bool,
    word: Word,
    pub(super) facts: Facts,
}

/// How deep what matters lies: root array, message, choices, choice, delta.
const DEPTH: usize = 6;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Before a value.
    Value,
    /// In an object, before a key.
    Key,
    KeyText,
    Colon,
    /// In an array, before an element.
    Element,
    /// In a text that is passed over or kept.
    Text,
    /// In a text that is compared.
    WordText,
    /// In a number, `true`, `false` or `null`.
    Scalar,
    /// In brackets that are passed over or kept.
    Inside,
    InsideText,
    /// In brackets that are part of an answer.
    Answer,
    AnswerText,
    /// After a text there, which was a key if a colon follows.
    AnswerAfter,
    /// The text is complete.
    Done,
}

impl Scan {
    pub(super) const fn new() -> Self {
        Self {
            mode: Mode::Value,
            next: Node::Root,
            open: [Node::Other; DEPTH],
            depth: 0,
            inside: 0,
            escaped: false,
            keeping: None,
            nothing: false,
            word: Word::new(),
            facts: Facts::new(),
        }
    }

    /// Whether everything that was opened is closed.
    pub(super) fn is_done(&self) -> bool {
        self.mode == Mode::Done
    }

    /// Whether a message has begun and is not complete.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Whether nothing is being kept, so that a copy can be resumed without what was kept.
    pub(super) fn is_free(&self) -> bool {
        self.keeping.is_none()
    }

    /// Reads on. Returns how many bytes were read: all of them, or those up to the end of a message, whose facts are
    /// then complete.
    pub(super) fn feed(&mut self, bytes: &[u8], kept: &mut Kept) -> (usize, bool) {
        let mut cursor = Cursor::new(bytes);
        while cursor.at < bytes.len() {
            let ended = match self.mode {
                Mode::Value => self.value(&mut cursor, kept),
                Mode::Key => self.key(&mut cursor, kept),
                Mode::KeyText => self.key_text(&mut cursor, kept),
                Mode::Colon => self.colon(&mut cursor, kept),
                Mode::Element => self.element(&mut cursor),
                Mode::Text => self.text(&mut cursor, kept),
                Mode::WordText => self.word_text(&mut cursor, kept),
                Mode::Scalar => self.scalar(&mut cursor, kept),
                Mode::Inside => self.inside(&mut cursor, kept),
                Mode::InsideText => self.inside_text(&mut cursor),
                Mode::Answer => self.answer(&mut cursor),
                Mode::AnswerText => self.answer_text(&mut cursor),
                Mode::AnswerAfter => self.answer_after(&mut cursor),
                Mode::Done => {
                    cursor.at = bytes.len();
                    false
                }
            };
            if ended {
                return (cursor.at, true);
            }
        }
        if self.keeping.is_some() {
            kept.push(cursor.kept());
        }
        (bytes.len(), false)
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        let Some(first) = cursor.solid() else { return false };
        let node = self.next;
        match first {
            b'{' if (node.has_keys() || node == Node::Root) && self.has_room() => {
                cursor.at += 1;
                self.push(if node == Node::Root { Node::Top } else { node }, Mode::Key);
            }
            b'[' if node.element().is_some() && self.has_room() => {
                cursor.at += 1;
                self.push(node, Mode::Element);
            }
            b'{' | b'[' if node == Node::Content && !self.facts.content => {
                cursor.at += 1;
                self.inside = 1;
                self.nothing = false;
                self.mode = Mode::Answer;
            }
            b'{' | b'[' => {
                self.keep(cursor, kept);
                cursor.at += 1;
                self.inside = 1;
                self.mode = Mode::Inside;
            }
            b'"' if node.is_word() => {
                cursor.at += 1;
                self.word.clear();
                self.mode = Mode::WordText;
            }
            b'"' => {
                // OpenAI's responses API says what it adds as a text.
                self.next = if node == Node::Delta { Node::Content } else { node };
                self.keep(cursor, kept);
                cursor.at += 1;
                self.mode = Mode::Text;
                return self.text(cursor, kept);
            }
            b',' | b':' => cursor.at += 1,
            b'}' | b']' if self.depth > 0 => self.mode = self.in_container(),
            _ if self.depth > 0 => {
                self.keep(cursor, kept);
                self.mode = Mode::Scalar;
                return self.scalar(cursor, kept);
            }
            // A text that does not begin with a bracket is no message.
            _ => self.mode = Mode::Done,
        }
        false
    }

    // From a key to its value the states follow each other directly: a trip through the loop for each would cost more
    // than the states do. Each also works alone, where the bytes end in between.

    fn key(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        let Some(first) = cursor.solid() else { return false };
        cursor.at += 1;
        match first {
            b'"' => {
                self.word.clear();
                self.mode = Mode::KeyText;
                self.key_text(cursor, kept)
            }
            b'}' | b']' => self.pop(),
            _ => false,
        }
    }

    fn key_text(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        let begun = !self.word.is_empty() || self.escaped;
        let part = cursor.text(&mut self.escaped);
        let parent = self.top();
        let complete = cursor.closed;
        if begun || !complete {
            self.word.push(part);
        }
        if complete {
            self.next = if begun { parent.child(self.word.get()) } else { parent.child(part) };
            self.facts.known |= self.next.tells_api();
            self.mode = Mode::Colon;
            return self.colon(cursor, kept);
        }
        false
    }

    fn colon(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        match cursor.solid() {
            Some(b':') => {
                cursor.at += 1;
                self.mode = Mode::Value;
                self.value(cursor, kept)
            }
            Some(_) => {
                self.mode = Mode::Key;
                false
            }
            None => false,
        }
    }

    fn element(&mut self, cursor: &mut Cursor<'_>) -> bool {
        match cursor.solid() {
            Some(b'}' | b']') => {
                cursor.at += 1;
                return self.pop();
            }
            Some(b',') => cursor.at += 1,
            Some(_) => {
                self.next = self.top().element().unwrap_or(Node::Other);
                self.mode = Mode::Value;
            }
            None => {}
        }
        false
    }

    fn text(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        let part = cursor.text(&mut self.escaped);
        self.facts.content |= self.next == Node::Content && !part.is_empty();
        if cursor.closed {
            self.close(cursor, kept);
        }
        false
    }

    fn word_text(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        let part = cursor.text(&mut self.escaped);
        self.word.push(part);
        if cursor.closed {
            self.facts.take(self.next, self.word.get(), kept);
            self.mode = self.in_container();
        }
        false
    }

    fn scalar(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
        match cursor.rest().iter().position(ends) {
            Some(length) => {
                cursor.at += length;
                self.close(cursor, kept);
            }
            None => cursor.at = cursor.bytes.len(),
        }
        false
    }

    fn inside(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) -> bool {
        while let Some(&byte) = cursor.bytes.get(cursor.at) {
            cursor.at += 1;
            match byte {
                b'"' => {
                    cursor.text(&mut self.escaped);
                    if !cursor.closed {
                        self.mode = Mode::InsideText;
                        return false;
                    }
                }
                b'{' | b'[' => self.inside = self.inside.saturating_add(1),
                b'}' | b']' => {
                    self.inside -= 1;
                    if self.inside == 0 {
                        self.close(cursor, kept);
                        return false;
                    }
                }
                _ => {}
            }
        }
        false
    }

    fn inside_text(&mut self, cursor: &mut Cursor<'_>) -> bool {
        cursor.text(&mut self.escaped);
        if cursor.closed {
            self.mode = Mode::Inside;
        }
        false
    }

    fn answer(&mut self, cursor: &mut Cursor<'_>) -> bool {
        while let Some(&byte) = cursor.bytes.get(cursor.at) {
            cursor.at += 1;
            match byte {
                b'"' => {
                    self.word.clear();
                    self.mode = Mode::AnswerText;
                    return false;
                }
                b'{' | b'[' => {
                    self.inside = self.inside.saturating_add(1);
                    self.nothing = false;
                }
                b'}' | b']' => {
                    self.inside -= 1;
                    if self.inside == 0 {
                        self.mode = self.in_container();
                        return false;
                    }
                }
                b',' => self.nothing = false,
                _ => {}
            }
        }
        false
    }

    fn answer_text(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let part = cursor.text(&mut self.escaped);
        self.word.push(part);
        if cursor.closed {
            self.mode = Mode::AnswerAfter;
        }
        false
    }

    fn answer_after(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let Some(after) = cursor.solid() else { return false };
        self.mode = Mode::Answer;
        if after == b':' {
            cursor.at += 1;
            self.nothing = adds_nothing(self.word.get());
        } else if !self.word.is_empty() && !self.nothing {
            // One text is enough: the rest is passed over.
            self.facts.content = true;
            self.mode = Mode::Inside;
        }
        false
    }

    fn keep(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) {
        self.keeping = Tag::of(self.next);
        if self.keeping.is_some() {
            cursor.from = cursor.at;
            kept.begin();
        }
    }

    /// A value that was passed over or kept is complete.
    #[inline]
    fn close(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) {
        if self.keeping.is_some() {
            self.end_kept(cursor, kept);
        }
        self.mode = self.in_container();
    }

    #[inline(never)]
    fn end_kept(&mut self, cursor: &mut Cursor<'_>, kept: &mut Kept) {
        if let Some(tag) = self.keeping.take() {
            kept.push(cursor.kept());
            kept.end(tag);
        }
    }

    fn has_room(&self) -> bool {
        usize::from(self.depth) < DEPTH
    }

    fn push(&mut self, node: Node, mode: Mode) {
        if let Some(slot) = self.open.get_mut(usize::from(self.depth)) {
            *slot = node;
            self.depth += 1;
        }
        self.mode = mode;
    }

    /// Closes the innermost container; whether that was the message.
    fn pop(&mut self) -> bool {
        let closed = self.top();
        self.depth = self.depth.saturating_sub(1);
        self.mode = self.in_container();
        closed == Node::Top
    }

    fn top(&self) -> Node {
        let last = usize::from(self.depth).wrapping_sub(1);
        self.open.get(last).copied().unwrap_or(Node::Other)
    }

    #[inline]
    fn in_container(&self) -> Mode {
        match self.top() {
            _ if self.depth == 0 => Mode::Done,
            Node::Root | Node::Choices | Node::Candidates => Mode::Element,
            _ => Mode::Key,
        }
    }
}

#[cfg(test)]
mod tests;
