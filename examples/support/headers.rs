//! How providers tell their limits, and that one is used up.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use seawall::time::{SystemWall, Wall};
use serde_json::{Value, json};

use super::limits::{Limits, Over, Reading, Unit};
use super::problem::Problem;

/// Whose way of telling limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// `x-ratelimit-…-requests`, resets as `1m2.5s`; waits in milliseconds too.
    #[default]
    OpenAi,
    /// As OpenAI, with the reset of the tokens alone, in whole seconds.
    Azure,
    /// `anthropic-ratelimit-requests-…`, resets as a date.
    Anthropic,
    /// `x-ratelimit-…-req-minute`, and the wait in `ratelimitbysize-reset`.
    Mistral,
    /// As OpenAI; the wait in seconds alone.
    Groq,
    /// Resets as seconds with a fraction, and nothing else.
    Cerebras,
    /// No headers; the wait in the body.
    Gemini,
    /// `RateLimit` and `RateLimit-Policy` of the IETF's draft 10.
    Ietf,
    /// `X-RateLimit-Reset` as seconds since 1970.
    Generic,
    /// Nothing at all.
    Silent,
}

#[expect(clippy::needless_pass_by_value, reason = "numbers and texts alike")]
pub(super) fn put(headers: &mut HeaderMap, name: &str, value: impl ToString) {
    let name = HeaderName::try_from(name).expect("the names here are of letters and dashes");
    let value = HeaderValue::try_from(value.to_string()).expect("the values here are printable");
    headers.append(name, value);
}

/// Tells where the limits stand.
pub(super) fn tell(style: Style, per: Duration, readings: &[Reading], headers: &mut HeaderMap) {
    for at in readings {
        let (unit, limit, left, reset) = (word(at.unit), at.limit, at.left, at.reset);
        match style {
            Style::OpenAi | Style::Groq | Style::Azure => {
                put(headers, &format!("x-ratelimit-limit-{unit}"), limit);
                put(headers, &format!("x-ratelimit-remaining-{unit}"), left);
                if style != Style::Azure {
                    put(headers, &format!("x-ratelimit-reset-{unit}"), go(reset));
                } else if at.unit == Unit::Tokens {
                    put(headers, "x-ratelimit-reset-tokens", seconds(reset));
                }
            }
            Style::Anthropic => {
                put(headers, &format!("anthropic-ratelimit-{unit}-limit"), limit);
                put(headers, &format!("anthropic-ratelimit-{unit}-remaining"), left);
                put(headers, &format!("anthropic-ratelimit-{unit}-reset"), rfc3339(reset));
            }
            Style::Mistral => {
                let unit = if at.unit == Unit::Requests { "req" } else { unit };
                put(headers, &format!("x-ratelimit-limit-{unit}-minute"), limit);
                put(headers, &format!("x-ratelimit-remaining-{unit}-minute"), left);
            }
            Style::Cerebras => {
                put(headers, &format!("x-ratelimit-limit-{unit}-minute"), limit);
                put(headers, &format!("x-ratelimit-remaining-{unit}-minute"), left);
                put(headers, &format!("x-ratelimit-reset-{unit}-minute"), reset.as_secs_f64());
            }
            Style::Ietf => {
                put(headers, "ratelimit-policy", format!("\"{unit}\";q={limit};w={}", seconds(per).max(1)));
                put(headers, "ratelimit", format!("\"{unit}\";r={left};t={}", seconds(reset)));
            }
            Style::Generic if at.unit == Unit::Requests => {
                put(headers, "x-ratelimit-limit", limit);
                put(headers, "x-ratelimit-remaining", left);
                put(headers, "x-ratelimit-reset", unix(reset));
            }
            Style::Generic | Style::Gemini | Style::Silent => {}
        }
    }
}

/// The answer to a request above a limit.
pub(super) fn refusal(limits: &Limits, over: &Over, model: &str) -> Problem {
    let (unit, limit, asked) = (word(over.at.unit), over.at.limit, over.asked);
    let Some(wait) = over.wait else {
        let text =
            format!("Request too large for {model} on {unit} per min: Limit {limit}, Requested {asked}.");
        return Problem::new(429, unit, Some("rate_limit_exceeded"), text);
    };
    let used = limit - over.at.left;
    let text = format!(
        "Rate limit reached for {model} on {unit} per min: Limit {limit}, Used {used}, Requested {asked}. \
         Please try again in {}.",
        go(wait)
    );
    let mut problem = Problem::new(429, unit, Some("rate_limit_exceeded"), text);
    let headers = &mut problem.headers;
    match limits.style {
        Style::OpenAi | Style::Azure => {
            put(headers, "retry-after-ms", wait.as_nanos().div_ceil(1_000_000));
            put(headers, "retry-after", seconds(wait));
        }
        Style::Groq | Style::Anthropic | Style::Ietf => put(headers, "retry-after", seconds(wait)),
        Style::Mistral => put(headers, "ratelimitbysize-reset", seconds(wait)),
        Style::Generic => {
            // A fixed window's reset is a wait.
            put(headers, "x-ratelimit-limit", limit);
            put(headers, "x-ratelimit-remaining", 0);
            put(headers, "x-ratelimit-reset", unix(wait));
        }
        Style::Cerebras | Style::Gemini | Style::Silent => {}
    }
    problem.body = own_body(limits.style, over, wait);
    problem
}

/// The bodies of those that do not speak as OpenAI does.
fn own_body(style: Style, over: &Over, wait: Duration) -> Option<Value> {
    let unit = word(over.at.unit);
    match style {
        Style::Azure => Some(json!({"error": {"code": "429", "message": format!(
            "Requests have exceeded the rate limit of your tier. Please retry after {} seconds.", seconds(wait)
        )}})),
        Style::Anthropic => Some(json!({"type": "error", "request_id": "req_simulated", "error": {
            "type": "rate_limit_error", "message": format!("This request would exceed the {unit} per minute limit.")
        }})),
        Style::Mistral => Some(json!({
            "object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "param": null, "code": "1300"
        })),
        Style::Cerebras => Some(json!({
            "message": format!("Too many {unit} a minute."), "type": format!("too_many_{unit}_error"),
            "param": "quota", "code": format!("{}_quota_exceeded", unit.trim_end_matches('s'))
        })),
        Style::Gemini => Some(json!({"error": {
            "code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
                    {"quotaId": "GenerateRequestsPerMinutePerProjectPerModel", "quotaValue": over.at.limit.to_string()}
                ]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{}s", wait.as_secs_f64())}
            ]
        }})),
        Style::Ietf => Some(json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded",
            "status": 429, "violated-policies": [unit]
        })),
        Style::Generic => Some(json!({"error": "too many requests"})),
        Style::Silent => Some(json!({"error": {"message": "Too many requests.", "type": unit}})),
        Style::OpenAi | Style::Groq => None,
    }
}

fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Requests => "requests",
        Unit::Tokens => "tokens",
    }
}

/// Whole seconds, rounded up.
pub(super) fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// As Go prints it: `1m2.5s`, `120ms`. Rounded up to a millisecond.
fn go(wait: Duration) -> String {
    let millis = wait.as_nanos().div_ceil(1_000_000);
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let mut text = if minutes > 0 { format!("{minutes}m") } else { String::new() };
    if minutes == 0 && rest > 0 && rest < 1_000 {
        return format!("{rest}ms");
    }
    text.push_str(&(rest / 1_000).to_string());
    if rest % 1_000 > 0 {
        text.push_str(format!(".{:03}", rest % 1_000).trim_end_matches('0'));
    }
    text + "s"
}

fn unix(wait: Duration) -> u64 {
    seconds(SystemWall.since_epoch() + wait)
}

/// A date so far from now, in UTC and whole seconds, rounded up.
fn rfc3339(wait: Duration) -> String {
    let at = unix(wait);
    let (days, time) = (at / 86_400, at % 86_400);
    // Days since 1 March of the year 0, so that a leap day is the last one of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3_600, time / 60 % 60, time % 60)
}
