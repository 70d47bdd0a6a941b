//! Faults that others had: what the upstream says it used.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use seawall::BoxError;
use seawall::call::OutcomeLayer;
use seawall::cost_guard::{Unreported, Usd};
use seawall::timeout::TimeoutLayer;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{Log, Upstream, ask, builder, call, guard, json, request, response, sse, sums, tokens, used};
use crate::support::{TestBody, read};

/// What one call of 1 000 bytes and at most 1 000 tokens is charged for this answer.
async fn charged(answer: Response<TestBody>) -> Usd {
    let layer = guard(Usd::dollars(1));
    ask(&mut layer.layer(Upstream::answering([Ok(answer)]).service()), call(1_000, 1_000)).await.unwrap();
    let (spent, reserved) = sums(layer.gate());
    assert_eq!(reserved, Usd::ZERO);
    spent
}

const CONTENT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;
const BOUND: u64 = 2_000;

#[tokio::test(start_paused = true)]
async fn b125_counts_that_cannot_be_are_charged_by_the_bound_and_never_lower_the_sum() {
    let budget = seawall::cost_guard::Budget::new(Usd::dollars(1), seawall::cost_guard::Window::TOTAL);
    let log = Log::default();
    let layer = builder().budget(budget).observer(log.observer()).build().unwrap();
    let mut before = Usd::ZERO;
    for count in ["-100000000", "1e308", "18446744073709551616", "12.5", "\"12\"", "true", "-1", "1e999"] {
        for stream in [false, true] {
            let usage = format!(r#"{{"usage":{{"prompt_tokens":{count},"completion_tokens":{count}}}}}"#);
            let answer = if stream { sse(&[CONTENT, &usage, "[DONE]"]) } else { json(&usage) };
            let mut service = layer.layer(Upstream::answering([Ok(answer)]).service());
            ask(&mut service, call(1_000, 1_000)).await.unwrap();
            let (spent, reserved) = sums(layer.gate());
            assert_eq!(reserved, Usd::ZERO);
            assert!(spent >= before && spent <= before.saturating_add(tokens(BOUND)), "{count}: {spent}");
            before = spent;
            let line = log.lines().remove(0);
            assert!(line.ends_with("Anomaly") || line.ends_with("Bound"), "{count}: {line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b127_null_never_erases_what_was_said() {
    let first = r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":40,"prompt_tokens_details":{"cached_tokens":60}}}"#;
    let later =
        r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":40,"prompt_tokens_details":null}}"#;
    let null = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null}"#;
    assert_eq!(charged(sse(&[null, null, first, later, null, "[DONE]"])).await, tokens(140));
}

#[tokio::test(start_paused = true)]
async fn b128_cumulative_counts_replace_and_are_not_added() {
    let chunks: Vec<String> = (1..=50)
        .map(|n| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}}}}],"usage":{{"prompt_tokens":10,"completion_tokens":{n}}}}}"#
            )
        })
        .collect();
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    assert_eq!(charged(sse(&chunks)).await, tokens(60));
}

#[tokio::test(start_paused = true)]
async fn b130_usage_counts_whatever_the_choices_look_like() {
    for choices in [r#""choices":[],"#, r#""choices":[{"index":0,"delta":{}}],"#, ""] {
        let last = format!(r#"{{{choices}"usage":{{"prompt_tokens":10,"completion_tokens":7}}}}"#);
        assert_eq!(charged(sse(&[CONTENT, &last, "[DONE]"])).await, tokens(17), "{choices}");
    }
}

#[tokio::test(start_paused = true)]
async fn b131_every_terminal_event_settles() {
    let event = |kind: &str, usage: &str| {
        let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";
        let last = format!(
            "event: response.{kind}\ndata: {{\"type\":\"response.{kind}\",\"response\":{{{usage}}}}}\n\n"
        );
        response(200, "text/event-stream", &[delta.as_bytes(), last.as_bytes()])
    };
    let usage = r#""usage":{"input_tokens":30,"output_tokens":12}"#;
    for kind in ["completed", "incomplete", "failed"] {
        assert_eq!(charged(event(kind, usage)).await, tokens(42), "{kind}");
    }
    assert_eq!(charged(event("failed", r#""usage":null"#)).await, tokens(BOUND), "by the rule");
}

#[tokio::test(start_paused = true)]
async fn b133_tokens_outside_the_listed_fields_are_charged_as_output() {
    let usage = r#"{"usage":{"prompt_tokens":41,"completion_tokens":5,"total_tokens":389}}"#;
    assert_eq!(charged(json(usage)).await, tokens(41 + 348));
    let gemini = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":41,"candidatesTokenCount":5,"thoughtsTokenCount":343,"totalTokenCount":389}}"#;
    assert_eq!(charged(json(gemini)).await, tokens(41 + 348));
}

#[tokio::test(start_paused = true)]
async fn b134_a_client_that_leaves_does_not_make_the_call_free() {
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n";
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n";
    let passed = (start.len() + delta.len()) as u64;
    for (rule, spent) in [(Unreported::Bound, BOUND), (Unreported::Seen, 25 + passed)] {
        let budget = seawall::cost_guard::Budget::new(Usd::dollars(1), seawall::cost_guard::Window::TOTAL);
        let layer = builder().budget(budget).unreported(rule).build().unwrap();
        let answer =
            response(200, "text/event-stream", &[start.as_bytes(), delta.as_bytes(), delta.as_bytes()]);
        let mut service = layer.layer(Upstream::answering([Ok(answer)]).service());
        let response = service.ready().await.unwrap().call(request(call(1_000, 1_000))).await.unwrap();
        let mut body = response.into_body();
        body.frame().await.unwrap().unwrap();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(sums(layer.gate()), (tokens(spent), Usd::ZERO), "{rule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b134_a_stream_that_broke_before_its_content_is_charged_by_the_rule() {
    let role = sse(&[r#"{"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#]);
    assert_eq!(
        charged(role.map(TestBody::with_error)).await,
        tokens(BOUND),
        "what was not seen may be billed"
    );
}

#[tokio::test(start_paused = true)]
async fn b134_a_stream_that_a_timeout_below_gives_up_is_charged_by_the_rule() {
    let clocks = TimeoutLayer::builder().first_content(Duration::from_secs(1)).build().unwrap();
    let silent = service_fn(async |_: Request<()>| {
        let body = StreamBody::new(futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>());
        Response::builder().header("content-type", "text/event-stream").body(body).map_err(BoxError::from)
    });
    let layer = guard(Usd::dollars(1));
    let service = layer.layer(clocks.layer(OutcomeLayer::new().layer(silent)));
    let response = service.oneshot(request(call(1_000, 1_000))).await.unwrap();
    let (_, _, error) = read(response.into_body()).await;
    assert!(error.is_some());
    assert_eq!(sums(layer.gate()), (tokens(BOUND), Usd::ZERO), "it may have thought about it, and bill that");
}

#[tokio::test(start_paused = true)]
async fn b134_a_client_that_stops_at_the_last_event_has_the_whole_answer() {
    let layer = guard(Usd::dollars(1));
    let mut service =
        layer.layer(Upstream::answering([Ok(sse(&[CONTENT, &used(10, 2), "[DONE]"]))]).service());
    let response = service.ready().await.unwrap().call(request(call(1_000, 1_000))).await.unwrap();
    let mut body = response.into_body();
    for _ in 0..3 {
        body.frame().await.unwrap().unwrap();
    }
    drop(body);
    assert_eq!(sums(layer.gate()), (tokens(12), Usd::ZERO));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(start_paused = true)]
async fn b139_a_compressed_answer_is_charged_like_a_plain_one() {
    let plain = format!("data: {CONTENT}\n\ndata: {}\n\ndata: [DONE]\n\n", used(10, 7));
    let bytes = gzip(plain.as_bytes());
    for cut in 0..bytes.len() {
        let mut answer = response(200, "text/event-stream", &[&bytes[..cut], &bytes[cut..]]);
        answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        let layer = guard(Usd::dollars(1));
        let service = layer.layer(Upstream::answering([Ok(answer)]).service());
        let response = service.oneshot(request(call(1_000, 1_000))).await.unwrap();
        let (data, ..) = read(response.into_body()).await;
        assert_eq!(data, bytes, "the client's bytes are its own");
        assert_eq!(sums(layer.gate()), (tokens(17), Usd::ZERO), "cut at {cut}");
    }
    for coding in ["identity", "br", "unheard-of"] {
        let mut answer = json(&used(10, 7));
        answer.headers_mut().insert("content-encoding", coding.parse().unwrap());
        let spent = charged(answer).await;
        let by_rule = if coding == "identity" { 17 } else { BOUND };
        assert_eq!(spent, tokens(by_rule), "{coding}: what cannot be read is charged by the rule");
    }
}

#[tokio::test(start_paused = true)]
async fn b140_a_bomb_is_passed_on_and_charged_by_the_rule() {
    let bomb = gzip(&vec![b' '; 25 * 1024 * 1024 + 1]);
    let mut answer = response(200, "application/json", &[&bomb]);
    answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    let layer = guard(Usd::dollars(1));
    let service = layer.layer(Upstream::answering([Ok(answer)]).service());
    let response = service.oneshot(request(call(1_000, 1_000))).await.unwrap();
    let data: Bytes = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(data.len(), bomb.len());
    assert_eq!(sums(layer.gate()), (tokens(BOUND), Usd::ZERO));
}

#[tokio::test(start_paused = true)]
async fn b142_the_content_type_says_whether_usage_is_read() {
    let usage = r#"{"usage":{"prompt_tokens":4,"completion_tokens":5,"total_tokens":9}}"#;
    for body in ["true", "null", "123", usage] {
        let plain = charged(response(200, "text/plain", &[body.as_bytes()])).await;
        assert_eq!(plain, tokens(BOUND), "{body}");
    }
    assert_eq!(charged(json(usage)).await, tokens(9));
    for body in ["true", "null", "123"] {
        assert_eq!(charged(json(body)).await, tokens(BOUND), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_exceeds_the_bound_is_charged_in_full_and_nobody_is_admitted_after() {
    let log = Log::default();
    let budget = seawall::cost_guard::Budget::new(tokens(2_000), seawall::cost_guard::Window::TOTAL);
    let layer = builder().budget(budget).observer(log.observer()).build().unwrap();
    let upstream = Upstream::answering([Ok(json(&used(1_000, 5_000)))]);
    let mut service = layer.layer(upstream.service());
    ask(&mut service, call(1_000, 1_000)).await.unwrap();
    assert_eq!(sums(layer.gate()), (tokens(6_000), Usd::ZERO));
    assert_eq!(log.lines(), ["spent $0.006 of $0.002 by Usage", "mark 100 at $0.006"]);
    assert!(ask(&mut service, call(0, 0)).await.is_err(), "not even one that costs nothing");
    assert_eq!(upstream.asked(), 1);
}
