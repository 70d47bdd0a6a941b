//! The outcome layer reads a response once, and the caller still gets its bytes as they were.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use seawall::call::{Outcome, OutcomeLayer};
use seawall::gate::{End, GateLayer};
use seawall::{BoxError, Class, Classify, StatusClassifier};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{TestBody, TestGate, read};

type Frames = VecDeque<Result<Frame<Bytes>, BoxError>>;

fn frames(parts: &[&[u8]]) -> Frames {
    parts.iter().map(|part| Ok(Frame::data(Bytes::copy_from_slice(part)))).collect()
}

fn respond(status: u16, content_type: &str, frames: Frames) -> Response<TestBody> {
    Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(TestBody::new(frames))
        .unwrap()
}

/// One call through the layer to a service that answers with this response.
async fn ask(response: Response<TestBody>) -> Response<impl Body<Data = Bytes, Error = BoxError>> {
    ask_with(Request::new(()), response).await
}

async fn ask_with(
    request: Request<()>,
    response: Response<TestBody>,
) -> Response<impl Body<Data = Bytes, Error = BoxError>> {
    let response = Arc::new(Mutex::new(Some(response)));
    let inner = service_fn(move |_: Request<()>| {
        let response = response.lock().unwrap().take();
        async move { response.ok_or_else(|| BoxError::from("asked twice")) }
    });
    OutcomeLayer::new().layer(inner).oneshot(request).await.unwrap()
}

fn outcome<B>(response: &Response<B>) -> Arc<Outcome> {
    Outcome::of(response).unwrap().clone()
}

fn class(outcome: &Outcome) -> Option<Class> {
    outcome.verdict().map(|verdict| verdict.class())
}

const CHUNK: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const USAGE: &[u8] = b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
const DONE: &[u8] = b"data: [DONE]\n\n";

#[tokio::test(start_paused = true)]
async fn a_stream_is_read_while_it_passes() {
    let parts: [&[u8]; 4] = [b": ping\n\n", CHUNK, USAGE, DONE];
    let response = ask(respond(200, "text/event-stream; charset=utf-8", frames(&parts))).await;
    let outcome = outcome(&response);
    assert_eq!(class(&outcome), None, "nobody knows yet");
    let mut body = Box::pin(response.into_body());
    tokio::time::advance(Duration::from_millis(20)).await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), parts[0], "as it came");
    assert_eq!(outcome.to_content(), None, "a ping is no content");
    tokio::time::advance(Duration::from_millis(20)).await;
    body.frame().await.unwrap().unwrap();
    assert_eq!(outcome.to_content(), Some(Duration::from_millis(40)));
    body.frame().await.unwrap().unwrap();
    assert_eq!(outcome.usage().total(), Some(9));
    assert!(!outcome.is_finished());
    body.frame().await.unwrap().unwrap();
    assert!(outcome.is_finished());
    assert_eq!(class(&outcome), Some(Class::Success));
    drop(body);
    assert!(outcome.to_end().is_some(), "the client stopped where the answer ends");
}

#[tokio::test]
async fn a_stream_that_is_cut_off_is_no_success() {
    for (name, rest) in [("ended early", None), ("reset", Some(Err(BoxError::from("reset"))))] {
        let mut frames = frames(&[CHUNK, CHUNK]);
        frames.extend(rest);
        let response = ask(respond(200, "text/event-stream", frames)).await;
        let outcome = outcome(&response);
        read(response.into_body()).await;
        assert_eq!(class(&outcome), Some(Class::Transient), "{name}");
    }
}

#[tokio::test]
async fn an_error_inside_a_200_stream_is_an_error() {
    let error =
        b"data: {\"error\":{\"message\":\"slow down\",\"type\":\"overloaded_error\",\"code\":529}}\n\n";
    let response = ask(respond(200, "text/event-stream", frames(&[CHUNK, error, DONE]))).await;
    let outcome = outcome(&response);
    read(response.into_body()).await;
    assert_eq!(class(&outcome), Some(Class::Transient), "what follows does not make it good");
}

#[tokio::test]
async fn an_error_after_the_terminal_event_leaves_the_answer_complete() {
    let mut frames = frames(&[CHUNK, DONE]);
    frames.push_back(Err("reset".into()));
    let response = ask(respond(200, "text/event-stream", frames)).await;
    let outcome = outcome(&response);
    read(response.into_body()).await;
    assert_eq!(class(&outcome), Some(Class::Success));
}

#[tokio::test]
async fn a_failed_response_is_classified_at_its_head_and_reaches_the_caller_intact() {
    let text: [&[u8]; 2] =
        [b"{\"error\": {\"code\": \"insufficient_quota\",  ", b"\"type\": \"insufficient_quota\"}}"];
    let response = ask(respond(429, "application/json", frames(&text))).await;
    let outcome = outcome(&response);
    assert_eq!(class(&outcome), Some(Class::Exhausted), "429 alone would have said throttled");
    let verdict = StatusClassifier.classify(Ok::<_, &BoxError>(&response));
    assert_eq!(verdict.class(), Class::Exhausted, "every layer above reads it");
    assert_eq!(response.body().size_hint().exact(), Some(text.concat().len() as u64));
    let mut body = Box::pin(response.into_body());
    for part in text {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), part, "frame by frame");
    }
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn a_failed_response_holds_nothing_of_the_connection() {
    let body = TestBody::of(&["{}"]).with_trailers();
    let response = ask(Response::builder().status(503).body(body).unwrap()).await;
    let (data, trailers, error) = read(response.into_body()).await;
    assert_eq!((data.as_slice(), error), (b"{}".as_slice(), None));
    assert_eq!(trailers.unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn an_error_body_beyond_the_bound_streams_on() {
    let large = vec![b'x'; 40 * 1024];
    let response = ask(respond(500, "text/plain", frames(&[&large, &large, &large]))).await;
    assert_eq!(class(&outcome(&response)), Some(Class::Transient));
    assert_eq!(read(response.into_body()).await.0.len(), 3 * large.len());
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_never_ends_does_not_hold_the_head_back() {
    struct Silent(bool);
    impl Body for Silent {
        type Data = Bytes;
        type Error = BoxError;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            if std::mem::replace(&mut self.0, true) {
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"{\"error\":")))))
        }
    }
    let start = seawall::time::now();
    let inner = service_fn(|_: Request<()>| async {
        Ok::<_, BoxError>(Response::builder().status(503).body(Silent(false)).unwrap())
    });
    let response = OutcomeLayer::new().layer(inner).oneshot(Request::new(())).await.unwrap();
    assert_eq!(seawall::time::now() - start, Duration::from_secs(5));
    assert_eq!(class(&outcome(&response)), Some(Class::Transient));
    let mut body = Box::pin(response.into_body());
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{\"error\":");
    assert!(!body.is_end_stream(), "the rest may still come");
}

#[tokio::test]
async fn an_error_body_that_breaks_is_passed_on_with_its_error() {
    let mut frames = frames(&[b"{"]);
    frames.push_back(Err("reset".into()));
    let response = ask(respond(502, "application/json", frames)).await;
    assert_eq!(class(&outcome(&response)), Some(Class::Transient));
    let (data, _, error) = read(response.into_body()).await;
    assert_eq!((data.as_slice(), error.as_deref()), (b"{".as_slice(), Some("reset")));
}

#[tokio::test]
async fn a_compressed_answer_is_read_from_a_copy() {
    let text =
        br#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text).unwrap();
    let packed = gzip.finish().unwrap();
    let mut response = respond(200, "application/json", frames(&[&packed]));
    response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    let response = ask(response).await;
    let outcome = outcome(&response);
    assert_eq!(read(response.into_body()).await.0, packed, "the caller's bytes are not touched");
    assert_eq!(outcome.usage().total(), Some(9));
    assert_eq!(class(&outcome), Some(Class::Success));
}

#[tokio::test]
async fn grpc_is_judged_by_its_trailers() {
    for (status, expected) in [("0", Class::Success), ("14", Class::Transient), ("3", Class::Invalid)] {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", status.parse().unwrap());
        let mut frames = frames(&[b"message"]);
        frames.push_back(Ok(Frame::trailers(trailers)));
        let response = ask(respond(200, "application/grpc", frames)).await;
        let outcome = outcome(&response);
        let (data, trailers, _) = read(response.into_body()).await;
        assert_eq!(
            (data.as_slice(), &trailers.unwrap()["grpc-status"]),
            (b"message".as_slice(), &status.parse().unwrap())
        );
        assert_eq!(class(&outcome), Some(expected), "status {status}");
    }
}

#[tokio::test]
async fn a_response_to_head_is_complete_at_its_head() {
    let request = Request::builder().method(Method::HEAD).body(()).unwrap();
    let response = ask_with(request, respond(200, "application/json", frames(&[]))).await;
    assert_eq!(class(&outcome(&response)), Some(Class::Success));
    let request = Request::builder().method(Method::HEAD).body(()).unwrap();
    let response = ask_with(request, respond(404, "application/json", frames(&[]))).await;
    assert_eq!(class(&outcome(&response)), Some(Class::Unfit));
}

#[tokio::test]
async fn five_gates_above_share_one_reading() {
    let gate = TestGate::default();
    let layer = || GateLayer::from_gate(gate.clone());
    let parts: [&[u8]; 3] = [CHUNK, USAGE, DONE];
    let inner = service_fn(move |_: Request<()>| async move {
        Ok::<_, BoxError>(respond(200, "text/event-stream", frames(&parts)))
    });
    let service = ServiceBuilder::new()
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(OutcomeLayer::new())
        .service(inner);
    let response = service.oneshot(Request::new(())).await.unwrap();
    let outcome = outcome(&response);
    let (data, ..) = read(response.into_body()).await;
    assert_eq!(data, parts.concat());
    assert_eq!(outcome.body_bytes(), data.len() as u64, "each byte was read once");
    assert_eq!(gate.ends(), [End::Complete; 5]);
}
