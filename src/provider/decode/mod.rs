//! A decoded copy of a compressed body, for reading it: the caller's bytes stay as they are.
//!
//! [`Decoder`] is fed the compressed frames as they pass and hands out what they hold, in pieces. It is bounded on the
//! decoded size: a body that unfolds beyond the limit is not read further. It never fails for the caller: a broken body
//! is one that yields nothing more.
//!
//! gzip, deflate (with the zlib wrapper and without) and brotli yield what a frame holds at once. zstd yields what has
//! left its window, and the rest when its frame is complete: usage is there in time, the first content of a stream
//! compressed so is seen late.

mod brotli;
mod flate;
mod zstd;

use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// How much is decoded by default, in bytes: 16 MiB. Answers are far smaller, images in them excepted.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `gzip`, `x-gzip`.
    Gzip,
    /// `deflate`: zlib, and the bare deflate that some servers send under this name.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

/// What the head of a response says about its compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContentEncoding {
    /// It is not compressed.
    Identity,
    /// It can be read through a [`Decoder`].
    One(Encoding),
    /// It cannot be read here: an unknown coding, or several.
    Unknown,
}

impl ContentEncoding {
    /// From a response's headers.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut found = Self::Identity;
        for value in headers.get_all(CONTENT_ENCODING) {
            for name in value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                let is = |one: &str| name.eq_ignore_ascii_case(one.as_bytes());
                let next = match () {
                    () if name.is_empty() || is("identity") => continue,
                    () if is("gzip") || is("x-gzip") => Encoding::Gzip,
                    () if is("deflate") => Encoding::Deflate,
                    () if is("br") => Encoding::Brotli,
                    () if is("zstd") => Encoding::Zstd,
                    () => return Self::Unknown,
                };
                if found != Self::Identity {
                    return Self::Unknown;
                }
                found = Self::One(next);
            }
        }
        found
    }
}

/// Decodes a copy of a body as its frames pass; see the [module](self).
///
/// ```
/// use seawall::provider::{Decoder, Encoding};
///
/// let mut decoder = Decoder::new(Encoding::Gzip);
/// let mut decoded = Vec::new();
/// # let frames: [&[u8]; 0] = [];
/// for frame in frames {
///     decoder.feed(frame, |bytes| decoded.extend_from_slice(bytes));
/// }
/// assert!(!decoder.has_stopped(), "the limit was not reached, and nothing was malformed");
/// ```
#[derive(Debug)]
pub struct Decoder {
    coding: Coding,
    left: usize,
    broken: bool,
}

enum Coding {
    Flate(flate::Flate),
    Brotli(brotli::Brotli),
    Zstd(Box<zstd::Zstd>),
    /// Nothing more is read; what was held is given back.
    Stopped,
}

/// The compressed bytes cannot be read.
struct Broken;

/// Takes decoded bytes; says whether more are wanted.
type Out<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

impl Decoder {
    /// Decodes up to [`DEFAULT_LIMIT`].
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        Self::with_limit(encoding, DEFAULT_LIMIT)
    }

    /// Decodes up to this many bytes.
    #[must_use]
    pub fn with_limit(encoding: Encoding, limit: usize) -> Self {
        let coding = match encoding {
            Encoding::Gzip => Coding::Flate(flate::Flate::gzip()),
            Encoding::Deflate => Coding::Flate(flate::Flate::deflate()),
            Encoding::Brotli => Coding::Brotli(brotli::Brotli::new()),
            Encoding::Zstd => Coding::Zstd(Box::new(zstd::Zstd::new())),
        };
        Self { coding, left: limit, broken: false }
    }

    /// Decodes the next frame, and hands over what it yields in pieces.
    pub fn feed(&mut self, frame: &[u8], mut out: impl FnMut(&[u8])) {
        let left = &mut self.left;
        let mut bounded = |piece: &[u8]| match left.checked_sub(piece.len()) {
            Some(rest) => {
                *left = rest;
                out(piece);
                true
            }
            None => false,
        };
        let read = match &mut self.coding {
            Coding::Flate(coding) => coding.feed(frame, &mut bounded),
            Coding::Brotli(coding) => coding.feed(frame, &mut bounded),
            Coding::Zstd(coding) => coding.feed(frame, &mut bounded),
            Coding::Stopped => Ok(()),
        };
        if read.is_err() {
            self.coding = Coding::Stopped;
            self.broken = true;
        }
    }

    /// Whether reading stopped before the end: the body is broken, or larger than the limit. What was read of it may be
    /// incomplete.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.broken
    }
}

impl std::fmt::Debug for Coding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flate(_) => "Flate",
            Self::Brotli(_) => "Brotli",
            Self::Zstd(_) => "Zstd",
            Self::Stopped => "Stopped",
        })
    }
}

#[cfg(test)]
mod tests;
