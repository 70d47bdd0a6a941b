//! Moves over the bytes of a message.

use memchr::memchr2;

/// A place in the bytes that a scan reads.
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Where in these bytes the value that is being kept begins.
    pub(super) from: usize,
    /// The last text was read to its closing quote.
    pub(super) closed: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, from: 0, closed: false }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn kept(&self) -> &'a [u8] {
        self.bytes.get(self.from..self.at).unwrap_or_default()
    }

    /// Passes over white space and looks at what follows.
    pub(super) fn solid(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Reads the rest of a text and its closing quote, or all there is of it.
    pub(super) fn text(&mut self, escaped: &mut bool) -> &'a [u8] {
        let start = self.at;
        let mut at = start + usize::from(std::mem::take(escaped));
        self.closed = false;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(found) = find_quote(rest) else {
                self.at = self.bytes.len();
                return self.bytes.get(start..).unwrap_or_default();
            };
            at += found;
            if rest.get(found) == Some(&b'"') {
                self.at = at + 1;
                self.closed = true;
                return self.bytes.get(start..at).unwrap_or_default();
            }
            at += 2;
            if at > self.bytes.len() {
                *escaped = true;
            }
        }
    }
}

/// The next quote or backslash. Most texts are short, and a call to the vector search costs more than they do: the first
/// bytes are looked at eight at a time.
fn find_quote(bytes: &[u8]) -> Option<usize> {
    const WORDS: usize = 2;
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The highest bit of each byte that is zero, and maybe of some above it: the lowest one is right.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let (words, _) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words.iter().take(WORDS) {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|found| at + found)
}
