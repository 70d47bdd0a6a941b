//! What a message says about itself, by the words in it.

use super::kept::{Kept, Tag};
use super::node::Node;

/// What a message says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// It carries a part of an answer.
    pub(super) content: bool,
    pub(super) finish: Option<Finish>,
    pub(super) kind: Kind,
    /// The prompt was blocked.
    pub(super) blocked: bool,
    /// It has a key by which an API that is known here tells itself.
    pub(super) known: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Proper,
    /// The reason given is that something went wrong.
    Failed,
}

/// What an event is by its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Unsaid,
    Other,
    /// The end of the stream.
    Terminal,
    /// The end of the stream, and of the answer as a failure.
    Failed,
    Error,
    /// A part of the answer is complete.
    Part,
}

impl Kind {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"" => Self::Unsaid,
            b"message_stop"
            | b"message-end"
            | b"response.completed"
            | b"response.incomplete"
            | b"response.cancelled" => Self::Terminal,
            b"response.failed" => Self::Failed,
            b"error" | b"response.error" => Self::Error,
            _ if name.ends_with(b".done") => Self::Part,
            _ => Self::Other,
        }
    }
}

impl Facts {
    pub(super) const fn new() -> Self {
        Self { content: false, finish: None, kind: Kind::Unsaid, blocked: false, known: false }
    }

    pub(super) fn take(&mut self, node: Node, word: &[u8], kept: &mut Kept) {
        match node {
            Node::Kind => {
                if self.kind == Kind::Unsaid {
                    self.kind = Kind::of(word);
                }
                self.known |=
                    [&b"response."[..], b"message", b"content"].iter().any(|api| word.starts_with(api));
            }
            Node::Object if word == b"error" => self.kind = Kind::Error,
            Node::Block => self.blocked |= !word.is_empty() && word != b"BLOCK_REASON_UNSPECIFIED",
            Node::Finish if word.is_empty() || word == b"FINISH_REASON_UNSPECIFIED" => {}
            Node::Finish if is_failure(word) => {
                let before = self.finish.replace(Finish::Failed);
                if before != Some(Finish::Failed) {
                    kept.put(Tag::Finish, word);
                }
            }
            Node::Finish => self.finish = self.finish.or(Some(Finish::Proper)),
            _ => {}
        }
    }
}

/// Reasons to end that are failures of the server: the words of OpenRouter, Cohere and DeepSeek.
fn is_failure(reason: &[u8]) -> bool {
    [&b"error"[..], b"timeout", b"insufficient_system_resource"]
        .iter()
        .any(|failure| reason.eq_ignore_ascii_case(failure))
}

/// More than the longest word that matters.
const WORD: usize = 40;

/// A key or a text that is compared, as far as it fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    bytes: [u8; WORD],
    len: u8,
}

impl Word {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; WORD], len: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Takes what fits: no word that matters is as long as `WORD`.
    pub(super) fn push(&mut self, part: &[u8]) {
        let from = usize::from(self.len);
        for (slot, &byte) in self.bytes.iter_mut().skip(from).zip(part) {
            *slot = byte;
            self.len += 1;
        }
    }
}
