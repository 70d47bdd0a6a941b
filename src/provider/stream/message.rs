//! One message after another: an event of a stream, a body, an element of an array of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::facts::{Facts, Finish, Kind};
use super::kept::{Kept, Tag};
use super::scan::Scan;
use super::seen::Seen;
use crate::call::Usage;
use crate::provider::error;
use crate::provider::usage::Counts;
use crate::verdict::{Class, Reason, Verdict};

/// Reads messages piece by piece and adds up what they report.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(super) scan: Scan,
    pub(super) kept: Kept,
    counts: Counts,
    wall: Duration,
}

/// What a message came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    pub(crate) seen: Seen,
    pub(crate) failure: Option<Verdict>,
    /// It gave a proper reason for the end of the answer.
    pub(super) finished: bool,
    /// It belongs to an API that is known here.
    pub(super) known: bool,
}

impl Default for Message {
    fn default() -> Self {
        Self { scan: Scan::new(), kept: Kept::new(), counts: Counts::default(), wall: Duration::ZERO }
    }
}

impl Message {
    pub(crate) fn set_wall(&mut self, wall: Duration) {
        self.wall = wall;
    }

    /// Forgets a message in progress.
    pub(super) fn restart(&mut self) {
        self.resume(Scan::new());
    }

    /// Begins a message whose first bytes have been read before.
    pub(super) fn resume(&mut self, scan: Scan) {
        self.scan = scan;
        if !self.kept.is_empty() || self.kept.has_lost() {
            self.kept.clear();
        }
    }

    /// Reads on, up to the end of a message at most; says how far, and whether a message is complete. Then
    /// [`settle`](Self::settle) it.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> (usize, bool) {
        self.scan.feed(bytes, &mut self.kept)
    }

    /// Takes over what a complete message says. `name` is that of its event, empty if it has none.
    pub(crate) fn settle(&mut self, name: &[u8]) -> Settled {
        let facts = std::mem::take(&mut self.scan.facts);
        let kind = match (facts.kind, name) {
            (_, b"error") => Kind::Error,
            (Kind::Unsaid, name) => Kind::of(name),
            (said, _) => said,
        };
        let mut seen = Seen::NOTHING;
        if facts.content || kind == Kind::Part {
            seen |= Seen::CONTENT;
        }
        if matches!(kind, Kind::Terminal | Kind::Failed) {
            seen |= Seen::TERMINAL;
        }
        let plain = self.kept.is_empty() && !self.kept.has_lost();
        let failure = if plain && kind != Kind::Error && kind != Kind::Failed {
            facts.blocked.then(blocked)
        } else {
            if self.take_usage() {
                seen |= Seen::USAGE;
            }
            let failure = self.failure(facts, kind);
            self.kept.clear();
            failure
        };
        if failure.is_some() {
            seen |= Seen::ERROR;
        }
        let finished = facts.finish == Some(Finish::Proper);
        let known = facts.known || failure.is_some() || seen.is_terminal();
        Settled { seen, failure, finished, known }
    }

    /// Takes over the usage that another reader has read.
    pub(super) fn take_counts(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
    }

    pub(crate) fn usage(&self) -> Usage {
        self.counts.usage()
    }

    /// Whether the message in progress has brought a part of the answer already.
    pub(crate) fn has_content(&self) -> bool {
        self.scan.facts.content
    }

    pub(crate) fn is_open(&self) -> bool {
        self.scan.is_open()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.scan.is_done()
    }

    fn take_usage(&mut self) -> bool {
        let mut any = self.kept.has_lost_usage();
        if any {
            self.counts.flag();
        }
        for report in self.kept.all(Tag::Usage) {
            any = true;
            match serde_json::from_slice(report) {
                Ok(report) => self.counts.update(&report),
                Err(_) => self.counts.flag(),
            }
        }
        any
    }

    fn failure(&self, facts: Facts, kind: Kind) -> Option<Verdict> {
        let told = self.kept.all(Tag::Error).filter_map(|raw| serde_json::from_slice(raw).ok()).find(is_said);
        if let Some(told) = told {
            return Some(self.judge(&self.with_code(told)));
        }
        if matches!(kind, Kind::Error | Kind::Failed) {
            let code = self.kept.json(Tag::Code);
            let message = self.kept.json(Tag::Message);
            return Some(self.judge(&json!({ "code": code, "message": message })));
        }
        if let Some(reason) = self.kept.all(Tag::Finish).next() {
            return Some(failed(error::of_code(&String::from_utf8_lossy(reason))));
        }
        // There is an error, of which nothing is known because it was too large or broken.
        let unread = self.kept.has_lost_error() || self.kept.all(Tag::Error).any(is_broken);
        unread.then(|| Verdict::new(Class::Transient)).or_else(|| facts.blocked.then(blocked))
    }

    /// An error that is only a text may have its code beside it.
    fn with_code(&self, told: Value) -> Value {
        match (told, self.kept.json(Tag::Code)) {
            (Value::String(text), Some(code)) => json!({ "error": text, "code": code }),
            (told, _) => told,
        }
    }

    fn judge(&self, event: &Value) -> Verdict {
        failed(error::in_stream(event, self.wall))
    }
}

/// An error is never a success, whatever code it carries.
fn failed(verdict: Verdict) -> Verdict {
    if verdict.is_success() { Verdict::new(Class::Transient) } else { verdict }
}

/// The prompt was blocked: Gemini answers with 200 and no candidate.
fn blocked() -> Verdict {
    Verdict::new(Class::Invalid).with_reason(Reason::Policy)
}

/// Whether there is an error in an `error`: some servers write it always, and empty where there is none.
fn is_said(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(code) => code.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => all.iter().any(is_said),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn is_broken(raw: &[u8]) -> bool {
    serde_json::from_slice::<Value>(raw).is_err()
}
