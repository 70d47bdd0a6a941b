//! `grpc-status-details-bin`: base64 of a `google.rpc.Status`, of which the waits and the quotas are read.
//!
//! A reader of the wire format without a schema: it walks over fields, borrows what it needs and skips the rest, so
//! that its time and memory are bounded by the header.

use http::HeaderMap;

use crate::provider::hint::value::SECOND;

/// Longer values are no information: servers limit all headers together to 8 or 16 KiB.
const LONGEST: usize = 16 * 1024;

/// The decoded message of the header.
#[derive(Debug)]
pub(super) struct Details(Vec<u8>);

impl Details {
    /// Reads the header, if it is there and is base64.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get("grpc-status-details-bin")?.as_bytes();
        if value.len() > LONGEST { None } else { base64(value).map(Self) }
    }

    /// The message itself, if there is one.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        (1..=LONGEST).contains(&bytes.len()).then(|| Self(bytes.to_vec()))
    }

    /// The wait of `RetryInfo`, in nanoseconds: none if it is malformed or negative.
    pub(super) fn retry_delay(&self) -> Option<u128> {
        let waits = self.of_kind("google.rpc.RetryInfo").filter_map(|info| {
            let delay = Fields(info).find_map(|field| field.bytes(1))?;
            let number = |id| Fields(delay).filter_map(|field| field.number(id)).last().unwrap_or(0);
            // Both are signed: a negative number is a huge one here.
            let (seconds, nanos) = (i64::try_from(number(1)).ok()?, number(2));
            if nanos >= SECOND {
                return None;
            }
            Some(u128::try_from(seconds).ok()? * u128::from(SECOND) + u128::from(nanos))
        });
        waits.max()
    }

    /// The ids of the quotas that `QuotaFailure` lists.
    pub(super) fn quota_ids(&self) -> impl Iterator<Item = &str> {
        let failures = self.of_kind("google.rpc.QuotaFailure");
        let violations = failures.flat_map(Fields).filter_map(|field| field.bytes(1));
        let ids = violations.filter_map(|violation| Fields(violation).find_map(|field| field.bytes(5)));
        ids.filter_map(|id| std::str::from_utf8(id).ok())
    }

    /// The messages of this type among the details.
    fn of_kind<'a>(&'a self, kind: &'static str) -> impl Iterator<Item = &'a [u8]> {
        Fields(&self.0).filter_map(|field| field.bytes(3)).filter_map(move |any| {
            let url = Fields(any).find_map(|field| field.bytes(1))?;
            let name = url.rsplit(|byte| *byte == b'/').next()?;
            (name == kind.as_bytes()).then(|| Fields(any).find_map(|field| field.bytes(2))).flatten()
        })
    }
}

/// A `google.rpc.Status` with a `RetryInfo` of this wait.
#[cfg(feature = "tonic")]
pub(crate) fn status_with_retry(code: u8, message: &str, wait: std::time::Duration) -> Vec<u8> {
    let (mut delay, mut info, mut any, mut status) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // A duration of this format has at most 10 000 years.
    put_number(&mut delay, 1, wait.as_secs().min(315_576_000_000));
    put_number(&mut delay, 2, wait.subsec_nanos().into());
    put_bytes(&mut info, 1, &delay);
    put_bytes(&mut any, 1, b"type.googleapis.com/google.rpc.RetryInfo");
    put_bytes(&mut any, 2, &info);
    put_number(&mut status, 1, code.into());
    put_bytes(&mut status, 2, message.as_bytes());
    put_bytes(&mut status, 3, &any);
    status
}

#[cfg(feature = "tonic")]
fn put_number(message: &mut Vec<u8>, id: u8, number: u64) {
    message.push(id << 3);
    put_varint(message, number);
}

#[cfg(feature = "tonic")]
fn put_bytes(message: &mut Vec<u8>, id: u8, bytes: &[u8]) {
    message.push(id << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

#[cfg(feature = "tonic")]
fn put_varint(message: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f).to_le_bytes()[0];
        number >>= 7;
        if number == 0 {
            return message.push(low);
        }
        message.push(low | 0x80);
    }
}

/// A field of a message: its id, and what it holds.
#[derive(Clone, Copy, Debug)]
struct Field<'a> {
    id: u64,
    held: Held<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Held<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of fixed width, which none of the messages has.
    Other,
}

impl<'a> Field<'a> {
    fn bytes(self, id: u64) -> Option<&'a [u8]> {
        match self.held {
            Held::Bytes(bytes) if self.id == id => Some(bytes),
            _ => None,
        }
    }

    fn number(self, id: u64) -> Option<u64> {
        match self.held {
            Held::Number(number) if self.id == id => Some(number),
            _ => None,
        }
    }
}

/// The fields of a message; ends at the first that is malformed.
#[derive(Debug)]
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (tag, rest) = varint(self.0)?;
        let (held, rest) = match tag & 7 {
            0 => varint(rest).map(|(number, rest)| (Held::Number(number), rest))?,
            1 => (Held::Other, rest.get(8..)?),
            2 => {
                let (length, rest) = varint(rest)?;
                let length = usize::try_from(length).ok()?;
                (Held::Bytes(rest.get(..length)?), rest.get(length..)?)
            }
            5 => (Held::Other, rest.get(4..)?),
            // Groups are of an older grammar.
            _ => return None,
        };
        self.0 = rest;
        Some(Field { id: tag >> 3, held })
    }
}

/// A number of up to ten bytes, seven bits each, the lowest first.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(u32::try_from(index * 7).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(index + 1..)?));
        }
    }
    None
}

/// Base64 with or without padding. Of several values in one line the first is read.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.split(|byte| *byte == b',').next()?.trim_ascii();
    let end = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let (text, padding) = text.split_at(end);
    if padding.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for byte in group {
            bits = bits << 6 | sextet(*byte)?;
        }
        let kept = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        bits <<= 6 * (4 - group.len());
        bytes.extend(bits.to_be_bytes().iter().skip(1).take(kept));
    }
    Some(bytes)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}
