//! What a layer learns from the headers of real providers, without any setting.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use tower::{Layer, Service, ServiceExt};

use crate::BoxError;
use crate::call::{OutcomeLayer, Usage};
use crate::provider::fixtures;
use crate::token_bucket::tests::support::{Job, n};
use crate::token_bucket::{Quota, RetryAfter, TokenBucket, TokenBucketBuilder, TokenBucketLayer};

fn answering(
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
) -> impl Service<Request<()>, Response = Response<Full<Bytes>>, Error = BoxError, Future: Send> + Clone {
    tower::service_fn(move |_: Request<()>| {
        let mut response = Response::new(Full::from(body.clone()));
        *response.headers_mut() = headers.clone();
        *response.status_mut() = status.try_into().unwrap();
        async move { Ok(response) }
    })
}

/// 1 000 requests and a million tokens a minute, with a burst of as many.
fn builder() -> TokenBucketBuilder {
    TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(1_000)).burst(n(1_000)))
        .tokens(Quota::per_minute(n(1_000_000)))
        .assumed_output(0)
        .refuse()
}

/// The bucket after one answer with these headers.
async fn after(status: u16, headers: HeaderMap, body: Vec<u8>) -> TokenBucket {
    let layer = builder().build().unwrap();
    layer.layer(answering(status, headers, body)).oneshot(Request::new(())).await.unwrap();
    layer.gate().clone()
}

async fn after_sample(file: &str) -> TokenBucket {
    let sample = fixtures::load(file);
    after(sample.status.as_u16(), sample.headers, sample.body).await
}

async fn after_headers(status: u16, headers: &[(&'static str, &str)]) -> TokenBucket {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    after(status, map, Vec::new()).await
}

/// What is left of requests and tokens, and how many of them a minute bring.
fn state<U, R>(bucket: &TokenBucket<U, R>) -> [(u64, u128); 2] {
    ["requests", "tokens"].map(|name| {
        let level = bucket.level(name).unwrap();
        let each = level.unit_every.as_nanos();
        (level.available, (60_000_000_000 + each / 2) / each)
    })
}

#[tokio::test(start_paused = true)]
async fn openai_says_what_is_left_and_not_how_long_to_wait() {
    let bucket = after_sample("openai-chat-ok-go-durations.http").await;
    // Its limit of requests is one of the day, and no rate by the minute.
    assert_eq!(state(&bucket), [(239, 1_000), (199_933, 200_000)]);
    assert_eq!(bucket.paused_for(), Duration::ZERO);
    let bucket = after_sample("openai-429-tpm-retry-after-ms.http").await;
    assert_eq!(state(&bucket), [(480, 1_000), (2_051, 50_000)]);
    let paused = bucket.paused_for();
    let most = Duration::from_millis(1_146) + Duration::from_millis(1_146) / 16 + Duration::from_millis(1);
    assert!((Duration::from_millis(1_146)..=most).contains(&paused), "{paused:?}: the milliseconds go first");
}

#[tokio::test(start_paused = true)]
async fn anthropic_names_the_kind_before_the_number_and_dates_its_resets() {
    let bucket = after_sample("anthropic-429-retry-after.http").await;
    assert_eq!(state(&bucket), [(48, 50), (8_000, 38_000)], "the most restrictive of its limits of tokens");
    assert!((Duration::from_secs(12)..Duration::from_secs(13)).contains(&bucket.paused_for()));
}

#[tokio::test(start_paused = true)]
async fn input_and_output_go_to_dimensions_of_their_own() {
    let quota = Quota::per_minute(n(1_000_000));
    let layer = TokenBucketLayer::builder()
        .dimension("input_tokens", quota, |_: &Request<()>| 1_u64)
        .dimension("output_tokens", quota, |_: &Request<()>| 1_u64)
        .build()
        .unwrap();
    let sample = fixtures::load("anthropic-429-retry-after.http");
    layer.layer(answering(429, sample.headers, sample.body)).oneshot(Request::new(())).await.unwrap();
    let left = ["input_tokens", "output_tokens"].map(|name| layer.gate().level(name).unwrap().available);
    assert_eq!(left, [0, 7_999], "this call has taken one of the 8 000 that are the limit");
}

#[tokio::test(start_paused = true)]
async fn azures_numbers_for_unknown_change_nothing() {
    let plain = [("x-ratelimit-limit-requests", "100"), ("x-ratelimit-remaining-requests", "99")];
    assert_eq!(state(&after_headers(200, &plain).await), [(99, 1_000), (1_000_000, 1_000_000)]);
    let unknown = [
        ("x-ratelimit-limit-requests", "-1"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-limit-tokens", "-1"),
        ("x-ratelimit-remaining-tokens", "-1"),
        ("x-ratelimit-reset-tokens", "0"),
    ];
    assert_eq!(state(&after_headers(200, &unknown).await), [(999, 1_000), (1_000_000, 1_000_000)]);
}

#[tokio::test(start_paused = true)]
async fn nonsense_and_larger_limits_change_nothing() {
    for nonsense in [
        &[("x-ratelimit-limit-requests", "0"), ("x-ratelimit-remaining-requests", "0")][..],
        &[("x-ratelimit-limit-requests", "10"), ("x-ratelimit-remaining-requests", "1000")],
        &[("x-ratelimit-remaining-requests", "none")],
        &[("x-ratelimit-limit-requests-minute", "99999999999999999999")],
        &[("ratelimit", "\"a\";r=-5;t=1"), ("ratelimit-policy", "\"a\";q=1;w=0")],
        &[("x-ratelimit-limit-tokens-minute", "5000000"), ("x-ratelimit-remaining-tokens-minute", "4000000")],
        &[("retry-after", "20")],
    ] {
        let bucket = after_headers(200, nonsense).await;
        assert_eq!(state(&bucket), [(999, 1_000), (1_000_000, 1_000_000)], "{nonsense:?}");
        assert_eq!(bucket.paused_for(), Duration::ZERO, "{nonsense:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn windows_in_names_and_policies_are_known() {
    let bucket = after_sample("mistral-429-capacity.http").await;
    assert_eq!(state(&bucket), [(59, 60), (48_700, 50_000)]);
    // The day's requests bound what is left, and are no rate.
    let bucket = after_sample("cerebras-429-float-seconds.http").await;
    assert_eq!(state(&bucket), [(120, 1_000), (0, 60_000)]);
    let bucket = after_sample("groq-429-daily-requests.http").await;
    assert_eq!(state(&bucket), [(0, 1_000), (15_702, 18_000)]);
    let bucket = after_sample("ietf-429-draft10.http").await;
    assert_eq!(state(&bucket)[0], (0, 50));
    assert!((Duration::from_secs(50)..Duration::from_secs(55)).contains(&bucket.paused_for()));
}

#[tokio::test(start_paused = true)]
async fn a_reset_that_is_a_wait_pauses_only_what_was_throttled() {
    let bucket = after_sample("generic-429-unix-seconds.http").await;
    assert!((Duration::from_secs(45)..Duration::from_secs(50)).contains(&bucket.paused_for()));
    let gone = [("ratelimit", "\"minute\";r=0;t=48"), ("ratelimit-policy", "\"minute\";q=50;w=60")];
    let bucket = after_headers(200, &gone).await;
    assert_eq!(state(&bucket)[0], (0, 50));
    assert_eq!(bucket.paused_for(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn b157_b166_a_date_is_taken_from_the_response_itself() {
    let bucket = after_headers(
        429,
        &[("date", "Sun, 29 Nov 2026 23:59:30 GMT"), ("retry-after", "Mon, 30 Nov 2026 00:00:12 GMT")],
    )
    .await;
    let paused = bucket.paused_for();
    assert!((Duration::from_secs(42)..Duration::from_secs(45)).contains(&paused), "{paused:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_trusts_only_the_wait_says_so() {
    let layer = builder().limits(RetryAfter).build().unwrap();
    let sample = fixtures::load("anthropic-429-retry-after.http");
    layer.layer(answering(429, sample.headers, sample.body)).oneshot(Request::new(())).await.unwrap();
    assert_eq!(state(layer.gate())[0], (999, 1_000));
    assert!(layer.gate().paused_for() >= Duration::from_secs(12));
}

/// An answer of a library's own, which knows what it used.
#[derive(Debug)]
struct Reply(Option<Usage>);

fn used(input: u64, output: u64) -> Usage {
    let mut usage = Usage::default();
    (usage.input, usage.output) = (Some(input), Some(output));
    usage
}

#[tokio::test(start_paused = true)]
async fn an_own_response_is_settled_by_its_usage_when_it_is_there() {
    let layer = TokenBucketLayer::builder()
        .tokens(Quota::per_minute(n(1_000)))
        .classify(crate::classify::responses(|_: &Reply| crate::Verdict::SUCCESS))
        .usage_by(|reply: &Reply| reply.0)
        .refuse()
        .build()
        .unwrap()
        .at_head();
    for (reply, left) in
        [(Some(used(60, 20)), 920), (Some(used(400, 300)), 220), (None, 70), (Some(used(150, 0)), 0)]
    {
        let service = tower::service_fn(move |_: Job| async move { Ok::<_, BoxError>(Reply(reply)) });
        let answer = layer.layer(service).oneshot(Job::tokens(50, 100)).await;
        assert_eq!(answer.is_ok(), left > 0, "{reply:?}");
        if left > 0 {
            assert_eq!(layer.gate().level("tokens").unwrap().available, left, "{reply:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn over_http_what_a_whole_response_reports_is_settled_at_its_head() {
    let body = br#"{"error":{"type":"server_error"},"usage":{"prompt_tokens":30,"completion_tokens":10}}"#;
    let layer = builder().build().unwrap().at_head();
    let service = layer.layer(OutcomeLayer::new().layer(answering(500, HeaderMap::new(), body.to_vec())));
    let mut request = Request::new(());
    request.extensions_mut().insert(Job::tokens(500, 500).call);
    service.oneshot(request).await.unwrap();
    assert_eq!(layer.gate().level("tokens").unwrap().available, 1_000_000 - 40);
}
