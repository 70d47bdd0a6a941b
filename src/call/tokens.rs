//! How many tokens a text may make.
//!
//! [`estimate`] weighs characters by script: letters, digits, punctuation and each kind of alphabet make tokens of
//! different length. Against the o200k vocabulary of current models it is within about a fifth for European languages,
//! Korean, Chinese, Japanese, source code, Markdown and JSON, and within a few per cent for most of them; a third to two
//! thirds too high for Cyrillic. Dividing characters by four, the usual rule, halves Chinese, Japanese and Korean, and is
//! a third of the truth for base64. It reads gigabytes a second and allocates nothing.
//!
//! Vocabularies differ between models, and the same text can make half as many tokens again in another one. [`Ratios`]
//! learns by how much from the usage that each model reports. The feature `tokenizer` counts exactly where a vocabulary is
//! public, much slower.

#[cfg(feature = "tokenizer")]
mod exact;
mod ratios;

#[cfg(feature = "tokenizer")]
pub use exact::{Vocabulary, count};
pub use ratios::Ratios;

/// An estimate of the tokens that a text makes; never a bound.
///
/// ```
/// use seawall::call::tokens;
///
/// assert_eq!(tokens::estimate("The quick brown fox jumps over the lazy dog."), 9);
/// assert_eq!(tokens::estimate("今日は天気がいいですね。"), 9);
/// assert_eq!(tokens::estimate(""), 0);
/// ```
#[must_use]
pub fn estimate(text: &str) -> u64 {
    to_tokens(weigh(text.as_bytes()))
}

/// One token, in the unit of weights: sums are integers.
pub(crate) const TOKEN: u64 = 256;

/// Whole tokens, rounded up.
pub(crate) const fn to_tokens(weight: u64) -> u64 {
    weight.div_ceil(TOKEN)
}

/// Text is weighed in blocks, because a run without spaces is judged as a whole.
const BLOCK: usize = 64;
/// From this many capitals and digits on, a block of nothing but base64's alphabet is data and not words.
const DENSE: u32 = 24;
/// A block of base64 or of hexadecimal digits: a token for 1.45 characters.
const DATA_WEIGHT: u64 = BLOCK as u64 * TOKEN * 100 / 145;

/// The weight of UTF-8 text.
pub(crate) fn weigh(text: &[u8]) -> u64 {
    let blocks = text.chunks_exact(BLOCK);
    let rest: u64 = u64::from(sum(blocks.remainder()) & 0xffff);
    blocks.fold(rest, |total, block| {
        let sum = sum(block);
        let (weight, dense, alphabet) = (sum & 0xffff, sum >> 16 & 0xff, sum >> 24);
        let data = alphabet as usize == BLOCK && dense >= DENSE;
        total + if data { DATA_WEIGHT } else { u64::from(weight) }
    })
}

/// The weight of what stands between the quotes of a JSON string.
pub(crate) fn weigh_json(raw: &[u8], escaped: bool) -> u64 {
    if !escaped {
        return weigh(raw);
    }
    let mut total = 0;
    let mut rest = raw;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        let (plain, tail) = rest.split_at(found);
        total += weigh(plain);
        let length = match super::json::escape(tail) {
            Some((meaning, length)) => {
                total += u64::from(sum(meaning.encode_utf8(&mut [0; 4]).as_bytes()) & 0xffff);
                length
            }
            None => 1,
        };
        rest = tail.get(length..).unwrap_or_default();
    }
    total + weigh(rest)
}

/// Weights in the low 16 bits, then a byte that counts capitals and digits, then one that counts base64's alphabet. A
/// block's sums stay within their fields: 64 of the heaviest byte are 2¹⁵.
fn sum(block: &[u8]) -> u32 {
    block.iter().fold(0, |sum, byte| sum + TABLE[usize::from(*byte)])
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 256")]
        let of = byte as u8;
        let dense = of.is_ascii_uppercase() || of.is_ascii_digit();
        let alphabet = of.is_ascii_alphanumeric() || matches!(of, b'+' | b'/' | b'=' | b'-' | b'_');
        table[byte] = weight(of) | (dense as u32) << 16 | (alphabet as u32) << 24;
        byte += 1;
    }
    table
}

/// The weight of a byte: a character's whole weight is on its first byte, which tells its script well enough.
const fn weight(byte: u8) -> u32 {
    let characters_a_token_times_100 = match byte {
        b'a'..=b'z' | b'A'..=b'Z' => 460,
        b'0'..=b'9' => 220,
        // A space belongs to the word behind it; the rest of a character was weighed with its first byte.
        b' ' | 0x80..=0xbf => return 0,
        // Punctuation, and Hangul.
        b'!'..=b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~' | 0xea..=0xed => 160,
        // Latin with marks, Greek, Cyrillic, Hebrew, Arabic; Indic, Thai, Georgian.
        0xc0..=0xe1 => 230,
        // Kana, with the punctuation of Chinese and Japanese.
        0xe3 => 150,
        // Han.
        0xe4..=0xe9 => 135,
        // Emoji and rare scripts make two or three.
        0xf0..=0xff => 50,
        // Line ends, typographic punctuation, symbols, full-width forms.
        _ => 100,
    };
    #[expect(clippy::cast_possible_truncation, reason = "it is 256")]
    let token = TOKEN as u32;
    token * 100 / characters_a_token_times_100
}
