//! The ways in which a header tells a time.

use std::time::Duration;

use http::HeaderValue;

use super::date;

/// Longer values of one time are no information; the longest that means anything is a date.
const LONGEST_VALUE: usize = 64;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// A time in a reset header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// A length with units, as `6m0s`.
    Units(u128),
    /// A bare number of seconds.
    Seconds(u128),
    /// A date or a time since the epoch, as nanoseconds since the epoch.
    Epoch(u128),
    /// The same, told in RFC 3339.
    Date(u128),
}

/// The value as trimmed text, if it can be one that tells a time.
pub(crate) fn text(value: &HeaderValue) -> Option<&str> {
    let bytes = value.as_bytes();
    if bytes.len() > LONGEST_VALUE {
        return None;
    }
    std::str::from_utf8(bytes).ok().map(|text| text.trim_matches([' ', '\t']))
}

/// A reset, by its form: a date, a length with units, or a number, which says by its size what it counts.
pub(crate) fn time(text: &str, now: Duration) -> Option<Time> {
    const EPOCH_NANOS: u128 = 100_000_000_000_000_000;
    const EPOCH_MICROS: u128 = EPOCH_NANOS / 1_000;
    const EPOCH_MILLIS: u128 = EPOCH_MICROS / 1_000;
    const EPOCH_SECONDS: u128 = 1_000_000_000;

    let first = text.bytes().next()?;
    if first.is_ascii_alphabetic() {
        return date::http_date(text, now).map(|date| Time::Epoch(date.as_nanos()));
    }
    if text.len() >= 20 && text.contains('-') {
        return date::rfc3339(text).map(|date| Time::Date(date.as_nanos()));
    }
    let Some(seconds) = decimal(text, SECOND) else {
        return units(text).map(Time::Units);
    };
    let time = match seconds / u128::from(SECOND) {
        EPOCH_NANOS.. => Time::Epoch(seconds / 1_000_000_000),
        EPOCH_MICROS.. => Time::Epoch(seconds / 1_000_000),
        EPOCH_MILLIS.. => Time::Epoch(seconds / 1_000),
        EPOCH_SECONDS.. => Time::Epoch(seconds),
        _ => Time::Seconds(seconds),
    };
    Some(time)
}

/// Digits with an optional fraction, and nothing else, counted in a unit of so many nanoseconds; rounded up.
pub(crate) fn decimal(text: &str, unit: u64) -> Option<u128> {
    /// Digits of a fraction that are counted; beyond them any digit but zero rounds up.
    const COUNTED: usize = 12;

    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !fraction.is_none_or(digits) {
        return None;
    }
    let nanos = u128::from(whole.parse::<u64>().ok()?) * u128::from(unit);
    let Some(fraction) = fraction else { return Some(nanos) };
    let (counted, beyond) = fraction.split_at(fraction.len().min(COUNTED));
    let scale = 10_u128.pow(u32::try_from(counted.len()).ok()?);
    let part = (counted.parse::<u128>().ok()? * u128::from(unit)).div_ceil(scale);
    let more = u128::from(beyond.bytes().any(|byte| byte != b'0'));
    Some(nanos + part + more)
}

/// A length with units, `2m59.56s`, in nanoseconds: the whole text, without a sign.
pub(crate) fn units(text: &str) -> Option<u128> {
    let mut rest = text;
    let mut sum = 0_u128;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number);
        let (unit, after) = unit(after)?;
        sum = sum.checked_add(decimal(number, unit)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

fn unit(text: &str) -> Option<(u64, &str)> {
    // A unit that begins like a longer one stands after it.
    const UNITS: [(&str, u64); 8] = [
        ("ms", MILLISECOND),
        ("us", 1_000),
        ("\u{b5}s", 1_000),
        ("\u{3bc}s", 1_000),
        ("ns", 1),
        ("h", 3_600 * SECOND),
        ("m", 60 * SECOND),
        ("s", SECOND),
    ];
    UNITS.iter().find_map(|(name, nanos)| text.strip_prefix(name).map(|rest| (*nanos, rest)))
}
