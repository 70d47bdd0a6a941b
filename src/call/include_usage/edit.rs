//! Puts the option into a body. Pure.

use std::ops::Range;

use crate::call::json::{Lexer, Malformed, Token};

const OPTION: &[u8] = br#""include_usage":true"#;
const OPTIONS: &[u8] = br#"{"include_usage":true}"#;
const MEMBER: &[u8] = br#""stream_options":{"include_usage":true},"#;

/// What a body says about the usage of its stream.
#[derive(Default)]
struct Found {
    stream: bool,
    /// Behind the brace that opens the body.
    start: usize,
    /// How many members are called `stream_options`.
    options: u32,
    /// Behind the brace that opens them.
    inside: Option<usize>,
    /// Whether there is anything in them.
    filled: bool,
    /// The value that is given instead: `null` in their place, or one for the option.
    scalar: Option<Range<usize>>,
    settings: u32,
    /// Something that is not understood: better let it be.
    odd: bool,
}

/// The body with the option, or `None` where it asks for no stream, asks for its usage already, or is not understood.
pub(super) fn ask_for_usage(body: &[u8]) -> Option<Vec<u8>> {
    let found = Found::read(body).ok()?;
    if !found.stream || found.odd || found.options > 1 || found.settings > 1 {
        return None;
    }
    let put = |at: Range<usize>, parts: &[&[u8]]| {
        let (before, after) = (body.get(..at.start)?, body.get(at.end..)?);
        Some([before, &parts.concat(), after].concat())
    };
    match (found.inside, found.scalar) {
        (Some(_), Some(value)) if body.get(value.clone()) == Some(b"true") => None,
        (Some(_), Some(value)) => put(value, &[b"true"]),
        (Some(at), None) if found.filled => put(at..at, &[OPTION, b","]),
        (Some(at), None) => put(at..at, &[OPTION]),
        (None, Some(null)) => put(null, &[OPTIONS]),
        (None, None) => put(found.start..found.start, &[MEMBER]),
    }
}

/// Which member is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Other,
    Stream,
    Options,
    Setting,
}

impl Found {
    fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut lexer = Lexer::new(body);
        let Some(Token::Open { object: true, at }) = lexer.next()? else { return Err(Malformed) };
        let mut found = Self { start: at + 1, ..Self::default() };
        let (mut member, mut nested) = (At::Other, At::Other);
        while let Some(token) = lexer.next()? {
            let depth = lexer.depth();
            match token {
                Token::Key(key) if depth == 1 => {
                    (member, nested) = (found.member(&key.meant(body)), At::Other);
                }
                Token::Key(key) if depth == 2 && member == At::Options => {
                    found.filled = true;
                    nested = if &*key.meant(body) == b"include_usage" { At::Setting } else { At::Other };
                    found.settings += u32::from(nested == At::Setting);
                }
                Token::Open { object, at } if member == At::Options => match (depth, object) {
                    (2, true) => found.inside = Some(at + 1),
                    (2, false) => found.odd = true,
                    _ => found.odd |= nested == At::Setting,
                },
                Token::String(_) if member == At::Options => {
                    found.odd |= depth == 1 || (depth == 2 && nested == At::Setting);
                }
                Token::Scalar { start, end } => match (member, depth) {
                    (At::Stream, 1) => found.stream = body.get(start..end) == Some(b"true"),
                    (At::Options, 1) => {
                        found.odd |= body.get(start..end) != Some(b"null");
                        found.scalar = Some(start..end);
                    }
                    (At::Options, 2) if nested == At::Setting => found.scalar = Some(start..end),
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(found)
    }

    fn member(&mut self, name: &[u8]) -> At {
        match name {
            b"stream" => At::Stream,
            b"stream_options" => {
                self.options += 1;
                At::Options
            }
            _ => At::Other,
        }
    }
}
