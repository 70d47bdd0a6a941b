use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::mpsc;
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_test::mock;

use super::IntakeLayer;
use crate::call::{Call, CallBody, Describe, Key, Priority};
use crate::refusal::BoxError;

const CHAT: &str =
    r#"{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}"#;

fn json<B>(body: B) -> Request<B> {
    Request::post("/v1/chat/completions")
        .header("content-type", "application/json; charset=utf-8")
        .body(body)
        .unwrap()
}

/// What the inner service gets.
async fn taken<B>(layer: IntakeLayer, request: Request<B>) -> Request<CallBody>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + Send + 'static,
{
    let echo = service_fn(async |request: Request<CallBody>| Ok::<_, Infallible>(request));
    layer.layer(echo).oneshot(request).await.unwrap()
}

fn call(request: &Request<CallBody>) -> &Call {
    request.call().unwrap()
}

fn stream(
    frames: Vec<Result<Frame<Bytes>, &'static str>>,
) -> impl Body<Data = Bytes, Error = &'static str> + Unpin {
    StreamBody::new(futures_util::stream::iter(frames))
}

#[expect(clippy::unnecessary_wraps, reason = "beside errors in a script")]
fn data(text: &'static str) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

#[tokio::test]
async fn the_call_says_what_the_body_asks_for() {
    let request = taken(IntakeLayer::new(), json(Full::new(Bytes::from(CHAT)))).await;
    let call = call(&request);
    assert_eq!(call.model, Some(Key::from("m")));
    assert!(call.stream && call.replayable && call.rewritable);
    assert_eq!(call.output_bound, Some(9));
    assert!(call.estimate.unwrap().input_tokens > 0);
    assert_eq!(request.body().bytes().unwrap(), CHAT);
}

#[tokio::test]
async fn what_somebody_else_wrote_into_the_call_stays() {
    let mut request = json(Full::new(Bytes::from(CHAT)));
    let mine =
        Call { tenant: Some(Key::from("t")), priority: Priority::new(3), probe: true, ..Call::default() };
    request.extensions_mut().insert(mine);
    let request = taken(IntakeLayer::new(), request).await;
    let call = call(&request);
    assert_eq!(
        (call.tenant.clone(), call.priority, call.probe),
        (Some(Key::from("t")), Priority::new(3), true)
    );
    assert_eq!(call.model, Some(Key::from("m")));
}

#[tokio::test]
async fn a_body_in_pieces_is_collected_with_its_trailers() {
    let trailers =
        HeaderMap::from_iter([(http::HeaderName::from_static("x"), http::HeaderValue::from_static("y"))]);
    let (head, tail) = CHAT.split_at(20);
    let body = stream(vec![data(head), data(""), data(tail), Ok(Frame::trailers(trailers.clone()))]);
    let request = taken(IntakeLayer::new(), json(body)).await;
    assert_eq!(request.body().bytes().unwrap(), CHAT);
    assert_eq!(request.body().trailers(), Some(&trailers));
    assert!(call(&request).rewritable);
}

#[tokio::test]
async fn over_the_limit_it_passes_as_it_comes_and_says_so() {
    let limit = CHAT.len();
    let fits = taken(IntakeLayer::new().limit(limit), json(stream(vec![data(CHAT)]))).await;
    assert!(call(&fits).rewritable);
    let over =
        taken(IntakeLayer::new().limit(limit), json(stream(vec![data(CHAT), data(" "), data("\n")]))).await;
    let facts = call(&over);
    assert!(!facts.rewritable && !facts.replayable);
    assert_eq!(facts.model, None);
    assert!(over.body().bytes().is_none());
    assert_eq!(over.into_body().collect().await.unwrap().to_bytes(), format!("{CHAT} \n"));
}

#[tokio::test]
async fn sixty_four_mebibytes_pass_with_no_more_than_the_limit_read() {
    let chunk = Bytes::from(vec![b' '; 1 << 20]);
    let frames = (0..64).map(move |_| Ok::<_, Infallible>(Frame::data(chunk.clone())));
    let request = taken(IntakeLayer::new(), json(StreamBody::new(futures_util::stream::iter(frames)))).await;
    assert!(!call(&request).replayable);
    let mut total = 0;
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        total += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(total, 64 << 20);
}

/// Says that it is long, and never comes.
struct Announced(u64);

impl Body for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

#[tokio::test]
async fn a_gigabyte_that_is_only_announced_takes_no_room_and_no_wait() {
    let mut request = json(Announced(0));
    request.headers_mut().insert("content-length", 1_000_000_000.into());
    assert!(!call(&taken(IntakeLayer::new(), request).await).replayable, "by its header");
    assert!(!call(&taken(IntakeLayer::new(), json(Announced(1 << 30))).await).replayable, "by its hint");
    let (service, _handle) = mock::pair::<Request<CallBody>, ()>();
    let mut waits =
        task::spawn(IntakeLayer::new().limit(usize::MAX).layer(service).oneshot(json(Announced(1 << 30))));
    assert_pending!(waits.poll());
}

#[tokio::test]
async fn what_is_compressed_or_no_json_passes_unread() {
    for (name, value) in
        [("content-encoding", "gzip"), ("content-type", "application/grpc"), ("content-type", "text/plain")]
    {
        let mut request = json(Full::new(Bytes::from(CHAT)));
        request.headers_mut().insert(name, value.parse().unwrap());
        let request = taken(IntakeLayer::new(), request).await;
        let facts = call(&request);
        assert!(facts.model.is_none() && facts.estimate.is_none() && !facts.rewritable, "{value}");
        assert!(facts.replayable, "it is small enough to be written down while it is sent");
        let again = request.body().clone();
        assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), CHAT);
        assert_eq!(again.collect().await.unwrap().to_bytes(), CHAT);
    }
    let mut request = json(Full::new(Bytes::from(CHAT)));
    request.headers_mut().insert("content-encoding", "identity".parse().unwrap());
    request.headers_mut().insert("content-type", "application/vnd.api+JSON".parse().unwrap());
    assert!(call(&taken(IntakeLayer::new().record(0), request).await).rewritable);
}

#[tokio::test]
async fn json_that_says_nothing_is_sent_again_but_not_rewritten() {
    let deep = "[".repeat(100_000);
    for body in [&deep, "", "{", "[]", r#"{"model":null}"#, r#"{"model":1}"#, r#"{"x":{"model":"m"}}"#] {
        let request =
            taken(IntakeLayer::new(), json(Full::new(Bytes::copy_from_slice(body.as_bytes())))).await;
        let facts = call(&request);
        assert!(facts.replayable && !facts.rewritable && facts.model.is_none(), "{body:.30}");
        assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), body);
    }
}

#[tokio::test]
async fn a_form_and_a_path_name_their_model_too() {
    let form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nw\r\n--b--\r\n";
    let mut request = json(Full::new(Bytes::from(form)));
    request.headers_mut().insert("content-type", "multipart/form-data; boundary=b".parse().unwrap());
    let request = taken(IntakeLayer::new(), request).await;
    assert_eq!(call(&request).model, Some(Key::from("w")));
    assert_eq!(
        request.body().with_model("vv").unwrap().bytes().unwrap(),
        &form.replace("\r\nw\r\n", "\r\nvv\r\n")
    );

    let mut request = json(Full::new(Bytes::from(r#"{"contents":[]}"#)));
    *request.uri_mut() = "/v1beta/models/gemini-x:streamGenerateContent".parse().unwrap();
    let request = taken(IntakeLayer::new(), request).await;
    assert_eq!(call(&request).model, Some(Key::from("gemini-x")));
    assert!(call(&request).stream && call(&request).rewritable);
}

#[tokio::test]
async fn a_read_error_reaches_the_client_below_behind_what_was_read() {
    let request = taken(IntakeLayer::new(), json(stream(vec![data("{\"mo"), Err("cut")]))).await;
    assert!(!call(&request).replayable);
    let mut body = request.into_body();
    assert!(!body.is_end_stream());
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{\"mo");
    assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "cut");
    assert!(body.frame().await.is_none());
}

type Channel = mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>;

/// A body that arrives when it is sent, and ends when the sender is dropped.
fn channel() -> (Channel, UnsyncBoxBody<Bytes, Infallible>) {
    let (send, receive) = mpsc::unbounded_channel();
    let stream =
        futures_util::stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)));
    (send, StreamBody::new(stream).boxed_unsync())
}

type Incoming = Request<UnsyncBoxBody<Bytes, Infallible>>;

#[tokio::test]
async fn nothing_below_is_held_while_a_body_is_on_its_way() {
    let inner = ServiceBuilder::new()
        .concurrency_limit(1)
        .service(service_fn(async |request: Request<CallBody>| Ok::<_, Infallible>(Response::new(request))));
    let mut intake = IntakeLayer::new().layer(inner);
    let mut other = intake.clone();
    let (send, slow) = channel();
    ServiceExt::<Incoming>::ready(&mut intake).await.unwrap();
    let mut slow = task::spawn(intake.call(json(slow)));
    assert_pending!(slow.poll());

    // The only slot is free for somebody else.
    let (_, quick) = channel();
    let quick = ServiceExt::<Incoming>::ready(&mut other).await.unwrap().call(json(quick));
    quick.await.unwrap();

    send.send(Ok(Frame::data(Bytes::from(CHAT)))).unwrap();
    drop(send);
    assert!(slow.is_woken());
    let response = assert_ready_ok!(slow.poll());
    assert_eq!(response.body().body().bytes().unwrap(), CHAT);
}

#[tokio::test]
async fn a_body_that_is_there_is_sent_by_the_service_that_was_ready() {
    let (inner, mut handle) = mock::pair::<Request<CallBody>, ()>();
    let mut intake = IntakeLayer::new().layer(inner);
    // Only one is let in: a fresh clone would not be ready.
    handle.allow(1);
    ServiceExt::<Request<Full<Bytes>>>::ready(&mut intake).await.unwrap();
    let mut response = task::spawn(intake.call(json(Full::new(Bytes::from(CHAT)))));
    assert_pending!(response.poll());
    let (request, send) = handle.next_request().await.unwrap();
    assert!(call(&request).rewritable);
    send.send_response(());
    tokio::task::yield_now().await;
    assert_ready_ok!(response.poll());
}
