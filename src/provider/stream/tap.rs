//! Puts the events of a stream together to what it means.

use std::time::Duration;

use super::facts::Kind;
use super::message::{Message, Settled};
use super::prefix::Prefix;
use super::seen::Seen;
use crate::call::Usage;
use crate::provider::sse::Sink;
use crate::verdict::{Class, Verdict};

/// The last event of OpenAI's chat API and all that follow it. It is no JSON.
const DONE: &[u8] = b"[DONE]";

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, and any of them can hold")]
pub(super) struct Tap {
    /// The event in progress, and all usage so far.
    message: Message,
    prefix: Prefix,
    /// An event has begun in parts.
    begun: bool,
    head: Head,
    /// What the event in progress has come to so far.
    settled: Option<Settled>,
    /// A bare JSON text between the events.
    stray: Option<Box<Message>>,
    /// The stray line in progress has had a byte that is no white space.
    in_line: bool,
    wall: Duration,
    seen: Seen,
    failure: Option<Verdict>,
    terminal: bool,
    finished: bool,
    known: bool,
    /// There was an event or a line that is not understood.
    foreign: bool,
}

/// The first bytes of an event that comes in parts.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    bytes: [u8; DONE.len()],
    len: u8,
}

impl Tap {
    pub(super) fn set_wall(&mut self, wall: Duration) {
        self.wall = wall;
        self.message.set_wall(wall);
    }

    /// What was seen since the last call.
    pub(super) fn take_seen(&mut self) -> Seen {
        std::mem::take(&mut self.seen)
    }

    pub(super) fn usage(&self) -> Usage {
        self.message.usage()
    }

    pub(super) fn failure(&self) -> Option<Verdict> {
        self.failure
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub(super) fn ended_well(&self) -> bool {
        self.terminal || self.finished
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let stray = self.stray.as_ref().map_or(0, |stray| stray.kept.held());
        self.message.kept.held() + self.prefix.held() + stray
    }

    /// Whether this is an API that is known here; a stream that has not said anything is taken for one.
    pub(super) fn is_known(&self) -> bool {
        self.known || !self.foreign
    }

    fn take(&mut self, settled: Settled) {
        self.seen |= settled.seen;
        self.terminal |= settled.seen.is_terminal();
        self.finished |= settled.finished;
        self.known |= settled.known;
        if let Some(failure) = settled.failure {
            self.failure.get_or_insert(failure);
        }
    }

    fn done(&mut self) {
        self.seen |= Seen::TERMINAL;
        self.terminal = true;
        self.known = true;
    }

    /// An event whose data are no message. Its name may say enough.
    fn unread(&mut self, name: &[u8]) {
        match Kind::of(name) {
            Kind::Error | Kind::Failed => {
                self.failure.get_or_insert(Verdict::new(Class::Transient));
                self.seen |= Seen::ERROR;
                self.known = true;
            }
            Kind::Terminal => self.done(),
            _ => self.foreign = true,
        }
    }

    /// Reads messages up to the end of `data`. What they come to is held back until the event is complete.
    fn read(&mut self, mut data: &[u8], name: &[u8]) {
        while !data.is_empty() {
            let (read, complete) = self.message.feed(data);
            if complete {
                let settled = self.message.settle(name);
                let so_far = self.settled.get_or_insert(settled);
                so_far.add(settled);
            }
            data = data.get(read..).unwrap_or_default();
        }
    }

    fn conclude(&mut self, name: &[u8]) {
        let Some(settled) = self.settled.take() else { return self.unread(name) };
        self.take(settled);
        // The name of an event may stand after its data.
        if !settled.known {
            self.unread(name);
        }
    }
}

impl Settled {
    fn add(&mut self, later: Self) {
        self.seen |= later.seen;
        self.failure = self.failure.or(later.failure);
        self.finished |= later.finished;
        self.known |= later.known;
    }
}

impl Sink for Tap {
    fn event(&mut self, name: &[u8], data: &[u8]) {
        self.stray = None;
        let data = trim_start(data);
        if data.starts_with(DONE) {
            self.done();
            return;
        }
        self.settled = None;
        let rest = self.prefix.begin(data, &mut self.message);
        self.read(rest, name);
        self.conclude(name);
    }

    fn part(&mut self, name: &[u8], data: &[u8]) {
        if !self.begun {
            self.begin();
            self.begun = true;
        }
        self.head.push(data);
        self.read(data, name);
    }

    fn end(&mut self, name: &[u8], terminated: bool) {
        if !std::mem::take(&mut self.begun) {
            self.begin();
        }
        if self.head.get() == DONE {
            self.done();
        } else if self.settled.is_some() {
            self.conclude(name);
        } else if terminated {
            self.unread(name);
        } else {
            // Cut off in the middle of a message: that much is known.
            self.known |= self.message.is_open();
            self.foreign |= !self.message.is_open();
        }
    }

    fn stray(&mut self, part: &[u8]) {
        if self.stray.is_none() && !self.in_line {
            let text = trim_start(part);
            self.in_line = !text.is_empty();
            if !matches!(text.first(), Some(b'{' | b'[')) {
                self.foreign |= self.in_line;
                return;
            }
            let mut message = Message::default();
            message.set_wall(self.wall);
            self.stray = Some(Box::new(message));
        }
        self.in_line = true;
        self.read_stray(part);
    }

    fn stray_end(&mut self) {
        self.in_line = false;
        self.read_stray(b"\n");
    }
}

impl Tap {
    fn begin(&mut self) {
        self.stray = None;
        self.settled = None;
        self.head.len = 0;
        self.message.restart();
    }

    fn read_stray(&mut self, mut part: &[u8]) {
        let Some(mut stray) = self.stray.take() else { return };
        while !part.is_empty() {
            let (read, complete) = stray.feed(part);
            if complete {
                let settled = stray.settle(b"");
                self.message.take_counts(&stray);
                self.foreign |= !settled.known;
                self.take(settled);
            }
            part = part.get(read..).unwrap_or_default();
        }
        if !stray.is_done() {
            self.stray = Some(stray);
        }
    }
}

impl Head {
    fn get(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn push(&mut self, part: &[u8]) {
        let part = if self.len == 0 { trim_start(part) } else { part };
        for &byte in part {
            let Some(slot) = self.bytes.get_mut(usize::from(self.len)) else { return };
            *slot = byte;
            self.len += 1;
        }
    }
}

/// Without white space before it, as JSON has it: a form feed is none.
fn trim_start(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = text {
        text = rest;
    }
    text
}
