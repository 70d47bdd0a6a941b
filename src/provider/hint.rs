//! The wait that an upstream asks for.
//!
//! Providers ask in many ways. Those are tried in this order, and the first that gives a wait decides:
//!
//! 1. `retry-after-ms`, `x-ms-retry-after-ms`
//! 2. `retry-after`, in seconds (also decimal) or as an HTTP date, which counts from the response's own `Date`
//! 3. `x-amz-retry-after`, in milliseconds
//! 4. `x-ratelimit-retry-after`, in seconds
//! 5. `RetryInfo` in the error body, or the headers that a router hands on inside it
//! 6. the provider's sentence, where it says "Please try again in 1.146s"
//! 7. the reset of the limit of which nothing is left, where it is a wait and not the time until a bucket is full
//!    (see [`limits`](super::limits))
//!
//! Of several values under one name, or of one kind, the longest valid one counts. A wait is rounded up to the next
//! millisecond. Zero, a negative or past time, and whatever is not exactly in one of the forms, is no hint: a hint is
//! never a reason to be quicker than one's own backoff. Waits above [`LONGEST`] are told as that, so that a unix time
//! where seconds are due stops a caller instead of hiding.

pub(crate) mod date;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use std::time::Duration;

use http::HeaderMap;
use http::header::DATE;
use serde_json::Value;

use super::error::{self, Said};
use super::limits::{Limit, Limits};
use value::{MILLISECOND, SECOND, Time};

/// The longest wait that is told, 31 days: the window of no known limit is longer.
pub const LONGEST: Duration = Duration::from_secs(31 * 86_400);

/// The wait that a failed response asks for, from its headers and its error body.
///
/// `wall` is the time since the Unix epoch, for values that are dates; the response's own `Date` goes before it, so
/// that no difference between two clocks lengthens or swallows a wait. Of the body at most
/// [`BODY_LIMIT`](super::BODY_LIMIT) bytes are read.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue};
/// use seawall::provider::hint;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", HeaderValue::from_static("20"));
/// headers.insert("retry-after-ms", HeaderValue::from_static("1500"));
/// let wall = Duration::from_secs(1_795_953_600);
/// assert_eq!(hint::read(&headers, b"", wall), Some(Duration::from_millis(1500)));
/// ```
#[must_use]
pub fn read(headers: &HeaderMap, body: &[u8], wall: Duration) -> Option<Duration> {
    let now = now(headers, wall);
    asked(headers, now)
        .or_else(|| error::parse(body).and_then(|json| of_error(&Said::read(&json), now)))
        .or_else(|| of_limits(&Limits::read_at(headers, now)))
}

/// The wait that the headers ask for outright. Resets of limits are not looked at.
#[must_use]
pub fn of_headers(headers: &HeaderMap, wall: Duration) -> Option<Duration> {
    asked(headers, now(headers, wall))
}

/// Whether the upstream says that a retry helps (`x-should-retry`): `true` or `false` exactly, anything else is
/// nothing. Where both are said, `false` counts.
#[must_use]
pub fn should_retry(headers: &HeaderMap) -> Option<bool> {
    let mut said = None;
    for value in headers.get_all("x-should-retry") {
        match value.as_bytes() {
            b"false" => return Some(false),
            b"true" => said = Some(true),
            _ => {}
        }
    }
    said
}

/// The time at the upstream: the response's `Date`, or else `wall`.
pub(crate) fn now(headers: &HeaderMap, wall: Duration) -> Duration {
    let date = headers.get(DATE).and_then(value::text);
    date.and_then(|date| date::http_date(date, wall)).unwrap_or(wall)
}

/// See [`of_headers`].
pub(crate) fn asked(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let longest = |name: &'static str, read: &dyn Fn(&str) -> Option<Duration>| {
        headers.get_all(name).iter().filter_map(|value| read(value::text(value)?)).max()
    };
    let millis = |text: &str| value::decimal(text, MILLISECOND).and_then(wait);
    let seconds = |text: &str| value::decimal(text, SECOND).and_then(wait);
    let seconds_or_date = |text: &str| match value::decimal(text, SECOND) {
        Some(nanos) => wait(nanos),
        None => date::http_date(text, now).and_then(|date| until(date.as_nanos(), now)),
    };
    longest("retry-after-ms", &millis)
        .max(longest("x-ms-retry-after-ms", &millis))
        .or_else(|| longest("retry-after", &seconds_or_date))
        .or_else(|| longest("x-amz-retry-after", &millis))
        .or_else(|| longest("x-ratelimit-retry-after", &seconds))
}

/// The wait that an error object asks for.
pub(crate) fn of_error(said: &Said<'_>, now: Duration) -> Option<Duration> {
    of_retry_info(said)
        .or_else(|| said.metadata().and_then(|metadata| of_metadata(metadata, now)))
        .or_else(|| of_sentence(said.message()))
}

/// The reset of the limits of which nothing is left; the longest, since all of them must pass.
pub(crate) fn of_limits(limits: &Limits) -> Option<Duration> {
    let longest = |empty: bool| {
        let of_limit = |limit: &Limit| limit.wait().and_then(|reset| wait(reset.as_nanos()));
        limits.iter().filter(|limit| (limit.remaining == Some(0)) == empty).filter_map(of_limit).max()
    };
    // A limit that does not say what is left may be the one; one that says "nothing" is.
    longest(true).or_else(|| longest(false))
}

/// A wait of so many nanoseconds, rounded up to the next millisecond; none if it is zero.
pub(crate) fn wait(nanos: u128) -> Option<Duration> {
    let millis = u64::try_from(nanos.div_ceil(u128::from(MILLISECOND))).unwrap_or(u64::MAX);
    (millis > 0).then(|| Duration::from_millis(millis).min(LONGEST))
}

fn until(epoch: u128, now: Duration) -> Option<Duration> {
    epoch.checked_sub(now.as_nanos()).and_then(wait)
}

fn of_retry_info(said: &Said<'_>) -> Option<Duration> {
    said.details()
        .filter(|(kind, _)| *kind == "RetryInfo")
        .filter_map(|(_, detail)| value::units(detail.get("retryDelay")?.as_str()?).and_then(wait))
        .max()
}

/// A router keeps the headers of its own limits inside the body.
fn of_metadata(metadata: &Value, now: Duration) -> Option<Duration> {
    let headers = metadata.get("headers")?.as_object()?;
    let named = |wanted: &str| {
        let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    };
    let asked = named("retry-after").and_then(|text| value::decimal(&text, SECOND)).and_then(wait);
    asked.or_else(|| match value::time(&named("x-ratelimit-reset")?, now)? {
        Time::Units(nanos) | Time::Seconds(nanos) => wait(nanos),
        Time::Epoch(nanos) | Time::Date(nanos) => until(nanos, now),
    })
}

/// A time behind one of the phrases that providers use: a length with units, or a number and a word.
fn of_sentence(message: &str) -> Option<Duration> {
    const PHRASES: [&str; 3] = ["Please try again in ", "Please retry after ", "Please retry in "];

    let rest = PHRASES.iter().find_map(|phrase| message.split_once(phrase).map(|(_, rest)| rest))?;
    let mut words = rest.split(' ');
    let number = words.next()?.trim_end_matches(['.', ',']);
    if let Some(nanos) = value::units(number) {
        return wait(nanos);
    }
    let unit = match words.next()?.trim_end_matches(['.', ',']) {
        "second" | "seconds" => SECOND,
        "millisecond" | "milliseconds" => MILLISECOND,
        "minute" | "minutes" => 60 * SECOND,
        _ => return None,
    };
    value::decimal(number, unit).and_then(wait)
}
