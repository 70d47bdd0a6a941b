//! A refusal as an HTTP response or a gRPC status.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::{Refusal, RefusalKind};

impl RefusalKind {
    /// The HTTP status that says so: 429, 503, 402 or 504.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::RateLimited | Self::TooLarge => StatusCode::TOO_MANY_REQUESTS,
            Self::BudgetExhausted | Self::BudgetContended | Self::Unpriced | Self::Unbounded => {
                StatusCode::PAYMENT_REQUIRED
            }
            Self::Deadline | Self::TimedOut(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Open
            | Self::Full
            | Self::QueueTimeout
            | Self::LedgerUnavailable
            | Self::TooManyKeys
            | Self::NoTarget
            | Self::Custom => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The gRPC status code that says so: 4 `DEADLINE_EXCEEDED`, 8 `RESOURCE_EXHAUSTED` or 14 `UNAVAILABLE`.
    #[must_use]
    pub const fn grpc_code(self) -> u8 {
        match self {
            Self::Deadline | Self::TimedOut(_) => 4,
            Self::Full
            | Self::RateLimited
            | Self::TooLarge
            | Self::BudgetExhausted
            | Self::BudgetContended
            | Self::Unpriced
            | Self::Unbounded
            | Self::TooManyKeys => 8,
            Self::Open | Self::QueueTimeout | Self::LedgerUnavailable | Self::NoTarget | Self::Custom => 14,
        }
    }

    /// The kind as a stable word, for metrics and problem documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        use super::Phase;
        match self {
            Self::Open => "open",
            Self::Full => "full",
            Self::QueueTimeout => "queue_timeout",
            Self::Deadline => "deadline",
            Self::RateLimited => "rate_limited",
            Self::TooLarge => "too_large",
            Self::BudgetExhausted => "budget_exhausted",
            Self::BudgetContended => "budget_contended",
            Self::Unpriced => "unpriced",
            Self::Unbounded => "unbounded",
            Self::LedgerUnavailable => "ledger_unavailable",
            Self::TooManyKeys => "too_many_keys",
            Self::TimedOut(Phase::Total) => "timeout_total",
            Self::TimedOut(Phase::Connect) => "timeout_connect",
            Self::TimedOut(Phase::Head) => "timeout_head",
            Self::TimedOut(Phase::FirstContent) => "timeout_first_content",
            Self::TimedOut(Phase::Idle) => "timeout_idle",
            Self::NoTarget => "no_target",
            Self::Custom => "custom",
        }
    }
}

impl Refusal {
    /// The refusal as an HTTP response: its status, `Retry-After` in whole seconds (rounded up, at least 1) where a
    /// wait is known to help, a problem document (RFC 9457), and the refusal itself in the extensions.
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        let status = self.kind().status();
        let mut response = Response::new(Bytes::from(self.problem(status)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self.clone());
        response
    }

    /// The refusal as a gRPC response that consists of trailers only: status 200, the code and message in the head, and
    /// `grpc-retry-pushback-ms` where a wait is known to help.
    #[must_use]
    pub fn to_grpc_response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", HeaderValue::from(u16::from(self.kind().grpc_code())));
        if let Ok(message) = HeaderValue::from_str(&percent_encoded(&self.to_string())) {
            headers.insert("grpc-message", message);
        }
        if let Some(wait) = self.retry_after() {
            let millis = wait.as_nanos().div_ceil(1_000_000);
            let millis = u64::try_from(millis).unwrap_or(u64::MAX);
            headers.insert("grpc-retry-pushback-ms", HeaderValue::from(millis));
        }
        response.extensions_mut().insert(self.clone());
        response
    }

    fn retry_after_seconds(&self) -> Option<u64> {
        let wait = self.retry_after()?;
        let whole = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        Some(whole.max(1))
    }

    fn problem(&self, status: StatusCode) -> String {
        let mut json = String::with_capacity(192);
        json.push_str(r#"{"type":"about:blank","title":""#);
        json.push_str(status.canonical_reason().unwrap_or("Refused"));
        let _ = write!(json, r#"","status":{},"detail":""#, status.as_u16());
        escape_into(&mut json, &self.to_string());
        let _ = write!(json, r#"","kind":"{}","layer":""#, self.kind().as_str());
        escape_into(&mut json, self.name());
        json.push('"');
        if let Some(wait) = self.retry_after() {
            let _ = write!(json, r#","retry_after_ms":{}"#, wait.as_nanos().div_ceil(1_000_000));
        }
        json.push('}');
        json
    }
}

/// Escapes what JSON does not allow inside a string.
fn escape_into(json: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
}

/// gRPC messages travel percent-encoded: everything outside printable ASCII, and the percent sign itself.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
