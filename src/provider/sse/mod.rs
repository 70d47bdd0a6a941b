//! Server-sent events, read as they pass, without holding them.
//!
//! [`Parser`] is fed the frames of a body as they come and tells a [`Sink`] what is in them. It keeps no event: one
//! that lies in a single frame is handed over whole, as a slice of that frame; one that is cut by frames is handed
//! over in parts. What it holds beyond that is a field name and an event name, whatever the stream does: lines without
//! an end and events without an end cost time linear in their length and no memory.
//!
//! What it takes as a line end is LF, CR LF or CR, also when the two bytes of CR LF lie in different frames, and
//! nothing else: U+2028 and its like occur raw inside JSON. A leading byte order mark is dropped, the space after the
//! colon may be missing, several `data:` lines of one event join with a line feed, and `id:`, `retry:` and comments are
//! signs of life. The standard drops an event that the end of the stream cuts off; since some servers leave out the last
//! blank line, it is handed over here and marked as not terminated, and the sink decides.

use memchr::memchr2;

/// Takes what a [`Parser`] finds.
pub trait Sink {
    /// An event that lay in one frame. The name is empty where none was given.
    fn event(&mut self, name: &[u8], data: &[u8]);

    /// A part of the data of an event that does not lie in one frame, or that has several `data:` lines. The line feeds
    /// that join such lines are parts too. The name is what is known of it so far: it may stand after the data.
    fn part(&mut self, name: &[u8], data: &[u8]);

    /// The end of an event that came in parts, maybe in none. `terminated` says that its blank line was there; without
    /// it the stream ended early, or the server left the blank line out.
    fn end(&mut self, name: &[u8], terminated: bool);

    /// A sign of life that is no event: a comment, an empty line, another field.
    fn alive(&mut self) {}

    /// A part of a line that is no field at all. Some servers print a bare JSON error in the middle of a stream.
    fn stray(&mut self, part: &[u8]) {
        let _ = part;
    }

    /// The end of a line that is no field.
    fn stray_end(&mut self) {}
}

/// An incremental parser of server-sent events; see the [module](self).
///
/// ```
/// use seawall::provider::sse::{Parser, Sink};
///
/// /// Keeps all events, each with a line feed behind it.
/// #[derive(Default)]
/// struct Events(Vec<u8>);
///
/// impl Sink for Events {
///     fn event(&mut self, name: &[u8], data: &[u8]) {
///         self.part(name, data);
///         self.end(name, true);
///     }
///     fn part(&mut self, _: &[u8], data: &[u8]) { self.0.extend_from_slice(data) }
///     fn end(&mut self, _: &[u8], _: bool) { self.0.push(b'\n') }
/// }
///
/// let (mut parser, mut events) = (Parser::new(), Events::default());
/// parser.feed(b"data: one\n\ndata: tw", &mut events);
/// parser.feed(b"o\n\n", &mut events);
/// assert_eq!(events.0, b"one\ntwo\n");
/// ```
#[derive(Clone, Debug)]
pub struct Parser {
    state: State,
    /// The last byte was a CR that ended a line: an LF that follows belongs to it.
    after_cr: bool,
    /// How much of a leading byte order mark has been seen; [`BOM_DONE`] when it no longer matters.
    bom: u8,
    /// The event in progress has had a `data:` line.
    has_data: bool,
    word: [u8; FIELD_MAX],
    word_len: u8,
    name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LineStart,
    /// Inside a field's name; its bytes are in `word`.
    Field,
    /// After the colon, where one space may be left out.
    Colon(Field),
    Value(Field),
    Stray,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    /// `id:`, `retry:` and comments.
    Other,
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
const BOM_DONE: u8 = 3;
/// The longest field name that means something, `event` and `retry`.
const FIELD_MAX: usize = 5;
/// The longest event name that is kept; providers use about fifty bytes.
const NAME_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Name {
    bytes: [u8; NAME_MAX],
    len: u8,
}

impl Name {
    fn get(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    fn push(&mut self, more: &[u8]) {
        let from = usize::from(self.len);
        let more = more.get(..NAME_MAX - from).unwrap_or(more);
        if let Some(to) = self.bytes.get_mut(from..from + more.len()) {
            to.copy_from_slice(more);
            self.len += u8::try_from(more.len()).unwrap_or_default();
        }
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// At the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::LineStart,
            after_cr: false,
            bom: 0,
            has_data: false,
            word: [0; FIELD_MAX],
            word_len: 0,
            name: Name { bytes: [0; NAME_MAX], len: 0 },
        }
    }

    /// Reads the next frame.
    pub fn feed<S: Sink>(&mut self, frame: &[u8], sink: &mut S) {
        let mut rest = frame;
        if self.bom < BOM_DONE {
            rest = self.skip_bom(rest, sink);
        }
        while let Some(&first) = rest.first() {
            rest = match self.state {
                State::LineStart => self.line_start(first, rest, sink),
                State::Field => self.field(rest, sink),
                State::Colon(field) => {
                    self.state = State::Value(field);
                    rest.strip_prefix(b" ").unwrap_or(rest)
                }
                State::Value(field) => self.value(field, rest, sink),
                State::Stray => self.stray(rest, sink),
            };
        }
    }

    /// The stream has ended. What it cut off is handed over as not terminated.
    pub fn finish<S: Sink>(&mut self, sink: &mut S) {
        match self.state {
            State::Stray => sink.stray_end(),
            State::Field => self.field_without_colon(sink),
            _ => {}
        }
        if self.has_data {
            sink.end(self.name.get(), false);
        }
        self.state = State::LineStart;
        self.has_data = false;
        self.name.clear();
    }

    fn line_start<'a, S: Sink>(&mut self, first: u8, rest: &'a [u8], sink: &mut S) -> &'a [u8] {
        if self.after_cr {
            self.after_cr = false;
            if first == b'\n' {
                return rest.get(1..).unwrap_or_default();
            }
        }
        match first {
            b'\n' | b'\r' => {
                self.blank(sink);
                self.line_end(rest)
            }
            b'd' if rest.starts_with(b"data:") => self.data_line(rest.get(5..).unwrap_or_default(), sink),
            b'e' if rest.starts_with(b"event:") => self.event_line(rest.get(6..).unwrap_or_default(), sink),
            b':' => {
                self.start(Field::Other, sink);
                rest.get(1..).unwrap_or_default()
            }
            _ => {
                self.word_len = 0;
                self.state = State::Field;
                rest
            }
        }
    }

    /// A data line: the common case, an event of one such line that lies in this frame, is handed over at once.
    fn data_line<'a, S: Sink>(&mut self, rest: &'a [u8], sink: &mut S) -> &'a [u8] {
        let value = rest.strip_prefix(b" ").unwrap_or(rest);
        if !self.has_data
            && let Some(at) = memchr2(b'\n', b'\r', value)
            && let Some((data, tail)) = value.split_at_checked(at)
            && let Some(after) = skip_line_end(tail)
            && matches!(after.first(), Some(b'\n' | b'\r'))
        {
            sink.event(self.name.get(), data);
            self.name.clear();
            return self.line_end(after);
        }
        self.start(Field::Data, sink);
        rest
    }

    fn event_line<'a, S: Sink>(&mut self, rest: &'a [u8], sink: &mut S) -> &'a [u8] {
        self.start(Field::Event, sink);
        let value = rest.strip_prefix(b" ").unwrap_or(rest);
        let (name, tail) = up_to_line_end(value);
        if tail.is_empty() {
            return rest;
        }
        self.name.push(name);
        self.state = State::LineStart;
        self.line_end(tail)
    }

    /// A field's name is complete; its value follows.
    fn start<S: Sink>(&mut self, field: Field, sink: &mut S) {
        match field {
            Field::Data => {
                if self.has_data {
                    sink.part(self.name.get(), b"\n");
                }
                self.has_data = true;
            }
            Field::Event => self.name.clear(),
            Field::Other => {}
        }
        self.state = State::Colon(field);
    }

    fn field<'a, S: Sink>(&mut self, rest: &'a [u8], sink: &mut S) -> &'a [u8] {
        for (at, &byte) in rest.iter().enumerate() {
            match byte {
                b':' => {
                    let Some(field) = field_of(self.word()) else {
                        self.begin_stray(sink);
                        return rest.get(at..).unwrap_or_default();
                    };
                    self.start(field, sink);
                    return rest.get(at + 1..).unwrap_or_default();
                }
                b'\n' | b'\r' => {
                    self.field_without_colon(sink);
                    self.state = State::LineStart;
                    return self.line_end(rest.get(at..).unwrap_or_default());
                }
                _ => match self.word.get_mut(usize::from(self.word_len)) {
                    Some(slot) if byte.is_ascii_lowercase() => {
                        *slot = byte;
                        self.word_len += 1;
                    }
                    _ => {
                        self.begin_stray(sink);
                        return rest.get(at..).unwrap_or_default();
                    }
                },
            }
        }
        &[]
    }

    /// By the standard a line without a colon is a field without a value.
    fn field_without_colon<S: Sink>(&mut self, sink: &mut S) {
        match field_of(self.word()) {
            Some(Field::Other) => sink.alive(),
            Some(field) => self.start(field, sink),
            None => {
                self.begin_stray(sink);
                sink.stray_end();
            }
        }
    }

    fn begin_stray<S: Sink>(&mut self, sink: &mut S) {
        sink.stray(self.word());
        self.state = State::Stray;
    }

    fn value<'a, S: Sink>(&mut self, field: Field, rest: &'a [u8], sink: &mut S) -> &'a [u8] {
        let (value, tail) = up_to_line_end(rest);
        match field {
            Field::Data if !value.is_empty() => sink.part(self.name.get(), value),
            Field::Event => self.name.push(value),
            Field::Other if !tail.is_empty() => sink.alive(),
            _ => {}
        }
        if tail.is_empty() {
            return tail;
        }
        self.state = State::LineStart;
        self.line_end(tail)
    }

    fn stray<'a, S: Sink>(&mut self, rest: &'a [u8], sink: &mut S) -> &'a [u8] {
        let (line, tail) = up_to_line_end(rest);
        sink.stray(line);
        if tail.is_empty() {
            return tail;
        }
        sink.stray_end();
        self.state = State::LineStart;
        self.line_end(tail)
    }

    fn blank<S: Sink>(&mut self, sink: &mut S) {
        if self.has_data {
            sink.end(self.name.get(), true);
            self.has_data = false;
        } else {
            sink.alive();
        }
        self.name.clear();
    }

    /// Passes over the line end that `rest` begins with.
    fn line_end<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        self.after_cr = rest == b"\r";
        skip_line_end(rest).unwrap_or(rest)
    }

    fn word(&self) -> &[u8] {
        self.word.get(..usize::from(self.word_len)).unwrap_or_default()
    }

    fn skip_bom<'a, S: Sink>(&mut self, frame: &'a [u8], sink: &mut S) -> &'a [u8] {
        let mut rest = frame;
        while let Some(expected) = BOM.get(usize::from(self.bom)) {
            let Some((first, after)) = rest.split_first() else { return rest };
            if first != expected {
                // It only began like one: the bytes belong to the first line.
                if let Some(begun) = BOM.get(..usize::from(self.bom))
                    && !begun.is_empty()
                {
                    sink.stray(begun);
                    self.state = State::Stray;
                }
                self.bom = BOM_DONE;
                return rest;
            }
            self.bom += 1;
            rest = after;
        }
        rest
    }
}

fn field_of(word: &[u8]) -> Option<Field> {
    match word {
        b"data" => Some(Field::Data),
        b"event" => Some(Field::Event),
        b"id" | b"retry" => Some(Field::Other),
        _ => None,
    }
}

/// The line up to its end, and the rest from its end on; the rest is empty if there is no end.
fn up_to_line_end(bytes: &[u8]) -> (&[u8], &[u8]) {
    memchr2(b'\n', b'\r', bytes).and_then(|at| bytes.split_at_checked(at)).unwrap_or((bytes, &[]))
}

fn skip_line_end(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b'\r', b'\n', rest @ ..] | [b'\r' | b'\n', rest @ ..] => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
