//! Heads and error bodies.

use std::hint::black_box;
use std::time::Duration;

use criterion::Criterion;
use http::{HeaderMap, HeaderValue, StatusCode};
use seawall::provider;

const WALL: Duration = Duration::from_secs(1_795_953_600);

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields
        .iter()
        .map(|(name, value)| (name.parse().expect("a valid name"), HeaderValue::from_static(value)))
        .collect()
}

pub(crate) fn classify_429(c: &mut Criterion) {
    let mut group = c.benchmark_group("classify_429");
    let openai = headers(&[
        ("date", "Sun, 29 Nov 2026 12:00:00 GMT"),
        ("content-type", "application/json"),
        ("retry-after-ms", "1146"),
        ("retry-after", "2"),
        ("x-ratelimit-remaining-requests", "480"),
        ("x-ratelimit-limit-tokens", "50000"),
        ("x-ratelimit-remaining-tokens", "2051"),
        ("x-ratelimit-reset-tokens", "57.538s"),
    ]);
    let body = br#"{"error": {"message": "Rate limit reached on tokens per min (TPM): Limit 50000, Used 47949, Requested 3006. Please try again in 1.146s.", "type": "tokens", "param": null, "code": "rate_limit_exceeded"}}"#;
    group.bench_function("openai", |b| {
        b.iter(|| {
            provider::classify(StatusCode::TOO_MANY_REQUESTS, black_box(&openai), black_box(body), WALL)
        });
    });
    // The slowest way to a hint: nothing is asked outright, and the limits must be read.
    let cerebras = headers(&[
        ("date", "Sun, 29 Nov 2026 12:00:00 GMT"),
        ("x-ratelimit-limit-requests-day", "14400"),
        ("x-ratelimit-remaining-requests-day", "120"),
        ("x-ratelimit-reset-requests-day", "33011.382867097855"),
        ("x-ratelimit-limit-tokens-minute", "60000"),
        ("x-ratelimit-remaining-tokens-minute", "0"),
        ("x-ratelimit-reset-tokens-minute", "11.382867097855"),
    ]);
    let body = br#"{"message": "Tokens per minute limit exceeded.", "type": "too_many_tokens_error", "param": "quota", "code": "token_quota_exceeded"}"#;
    group.bench_function("by_reset", |b| {
        b.iter(|| {
            provider::classify(StatusCode::TOO_MANY_REQUESTS, black_box(&cerebras), black_box(body), WALL)
        });
    });
    group.bench_function("limits_alone", |b| {
        b.iter(|| provider::limits::Limits::read(black_box(&cerebras), WALL));
    });
    group.finish();
}
