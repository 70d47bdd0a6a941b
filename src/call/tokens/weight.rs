//! Weights: sums over bytes, and what is no text.

use crate::call::json;

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
/// ASCII is counted in groups of blocks: with that many, counts stay within a byte each.
const GROUP: usize = 3 * BLOCK;
/// After a group that cannot be counted so many bytes are weighed block by block: where one is, as a rule others follow.
const STRETCH: usize = 128 * BLOCK;

/// The weight of UTF-8 text.
#[inline]
pub(crate) fn weigh(text: &[u8]) -> u64 {
    // Names and words, as a rule.
    if text.len() < BLOCK { weigh_few(text) } else { weigh_much(text) }
}

#[inline(never)]
fn weigh_much(text: &[u8]) -> u64 {
    let (mut total, mut rest) = (0, text);
    while rest.len() >= BLOCK {
        let (group, behind) = rest.split_at(rest.len().min(GROUP));
        match count(group) {
            Some(counted) if counted.dense < DENSE => {
                total += u64::from(counted.weight);
                rest = behind;
            }
            _ => {
                let (stretch, behind) = rest.split_at(rest.len().min(STRETCH));
                total += weigh_blocks(stretch);
                rest = behind;
            }
        }
    }
    total + weigh_few(rest)
}

fn weigh_blocks(text: &[u8]) -> u64 {
    let blocks = text.chunks_exact(BLOCK);
    let rest = weigh_few(blocks.remainder());
    blocks.fold(rest, |total, block| {
        let sum = sum(block);
        let data = (sum >> ALPHABET) as usize == BLOCK && dense(sum) >= DENSE;
        total + if data { DATA_WEIGHT } else { u64::from(sum & WEIGHT) }
    })
}

/// The weight of what stands between the quotes of a JSON string.
#[inline]
pub(crate) fn weigh_json(raw: &[u8], escaped: bool) -> u64 {
    if escaped { weigh_escaped(raw) } else { weigh(raw) }
}

#[inline(never)]
fn weigh_escaped(raw: &[u8]) -> u64 {
    if let Some(total) = weigh_words(raw) {
        return each_escape(raw, total, |total, _, escape, meaning| total - weigh_few(escape) + meaning);
    }
    let mut end = 0;
    let total = each_escape(raw, 0, |total, plain, escape, meaning| {
        end += plain.len() + escape.len();
        total + weigh(plain) + meaning
    });
    total + weigh(raw.get(end..).unwrap_or_default())
}

/// The weight of ASCII in which no 64 bytes can be data, wherever they begin.
fn weigh_words(text: &[u8]) -> Option<u64> {
    let (mut total, mut before) = (0, 0);
    for group in text.chunks(GROUP) {
        let counted = count(group)?;
        // A block is part of two groups at most.
        if before + counted.dense >= DENSE {
            return None;
        }
        before = counted.dense;
        total += u64::from(counted.weight);
    }
    Some(total)
}

/// Folds over the escapes of a string: what stands before one and behind the last, the escape, and the weight of what it
/// means. A bad one is its backslash, and means nothing.
fn each_escape(raw: &[u8], first: u64, mut fold: impl FnMut(u64, &[u8], &[u8], u64) -> u64) -> u64 {
    let (mut total, mut rest) = (first, raw);
    while let Some(found) = memchr::memchr(b'\\', rest) {
        let (plain, tail) = rest.split_at(found);
        let (meaning, length) = match json::escape(tail) {
            Some((meaning, length)) => (weigh_few(meaning.encode_utf8(&mut [0; 4]).as_bytes()), length),
            None => (0, 1),
        };
        let (escape, behind) = tail.split_at_checked(length).unwrap_or((tail, &[]));
        total = fold(total, plain, escape, meaning);
        rest = behind;
    }
    total
}

/// What is counted of a group.
struct Counted {
    weight: u32,
    /// How many capitals and digits there are.
    dense: u32,
}

/// What [`sum`] finds, where all is ASCII.
fn count(group: &[u8]) -> Option<Counted> {
    let (lanes, rest) = group.as_chunks::<16>();
    // Most text of another kind is known by its start.
    if !lanes.first().is_none_or(|lane| lane.is_ascii()) {
        return None;
    }
    let lanes = lanes.as_flattened();
    let Blank { spaces, controls } = blank(lanes)?;
    let [small, capitals, digits] = alphanumeric(lanes);
    #[expect(clippy::cast_possible_truncation, reason = "a group has 192 bytes")]
    let marks = lanes.len() as u32 - (small + capitals + digits + spaces + controls);
    let rest = sum(rest);
    let weight = (small + capitals) * weight(b'a')
        + digits * weight(b'0')
        + marks * weight(b'!')
        + controls * weight(b'\n')
        + (rest & WEIGHT);
    Some(Counted { weight, dense: capitals + digits + dense(rest) })
}

struct Blank {
    spaces: u32,
    controls: u32,
}

// The compiler makes vectors of these loops. All in one would need more registers than there are.

#[inline(never)]
fn alphanumeric(lanes: &[u8]) -> [u32; 3] {
    let (mut small, mut capitals, mut digits) = (0, 0, 0);
    for byte in lanes {
        small += u8::from(byte.wrapping_sub(b'a') < 26);
        capitals += u8::from(byte.wrapping_sub(b'A') < 26);
        digits += u8::from(byte.wrapping_sub(b'0') < 10);
    }
    [small, capitals, digits].map(u32::from)
}

/// `None` where not all is ASCII.
#[inline(never)]
fn blank(lanes: &[u8]) -> Option<Blank> {
    let (mut spaces, mut controls, mut all) = (0, 0, 0);
    for byte in lanes {
        spaces += u8::from(*byte == b' ');
        controls += u8::from(byte.wrapping_sub(b' ') > b'~' - b' ');
        all |= byte;
    }
    all.is_ascii().then(|| Blank { spaces: u32::from(spaces), controls: u32::from(controls) })
}

/// The weight of no more than a block.
fn weigh_few(text: &[u8]) -> u64 {
    u64::from(sum(text) & WEIGHT)
}

/// Weights in the low 16 bits, then a byte that counts capitals and digits, then one that counts base64's alphabet. A
/// block's sums stay within their fields: 64 of the heaviest byte are 2¹⁵.
fn sum(block: &[u8]) -> u32 {
    block.iter().fold(0, |sum, byte| sum + TABLE[usize::from(*byte)])
}

/// The weight in a sum.
const WEIGHT: u32 = 0xffff;
/// Where the count of base64's alphabet is in a sum.
const ALPHABET: u32 = 24;

/// The count of capitals and digits in a sum.
const fn dense(sum: u32) -> u32 {
    sum >> 16 & 0xff
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

#[cfg(test)]
mod tests;
