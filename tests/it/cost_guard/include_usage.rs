//! Streams whose usage is asked for, read and hidden again.

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use seawall::BoxError;
use seawall::call::{CallBody, IncludeUsageLayer, IntakeLayer, OutcomeLayer};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use super::{guard, sse, sums, used};
use crate::support::{TestBody, read};
use seawall::cost_guard::Usd;

const CONTENT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null}"#;

fn chat(body: &str) -> Request<CallBody> {
    Request::post("https://api.example.com/v1/chat/completions")
        .header("content-type", "application/json")
        .header("content-length", body.len())
        .header("accept-encoding", "gzip")
        .body(CallBody::from(body.to_owned()))
        .unwrap()
}

/// What the upstream got, and what the caller did; the guard's sums behind it.
async fn ask(body: &str, answer: Response<TestBody>) -> (Request<Bytes>, Response<Vec<u8>>, (Usd, Usd)) {
    let (seen, answer) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Some(answer))));
    let upstream = {
        let seen = seen.clone();
        service_fn(move |request: Request<CallBody>| {
            let (parts, body) = request.into_parts();
            *seen.lock().unwrap() = Some(Request::from_parts(parts, body.bytes().unwrap().clone()));
            let answer = answer.lock().unwrap().take().unwrap();
            async move { Ok::<_, BoxError>(answer) }
        })
    };
    let layer = guard(Usd::dollars(1));
    let service = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .layer(layer.clone())
        .layer(IncludeUsageLayer::new())
        .layer(OutcomeLayer::new())
        .service(upstream);
    let (parts, body) = service.oneshot(chat(body)).await.unwrap().into_parts();
    let (data, _, error) = read(body).await;
    assert!(error.is_none());
    let seen = seen.lock().unwrap().take().unwrap();
    (seen, Response::from_parts(parts, data), sums(layer.gate()))
}

const SILENT: &str = r#"{"model":"m","stream":true,"max_tokens":100,"messages":[]}"#;

fn usage_chunk() -> String {
    format!(r#"{{"choices":[],{}"#, used(10, 7).trim_start_matches('{'))
}

fn stream() -> Response<TestBody> {
    let mut answer = sse(&[CONTENT, &usage_chunk(), "[DONE]"]);
    let length = text(&[CONTENT, &usage_chunk(), "[DONE]"]).len();
    for name in ["content-length", "etag", "content-digest"] {
        answer.headers_mut().insert(name, length.into());
    }
    answer
}

fn text(events: &[&str]) -> String {
    events.iter().flat_map(|event| ["data: ", event, "\n\n"]).collect()
}

fn has(headers: &HeaderMap, names: &[&str]) -> bool {
    names.iter().all(|name| headers.contains_key(*name))
}

#[tokio::test(start_paused = true)]
async fn usage_is_asked_for_charged_and_hidden_from_who_did_not_ask() {
    let (seen, got, sums) = ask(SILENT, stream()).await;
    let wanted = SILENT.replacen('{', r#"{"stream_options":{"include_usage":true},"#, 1);
    assert_eq!(seen.body(), wanted.as_bytes());
    assert_eq!(seen.headers()["content-length"], wanted.len().to_string());
    assert_eq!(seen.headers()["accept-encoding"], "identity");
    assert_eq!(String::from_utf8_lossy(got.body()), text(&[CONTENT, "[DONE]"]));
    assert!(!has(got.headers(), &["content-length"]) && !has(got.headers(), &["etag"]));
    assert!(!has(got.headers(), &["content-digest"]));
    assert_eq!(sums, (super::tokens(17), Usd::ZERO), "by usage, not by the bound");
}

#[tokio::test(start_paused = true)]
async fn who_asked_gets_it_and_nothing_is_touched() {
    let asked = SILENT.replacen('{', r#"{"stream_options":{"include_usage":true},"#, 1);
    let (seen, got, sums) = ask(&asked, stream()).await;
    assert_eq!(
        (seen.body().as_ref(), seen.headers()["accept-encoding"].as_bytes()),
        (asked.as_bytes(), &b"gzip"[..])
    );
    assert_eq!(String::from_utf8_lossy(got.body()), text(&[CONTENT, &usage_chunk(), "[DONE]"]));
    assert!(has(got.headers(), &["content-length", "etag", "content-digest"]));
    assert_eq!(sums.0, super::tokens(17));
}

#[tokio::test(start_paused = true)]
async fn b172_what_is_compressed_stays_as_it_is_and_what_is_changed_says_what_it_is() {
    let plain = text(&[CONTENT, &usage_chunk(), "[DONE]"]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    // The upstream compresses though it was asked not to.
    let mut answer = super::response(200, "text/event-stream", &[&packed]);
    for (name, value) in [("content-encoding", "gzip"), ("content-length", "9"), ("etag", "\"a\"")] {
        answer.headers_mut().insert(name, value.parse().unwrap());
    }
    let before = answer.headers().clone();
    let (_, got, sums) = ask(SILENT, answer).await;
    assert_eq!((got.headers(), got.body()), (&before, &packed), "nothing is changed");
    assert_eq!(sums.0, super::tokens(17), "and it is read all the same");
    // One that is changed is not labelled as compressed, as long or as what it was.
    let mut answer = stream();
    answer.headers_mut().insert("content-encoding", "identity".parse().unwrap());
    let (_, got, _) = ask(SILENT, answer).await;
    assert_eq!(got.headers()["content-encoding"], "identity");
    assert!(!has(got.headers(), &["content-length"]) && !has(got.headers(), &["etag"]));
    // Errors and answers that are no streams keep all.
    for status in [200, 429] {
        let mut answer = super::response(status, "application/json", &[used(1, 1).as_bytes()]);
        answer.headers_mut().insert("etag", "7".parse().unwrap());
        let (_, got, _) = ask(SILENT, answer).await;
        assert_eq!((got.body().as_slice(), has(got.headers(), &["etag"])), (used(1, 1).as_bytes(), true));
    }
}

#[tokio::test(start_paused = true)]
async fn hints_and_the_end_stay_true_while_an_event_is_hidden() {
    let answer = Arc::new(Mutex::new(Some(stream().map(|body| body.exact().with_trailers()))));
    let upstream = service_fn(move |_: Request<CallBody>| {
        let answer = answer.lock().unwrap().take().unwrap();
        async move { Ok::<_, BoxError>(answer) }
    });
    let response = IncludeUsageLayer::new().layer(upstream).oneshot(chat(SILENT)).await.unwrap();
    let mut body = std::pin::pin!(response.into_body());
    let mut hints = vec![body.size_hint()];
    let mut passed = vec![0];
    while let Some(frame) = body.frame().await {
        let frame = frame.unwrap();
        passed.push(frame.data_ref().map_or(0, |data| data.len() as u64));
        hints.push(body.size_hint());
    }
    let total: u64 = passed.iter().sum();
    let mut sent = 0;
    for (hint, passed) in hints.iter().zip(&passed) {
        sent += passed;
        let left = total - sent;
        assert!(hint.lower() <= left && hint.upper().is_none_or(|upper| upper >= left), "{hint:?} of {left}");
    }
    assert_eq!(passed.len(), 4, "two events and the trailers");
    assert!(body.is_end_stream());
}
