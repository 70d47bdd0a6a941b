//! What a failed response means, by status, headers and the codes in its body.
//!
//! The status alone is not enough: 429 can be a limit by the minute, a spent credit or a request that never fits; 400
//! can be a used-up quota; 200 can be an error. So the *codes* of the body are read. Its sentences are not searched for
//! words, since they can quote what the user wrote; only where a provider gives no code at all is the beginning of its
//! own sentence compared.

mod codes;
mod quota;
mod said;
mod sentence;
#[cfg(test)]
mod tests;

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use memchr::memmem;
use serde_json::Value;

pub(crate) use quota::of_ids as of_quota_ids;
pub(crate) use said::Said;

use super::hint;
use super::limits::Limits;
use crate::verdict::{Class, Reason, Scope, Verdict};

/// The longest error body that is read, in bytes; a longer one is judged by its status and headers.
pub const BODY_LIMIT: usize = 64 * 1024;

/// A body without an error object.
const NOTHING: Value = Value::Null;

/// What a response means: its class, scope and reason, and the wait that it asks for.
///
/// - `body` is what was kept of the body, at most [`BODY_LIMIT`] bytes; what is longer, cut or not JSON says nothing,
///   and status and headers decide. A good status with an error in a whole JSON body is that error.
/// - `wall` is the time since the Unix epoch, for waits that are told as a date. The response's own `Date` goes before
///   it.
/// - `x-should-retry` overrides the class: `false` makes a failure that may pass one that only another target helps
///   against ([`Class::Unfit`], neutral for a breaker); `true` makes any failure one that may pass.
///
/// The body of a good answer is not parsed unless it names an error or a blocked prompt.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// use seawall::{Class, Scope, provider};
///
/// let body = br#"{"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}"#;
/// let wall = Duration::from_secs(1_795_953_600);
/// let verdict = provider::classify(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), body, wall);
/// assert_eq!((verdict.class(), verdict.scope()), (Class::Exhausted, Scope::Account));
/// ```
#[must_use]
pub fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8], wall: Duration) -> Verdict {
    if !(status.is_client_error() || status.is_server_error()) {
        return of_success(status, body, wall);
    }
    let now = hint::now(headers, wall);
    let json = parse(body);
    let said = Said::read(json.as_ref().unwrap_or(&NOTHING));
    let errortype = errortype(headers);
    let mut verdict = judge(&said, Some(status), errortype, now);
    if is_outside_plan(status, headers) {
        verdict = Verdict::new(Class::Unfit).with_reason(Reason::Model);
    }
    let asked = hint::asked(headers, now);
    // What waiting mends is a quota, also where it is told as a prohibition.
    if status == StatusCode::FORBIDDEN && verdict == Verdict::new(Class::Invalid) && asked.is_some() {
        verdict = Verdict::new(Class::Exhausted);
    }
    verdict = match verdict.class() {
        Class::Throttled => verdict.with_hint(
            asked
                .or_else(|| hint::of_error(&said, now))
                .or_else(|| hint::of_limits(&Limits::read_at(headers, now))),
        ),
        Class::Transient => verdict.with_hint(asked.or_else(|| hint::of_error(&said, now))),
        Class::Exhausted => verdict.with_hint(verdict.hint().or(asked)),
        _ => verdict,
    };
    overridden(verdict, hint::should_retry(headers), status, asked)
}

/// What an error inside a stream or a 200 body means: there is no status that says it.
///
/// `event` is the event's JSON, or the error object inside it, or a bare code; `wall` is the time since the Unix epoch,
/// for waits that are told as a date. An error of which nothing is known is [`Class::Transient`].
pub(crate) fn in_stream(event: &Value, wall: Duration) -> Verdict {
    if let Value::String(code) = event {
        return of_code(code);
    }
    let said = Said::read(event);
    let verdict = judge(&said, said.status(), None, wall);
    match verdict.class() {
        Class::Throttled | Class::Transient => verdict.with_hint(hint::of_error(&said, wall)),
        _ => verdict,
    }
}

/// What an error means that is told by a bare code, as the name of an exception frame or of a finish reason.
pub(crate) fn of_code(code: &str) -> Verdict {
    codes::meaning(code).map_or(Verdict::new(Class::Transient), |meaning| meaning.verdict)
}

/// The JSON of a body that is short enough to be read; nesting is bounded by the parser.
pub(crate) fn parse(body: &[u8]) -> Option<Value> {
    if body.is_empty() || body.len() > BODY_LIMIT { None } else { serde_json::from_slice(body).ok() }
}

/// A good status can stand over an error object, or over the word that the prompt was blocked.
fn of_success(status: StatusCode, body: &[u8], wall: Duration) -> Verdict {
    let good = Verdict::of_status(status);
    let named = |name: &[u8]| body.len() <= BODY_LIMIT && memmem::find(body, name).is_some();
    if !(named(b"\"error\"") || named(b"\"blockReason\"")) {
        return good;
    }
    let Some(json) = parse(body) else { return good };
    let answered = ["choices", "content", "candidates"].into_iter().any(|field| json.get(field).is_some());
    if answered {
        return good;
    }
    if json.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string) {
        return Verdict::new(Class::Invalid).with_reason(Reason::Policy);
    }
    let error = json.get("error").and_then(Value::as_object);
    let tells = |field| error.is_some_and(|error| error.contains_key(field));
    if tells("message") || tells("code") { in_stream(&json, wall) } else { good }
}

fn judge(said: &Said<'_>, status: Option<StatusCode>, errortype: Option<&str>, now: Duration) -> Verdict {
    let meaning = said.meaning(errortype);
    if let Some(meaning) = meaning.filter(|meaning| meaning.decides) {
        return meaning.verdict;
    }
    if let Some(verdict) = sentence::verdict(said, status, errortype) {
        return verdict;
    }
    let is_limit = status.is_none_or(|status| status == StatusCode::TOO_MANY_REQUESTS);
    if let Some(verdict) = is_limit.then(|| quota::verdict(said, now)).flatten() {
        return verdict;
    }
    if said.is_moderated() {
        return Verdict::new(Class::Invalid).with_reason(Reason::Policy);
    }
    match (status.map(of_status), meaning) {
        (Some(verdict), Some(meaning)) if verdict.class() == meaning.verdict.class() => meaning.verdict,
        (Some(verdict), _) => verdict,
        (None, Some(meaning)) => meaning.verdict,
        (None, None) => Verdict::new(Class::Transient),
    }
}

/// The status alone, where a body was there to say more and did not.
fn of_status(status: StatusCode) -> Verdict {
    let verdict = Verdict::of_status(status);
    match status.as_u16() {
        // Nothing ties the limit to a model.
        429 => verdict.with_scope(Scope::Account),
        // A model or a tool behind the provider failed.
        424 => Verdict::new(Class::Transient),
        // The provider believes that its client went away.
        499 => Verdict::new(Class::Abandoned),
        _ => verdict,
    }
}

/// `Name`, `Name:address` or `space#Name`.
fn errortype(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("x-amzn-errortype")?.to_str().ok()?;
    text.split(':').next()?.rsplit('#').next()
}

/// A limit of zero a minute: this model is not in the plan, and 429 comes for ever. Only under the names of a provider
/// that means it so; elsewhere zero is "unknown".
fn is_outside_plan(status: StatusCode, headers: &HeaderMap) -> bool {
    const NAMES: [&str; 3] =
        ["x-ratelimit-limit-req-minute", "x-ratelimit-limit-tokens-minute", "x-ratelimitbysize-limit-minute"];

    let zero = |name| headers.get(name).is_some_and(|limit| limit.as_bytes() == b"0");
    status == StatusCode::TOO_MANY_REQUESTS && NAMES.into_iter().any(zero)
}

fn overridden(verdict: Verdict, retry: Option<bool>, status: StatusCode, asked: Option<Duration>) -> Verdict {
    let passes = matches!(verdict.class(), Class::Throttled | Class::Transient | Class::Stalled);
    let class = match retry {
        Some(false) if passes => Class::Unfit,
        Some(true) if !passes && status == StatusCode::TOO_MANY_REQUESTS => Class::Throttled,
        Some(true) if !passes => Class::Transient,
        _ => return verdict,
    };
    Verdict::new(class)
        .with_scope(verdict.scope())
        .with_reason(verdict.reason())
        .with_hint(verdict.hint().or(asked))
}
