//! A gRPC answer whose status comes behind its head, where the head is held for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use seawall::call::{Outcome, OutcomeLayer};
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::{BoxError, Class, time};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

type Frames = BoxStream<'static, Result<Frame<Bytes>, BoxError>>;

fn status(code: &str) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.parse().unwrap());
    Frame::trailers(trailers)
}

fn message() -> Frame<Bytes> {
    Frame::data(Bytes::from_static(b"message"))
}

/// A good head, and after `wait` these frames.
fn answer(wait: Duration, frames: Vec<Result<Frame<Bytes>, BoxError>>) -> Response<StreamBody<Frames>> {
    let frames = stream::once(tokio::time::sleep(wait)).flat_map(move |()| {
        let frames: Vec<_> = frames.iter().map(copied).collect();
        stream::iter(frames)
    });
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(StreamBody::new(frames.boxed())).unwrap()
}

fn copied(frame: &Result<Frame<Bytes>, BoxError>) -> Result<Frame<Bytes>, BoxError> {
    match frame {
        Ok(frame) if frame.is_trailers() => Ok(Frame::trailers(frame.trailers_ref().unwrap().clone())),
        Ok(frame) => Ok(Frame::data(frame.data_ref().unwrap().clone())),
        Err(error) => Err(error.to_string().into()),
    }
}

async fn ask(
    layer: OutcomeLayer,
    response: Response<StreamBody<Frames>>,
) -> (Response<impl http_body::Body<Data = Bytes, Error = BoxError>>, Arc<Outcome>) {
    let response = std::sync::Mutex::new(Some(response));
    let inner = service_fn(move |_: Request<()>| {
        let response = response.lock().unwrap().take().unwrap();
        async { Ok::<_, BoxError>(response) }
    });
    let response = layer.layer(inner).oneshot(Request::new(())).await.unwrap();
    let outcome = Outcome::of(&response).unwrap().clone();
    (response, outcome)
}

fn holding() -> OutcomeLayer {
    OutcomeLayer::new().grpc_frame_time(SECOND)
}

#[tokio::test(start_paused = true)]
async fn trailers_right_behind_the_head_are_known_with_it() {
    let (response, outcome) = ask(holding(), answer(SECOND / 2, vec![Ok(status("14"))])).await;
    assert_eq!(outcome.verdict().unwrap().class(), Class::Transient);
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "14", "the caller still gets them");

    let (_, outcome) = ask(holding(), answer(SECOND / 2, vec![Err("reset".into())])).await;
    assert_eq!(outcome.verdict().unwrap().class(), Class::Transient);
    let (_, outcome) = ask(holding(), answer(SECOND / 2, vec![Ok(status("0"))])).await;
    assert!(outcome.verdict().unwrap().is_success(), "a stream without a message is well");
}

#[tokio::test(start_paused = true)]
async fn a_message_ends_the_hold_and_passes_untouched() {
    let (response, outcome) = ask(holding(), answer(SECOND / 2, vec![Ok(message()), Ok(status("8"))])).await;
    assert_eq!(outcome.verdict(), None, "the trailers will tell");
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "8");
    assert_eq!(body.to_bytes(), "message");
    assert_eq!(outcome.verdict().unwrap().class(), Class::Throttled);
    assert_eq!(outcome.body_bytes(), 7, "it was read once");
}

#[tokio::test(start_paused = true)]
async fn a_head_is_not_held_for_longer_nor_when_nobody_asked() {
    let start = time::now();
    let (response, outcome) = ask(holding(), answer(5 * SECOND, vec![Ok(status("14"))])).await;
    assert_eq!((time::now() - start, outcome.verdict()), (SECOND, None));
    assert!(response.into_body().collect().await.unwrap().trailers().is_some());
    assert_eq!(outcome.verdict().unwrap().class(), Class::Transient);

    let start = time::now();
    let (_, outcome) = ask(OutcomeLayer::new(), answer(SECOND, vec![Ok(status("14"))])).await;
    assert_eq!((time::now() - start, outcome.verdict()), (Duration::ZERO, None));
}

#[tokio::test(start_paused = true)]
async fn a_status_in_trailers_is_repeated_if_the_head_is_held() {
    for (layer, times) in [(holding(), 2), (OutcomeLayer::new(), 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let seen = asked.clone();
        let service = ServiceBuilder::new()
            .layer(RetryLayer::new(RetryPolicy::llm()))
            .layer(layer)
            .service_fn(move |_: Request<()>| {
                let code = if seen.fetch_add(1, SeqCst) == 0 { "14" } else { "0" };
                async move { Ok::<_, BoxError>(answer(SECOND / 2, vec![Ok(status(code))])) }
            });
        service.oneshot(Request::new(())).await.unwrap();
        assert_eq!(asked.load(SeqCst), times);
    }
}
