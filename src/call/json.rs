//! A JSON lexer that never recurses, never allocates and never builds a value.
//!
//! It checks the grammar as far as the place of every key and value depends on it. It is more lenient than a parser in
//! what is inside a string: control characters and bad UTF-8 pass, since no position depends on them.

use std::borrow::Cow;
use std::ops::Range;

/// The input is not JSON, or nested too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// How deep the input may be nested. Widely used parsers stop at the same depth, and no API comes near it.
pub(crate) const MAX_DEPTH: u32 = 128;

/// What stands between the quotes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether there is a backslash in it.
    pub(crate) escaped: bool,
}

impl Text {
    /// The bytes as they stand.
    pub(crate) fn raw<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        input.get(self.start..self.end).unwrap_or_default()
    }

    /// The bytes that are meant; a bad escape is nothing.
    pub(crate) fn meant<'a>(&self, input: &'a [u8]) -> Cow<'a, [u8]> {
        let raw = self.raw(input);
        if !self.escaped {
            return Cow::Borrowed(raw);
        }
        Cow::Owned(unescape(raw).unwrap_or_default())
    }

    /// The string with its quotes.
    pub(crate) fn quoted(&self) -> Range<usize> {
        self.start - 1..self.end + 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// `{` or `[`, at this offset.
    Open { object: bool, at: usize },
    /// `}` or `]`, and the offset behind it.
    Close { end: usize },
    /// A member's name; its value is the next token.
    Key(Text),
    /// A string that is a value.
    String(Text),
    /// A number, `true`, `false` or `null`.
    Scalar { start: usize, end: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    FirstKey,
    Key,
    FirstItem,
    CommaOrClose,
}

/// Goes through the tokens of one JSON text.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    input: &'a [u8],
    at: usize,
    depth: u32,
    /// One bit a level, the lowest for the innermost: whether it is an object.
    objects: u128,
    expect: Expect,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0, depth: 0, objects: 0, expect: Expect::Value }
    }

    /// How many objects and arrays are open, the token just read included.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// The next token, or `None` where the text ends as it should.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "measured: a body of short strings takes less than half the time"
    )]
    pub(crate) fn next(&mut self) -> Result<Option<Token>, Malformed> {
        let mut byte = self.skip_space();
        if self.expect == Expect::CommaOrClose {
            match byte {
                None if self.depth == 0 => return Ok(None),
                Some(b',') if self.depth > 0 => {
                    self.at += 1;
                    self.expect = if self.in_object() { Expect::Key } else { Expect::Value };
                    byte = self.skip_space();
                }
                Some(b'}' | b']') => return self.close(byte).map(Some),
                _ => return Err(Malformed),
            }
        }
        let byte = byte.ok_or(Malformed)?;
        let token = match (self.expect, byte) {
            (Expect::FirstKey | Expect::Key, b'"') => self.key()?,
            (Expect::FirstKey, b'}') | (Expect::FirstItem, b']') => self.close(Some(byte))?,
            (Expect::FirstKey | Expect::Key | Expect::CommaOrClose, _) => return Err(Malformed),
            (Expect::Value | Expect::FirstItem, _) => self.value(byte)?,
        };
        Ok(Some(token))
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn value(&mut self, byte: u8) -> Result<Token, Malformed> {
        match byte {
            b'{' | b'[' => self.open(byte == b'{'),
            b'"' => {
                self.expect = Expect::CommaOrClose;
                self.string().map(Token::String)
            }
            _ => self.scalar(),
        }
    }

    fn open(&mut self, object: bool) -> Result<Token, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(Malformed);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(object);
        self.expect = if object { Expect::FirstKey } else { Expect::FirstItem };
        self.at += 1;
        Ok(Token::Open { object, at: self.at - 1 })
    }

    fn close(&mut self, byte: Option<u8>) -> Result<Token, Malformed> {
        if self.depth == 0 || (byte == Some(b'}')) != self.in_object() {
            return Err(Malformed);
        }
        self.depth -= 1;
        self.objects >>= 1;
        self.expect = Expect::CommaOrClose;
        self.at += 1;
        Ok(Token::Close { end: self.at })
    }

    fn key(&mut self) -> Result<Token, Malformed> {
        let text = self.string()?;
        if self.skip_space() != Some(b':') {
            return Err(Malformed);
        }
        self.at += 1;
        self.expect = Expect::Value;
        Ok(Token::Key(text))
    }

    /// Reads a string; `at` is at its first quote.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "measured: a body of short strings takes less than half the time"
    )]
    fn string(&mut self) -> Result<Text, Malformed> {
        let start = self.at + 1;
        let mut at = start;
        // Names and words end within a few bytes, where calling the search costs more than it finds.
        for _ in 0..2 {
            let Some(chunk) = self.input.get(at..).and_then(<[u8]>::first_chunk) else { break };
            match quote_or_backslash(*chunk) {
                Some(offset) if self.input.get(at + offset) == Some(&b'"') => {
                    self.at = at + offset + 1;
                    return Ok(Text { start, end: at + offset, escaped: false });
                }
                Some(_) => break,
                None => at += chunk.len(),
            }
        }
        let rest = self.input.get(at..).ok_or(Malformed)?;
        let found = at + memchr::memchr2(b'"', b'\\', rest).ok_or(Malformed)?;
        let escaped = self.input.get(found) == Some(&b'\\');
        let end = if escaped { self.end_of_escaped(found)? } else { found };
        self.at = end + 1;
        Ok(Text { start, end, escaped })
    }

    /// Where a string ends, from its first backslash on. Only quotes are looked for: text has many escapes, of which few are
    /// of quotes.
    #[inline(never)]
    fn end_of_escaped(&self, first: usize) -> Result<usize, Malformed> {
        let mut from = first + 2;
        loop {
            let rest = self.input.get(from..).ok_or(Malformed)?;
            let quote = from + memchr::memchr(b'"', rest).ok_or(Malformed)?;
            let before = self.input.get(first..quote).unwrap_or_default();
            let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes.is_multiple_of(2) {
                return Ok(quote);
            }
            from = quote + 1;
        }
    }

    fn scalar(&mut self) -> Result<Token, Malformed> {
        let start = self.at;
        let rest = self.input.get(start..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.'))
            .unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        if !matches!(text, b"true" | b"false" | b"null") && !is_number(text) {
            return Err(Malformed);
        }
        self.at = start + length;
        self.expect = Expect::CommaOrClose;
        Ok(Token::Scalar { start, end: self.at })
    }

    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            match self.input.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }
}

/// The offset of the first quote or backslash.
#[inline]
fn quote_or_backslash(chunk: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let chunk = u64::from_le_bytes(chunk);
    // A byte that is zero borrows, and its high bit is set then; above the lowest such byte bits may be wrong.
    let zeros = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes & HIGHS;
    let found = zeros(chunk ^ (ONES * u64::from(b'"'))) | zeros(chunk ^ (ONES * u64::from(b'\\')));
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// Whether this is a number by JSON's grammar.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.first() == Some(&b'0')) {
        return false;
    }
    rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = fraction.get(count..).unwrap_or_default();
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// What a string means, or `None` for a bad escape. A surrogate without its other half becomes U+FFFD.
pub(crate) fn unescape(raw: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        let (plain, tail) = rest.split_at(found);
        out.extend_from_slice(plain);
        let (meaning, length) = escape(tail)?;
        out.extend_from_slice(meaning.encode_utf8(&mut [0; 4]).as_bytes());
        rest = tail.get(length..)?;
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// What the escape at the start of `tail` means, and how long it is.
pub(crate) fn escape(tail: &[u8]) -> Option<(char, usize)> {
    let meaning = match tail.get(1)? {
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escape(tail),
        _ => return None,
    };
    Some((meaning, 2))
}

fn unicode_escape(tail: &[u8]) -> Option<(char, usize)> {
    let first = hex4(tail.get(2..6)?)?;
    if (0xd800..0xdc00).contains(&first)
        && tail.get(6..8) == Some(b"\\u")
        && let Some(second) = tail.get(8..12).and_then(hex4)
        && (0xdc00..0xe000).contains(&second)
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Some((char::from_u32(code)?, 12));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
}

/// How many bytes a string takes in JSON, quotes included.
pub(crate) fn quoted_len(text: &str) -> usize {
    text.bytes().fold(2, |length, byte| length + escaped_len(byte))
}

/// Writes a string as JSON, quotes included.
pub(crate) fn write_quoted(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for byte in text.bytes() {
        match escaped_len(byte) {
            1 => out.push(byte),
            2 => out.extend_from_slice(&[b'\\', byte]),
            _ => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }
    out.push(b'"');
}

const fn escaped_len(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}
