//! Whatever the frames, the events are those of a reader that sees the whole stream and goes by the standard.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seawall::provider::sse::{Parser, Sink};
use seawall_fuzz::Frames;

/// The longest event name that is kept.
const NAME_MAX: usize = 64;

#[derive(Debug, PartialEq, Eq)]
struct Event {
    name: Vec<u8>,
    data: Vec<u8>,
    terminated: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    events: Vec<Event>,
    stray: Vec<u8>,
    alive: usize,
    parts: Vec<u8>,
}

impl Sink for Found {
    fn event(&mut self, name: &[u8], data: &[u8]) {
        assert!(self.parts.is_empty(), "an event within an event");
        self.events.push(Event { name: name.to_vec(), data: data.to_vec(), terminated: true });
    }

    fn part(&mut self, _: &[u8], data: &[u8]) {
        self.parts.extend_from_slice(data);
    }

    fn end(&mut self, name: &[u8], terminated: bool) {
        let data = std::mem::take(&mut self.parts);
        self.events.push(Event { name: name.to_vec(), data, terminated });
    }

    fn alive(&mut self) {
        self.alive += 1;
    }

    fn stray(&mut self, part: &[u8]) {
        self.stray.extend_from_slice(part);
    }

    fn stray_end(&mut self) {
        self.stray.push(b'\n');
    }
}

fn read<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Found {
    let (mut parser, mut found) = (Parser::new(), Found::default());
    frames.for_each(|frame| parser.feed(frame, &mut found));
    parser.finish(&mut found);
    found
}

/// The lines of a stream, ended by LF, CR LF or CR; the last one may be cut.
fn lines(stream: &[u8]) -> Vec<&[u8]> {
    let mut rest = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut lines = Vec::new();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        let (line, end) = rest.split_at(at);
        lines.push(line);
        rest = end.strip_prefix(b"\r\n").unwrap_or(&end[1..]);
    }
    lines.push(rest);
    lines
}

/// The events by the standard's own description, that of the cut end among them.
fn expected(stream: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let (mut name, mut data) = (Vec::new(), None::<Vec<u8>>);
    let lines = lines(stream);
    let last = lines.len() - 1;
    for (at, line) in lines.into_iter().enumerate() {
        if line.is_empty() && at < last {
            if let Some(data) = data.take() {
                events.push(Event { name: std::mem::take(&mut name), data, terminated: true });
            }
            name.clear();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            b"event" => name = value[..value.len().min(NAME_MAX)].to_vec(),
            _ => {}
        }
    }
    events.extend(data.map(|data| Event { name, data, terminated: false }));
    events
}

fuzz_target!(|input: &[u8]| {
    let frames = Frames::read(input);
    let whole = read(std::iter::once(frames.body));
    assert_eq!(whole.events, expected(frames.body));
    assert_eq!(read(frames.cut()), whole);
    assert_eq!(read(frames.bytes()), whole);
});
