//! What a gRPC answer means.
//!
//! Its HTTP status is 200 for almost every failure; the outcome is the `grpc-status` of the trailers, or of the head
//! where nothing follows it. A layer that judges by the head alone takes every failure for a success.

mod details;
#[cfg(test)]
mod tests;

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use super::{error, hint};
use crate::verdict::{Class, Reason, Scope, Verdict};
use details::Details;
#[cfg(feature = "tonic")]
pub(crate) use details::status_with_retry;

/// Whether a request or response speaks gRPC, by its content type. gRPC-Web does not: its trailers are in the body.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// What an answer means when its head is there: none if the trailers will tell.
///
/// `ended` is whether nothing follows the head. Only then is a `grpc-status` in the head the outcome: one that stands
/// above a body is overruled by the trailers. `wall` is the time since the Unix epoch.
#[must_use]
pub fn at_head(status: StatusCode, headers: &HeaderMap, ended: bool, wall: Duration) -> Option<Verdict> {
    if ended {
        return Some(at_end(status, headers, None, wall));
    }
    (status != StatusCode::OK).then(|| at_end(status, headers, None, wall))
}

/// What an answer means when its body is at its end.
///
/// `trailers` are those that came, if any did. Without any `grpc-status` a good HTTP status means that the stream was
/// cut; another one is mapped as the gRPC documents say, so that a 429 of a proxy is no limit of the service.
#[must_use]
pub fn at_end(
    status: StatusCode,
    headers: &HeaderMap,
    trailers: Option<&HeaderMap>,
    wall: Duration,
) -> Verdict {
    let told = trailers.filter(|trailers| trailers.contains_key("grpc-status")).unwrap_or(headers);
    let now = hint::now(headers, wall);
    let code = code(told).unwrap_or_else(|| of_http(status));
    judged(code, Details::read(told).as_ref(), told, || hint::asked(headers, now), now)
}

/// What a status means that a client has taken apart already: its code, its details as bytes, and the headers or trailers
/// that it came in. `wall` is the time since the Unix epoch.
#[must_use]
pub fn of_parts(code: u32, details: &[u8], told: &HeaderMap, wall: Duration) -> Verdict {
    let now = hint::now(told, wall);
    judged(code, Details::of(details).as_ref(), told, || hint::asked(told, now), now)
}

fn judged(
    code: u32,
    details: Option<&Details>,
    told: &HeaderMap,
    asked: impl FnOnce() -> Option<Duration>,
    now: Duration,
) -> Verdict {
    let verdict = of_code(code, details, now);
    if !matches!(verdict.class(), Class::Throttled | Class::Transient | Class::Stalled) {
        return verdict;
    }
    match pushback(told) {
        Some(Pushback::Stop) => {
            Verdict::new(Class::Unfit).with_scope(verdict.scope()).with_reason(verdict.reason())
        }
        Some(Pushback::After(wait)) => verdict.with_hint(Some(wait)),
        None => {
            let delay = details.and_then(Details::retry_delay).and_then(hint::wait);
            verdict.with_hint(delay.or_else(asked))
        }
    }
}

/// What a status code of gRPC means: the number of `grpc-status`, as a client's own status type has it too.
#[must_use]
pub fn of_status(code: u32) -> Verdict {
    let invalid = Verdict::new(Class::Invalid);
    match code {
        0 => Verdict::SUCCESS,
        1 => Verdict::new(Class::Abandoned),
        // The deadline that was sent along: no answer within it.
        4 => Verdict::new(Class::Stalled),
        5 => Verdict::new(Class::Unfit).with_reason(Reason::Model),
        7 | 16 => Verdict::new(Class::Denied),
        8 => Verdict::new(Class::Throttled).with_scope(Scope::Account),
        // Bad argument, exists, precondition, range, unimplemented.
        3 | 6 | 9 | 11 | 12 => invalid,
        // Unknown, aborted, internal, unavailable, data loss; and what no document knows is unknown.
        _ => Verdict::new(Class::Transient),
    }
}

fn of_code(code: u32, details: Option<&Details>, now: Duration) -> Verdict {
    let verdict = of_status(code);
    if verdict.class() != Class::Throttled {
        return verdict;
    }
    match details {
        Some(details) if details.quota_ids().next().is_some() => {
            error::of_quota_ids(details.quota_ids(), now)
        }
        _ => verdict,
    }
}

fn code(headers: &HeaderMap) -> Option<u32> {
    let text = headers.get("grpc-status")?.to_str().ok()?;
    let valid = text.len() <= 9 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A status that cannot be read is an unknown one, and not a missing one.
    Some(if valid { text.parse().unwrap_or(2) } else { 2 })
}

/// The code that a client takes where an answer has none.
fn of_http(status: StatusCode) -> u32 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502..=504 => 14,
        _ => 2,
    }
}

/// What the server says about a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pushback {
    /// None, please.
    Stop,
    /// After this time; zero is at once.
    After(Duration),
}

/// `grpc-retry-pushback-ms`: a signed 32-bit number. A negative or unreadable one forbids a retry.
fn pushback(headers: &HeaderMap) -> Option<Pushback> {
    let value = headers.get("grpc-retry-pushback-ms")?;
    let wait = value.to_str().ok().and_then(|text| text.parse::<i32>().ok());
    Some(match wait.map(u64::try_from) {
        Some(Ok(millis)) => Pushback::After(Duration::from_millis(millis)),
        _ => Pushback::Stop,
    })
}
