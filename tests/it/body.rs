//! The body wrapper passes everything on as it is, and knows every way in which a body ends.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use seawall::call::{Outcome, OutcomeLayer};
use seawall::gate::{End, GateLayer};
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, time};
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{TestBody, TestGate, read};

type Make = Arc<Mutex<Option<Response<TestBody>>>>;

/// One call through a gate to a service that answers with this response.
async fn answer(
    gate: &TestGate,
    request: Request<()>,
    response: Response<TestBody>,
) -> Response<impl Body<Data = Bytes, Error = BoxError>> {
    let response: Make = Arc::new(Mutex::new(Some(response)));
    let inner = service_fn(move |_: Request<()>| {
        let response = response.lock().unwrap().take();
        async move { response.ok_or_else(|| BoxError::from("asked twice")) }
    });
    GateLayer::from_gate(gate.clone()).layer(inner).oneshot(request).await.unwrap()
}

#[tokio::test]
async fn frames_trailers_and_hints_pass_unchanged() {
    let gate = TestGate::default();
    let body = TestBody::of(&["a", "bc", "def"]).exact().with_trailers();
    let response = answer(&gate, Request::new(()), Response::new(body)).await;
    assert_eq!(response.body().size_hint().exact(), Some(6));
    assert!(!response.body().is_end_stream());
    let (data, trailers, error) = read(response.into_body()).await;
    assert_eq!(data, b"abcdef");
    assert_eq!(trailers.unwrap()["grpc-status"], "0");
    assert_eq!(error, None);
    assert_eq!(gate.ends(), [End::Complete]);
}

#[tokio::test]
async fn b077_the_permit_is_held_until_the_body_ends() {
    let gate = TestGate::default();
    let response = answer(&gate, Request::new(()), Response::new(TestBody::of(&["a", "b"]))).await;
    assert_eq!(gate.held(), 1, "the head does not free the permit");
    let mut body = std::pin::pin!(response.into_body());
    body.frame().await.unwrap().unwrap();
    assert_eq!(gate.held(), 1, "nor does the first frame");
    body.frame().await.unwrap().unwrap();
    assert!(body.frame().await.is_none());
    assert_eq!((gate.held(), gate.ends()), (0, vec![End::Complete]));
}

#[tokio::test]
async fn a_broken_body_is_broken_once() {
    let gate = TestGate::default();
    let response = answer(&gate, Request::new(()), Response::new(TestBody::of(&["a"]).with_error())).await;
    let (data, _, error) = read(response.into_body()).await;
    assert_eq!((data.as_slice(), error.as_deref()), (b"a".as_slice(), Some("connection reset")));
    assert_eq!(gate.ends(), [End::Broken]);
}

#[tokio::test]
async fn a_body_dropped_before_its_end_is_abandoned() {
    let gate = TestGate::default();
    let response = answer(&gate, Request::new(()), Response::new(TestBody::of(&["a", "b"]))).await;
    let mut body = Box::pin(response.into_body());
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(gate.ends(), [End::Abandoned]);
}

#[tokio::test]
async fn trailers_are_an_end_even_if_nobody_asks_for_more() {
    let gate = TestGate::default();
    let response = answer(&gate, Request::new(()), Response::new(TestBody::of(&["a"]).with_trailers())).await;
    let mut body = Box::pin(response.into_body());
    body.frame().await.unwrap().unwrap();
    assert_eq!(gate.held(), 1);
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert_eq!(gate.ends(), [End::Complete]);
}

#[tokio::test]
async fn the_last_byte_of_a_known_length_is_an_end() {
    let announced =
        Response::builder().header("content-length", "3").body(TestBody::of(&["a", "bc"])).unwrap();
    let exact = Response::new(TestBody::of(&["a", "bc"]).exact());
    for response in [announced, exact] {
        let gate = TestGate::default();
        let mut body = Box::pin(answer(&gate, Request::new(()), response).await.into_body());
        body.frame().await.unwrap().unwrap();
        assert_eq!(gate.held(), 1, "one byte of three");
        body.frame().await.unwrap().unwrap();
        assert_eq!(gate.ends(), [End::Complete]);
        drop(body);
        assert_eq!(gate.ends().len(), 1, "settled once");
    }
}

#[tokio::test]
async fn a_response_after_which_nothing_may_follow_ends_at_its_head() {
    let head = Request::builder().method(Method::HEAD).body(()).unwrap();
    let no_content = Response::builder().status(204).body(TestBody::of(&["never read"])).unwrap();
    let not_modified = Response::builder().status(304).body(TestBody::of(&["never read"])).unwrap();
    let empty = Response::new(TestBody::of(&[]).exact());
    let cases = [
        (head, Response::new(TestBody::of(&["never read"]))),
        (Request::new(()), no_content),
        (Request::new(()), not_modified),
        (Request::new(()), empty),
    ];
    for (request, response) in cases {
        let gate = TestGate::default();
        let response = answer(&gate, request, response).await;
        assert_eq!((gate.held(), gate.ends()), (0, vec![End::Complete]));
        drop(response);
        assert_eq!(gate.ends().len(), 1, "settled once");
    }
}

#[tokio::test]
async fn a_client_that_stops_at_the_terminal_event_has_not_abandoned_the_call() {
    let gate = TestGate::default();
    let outcome = Arc::new(Outcome::new(time::now()));
    let mut response = Response::new(TestBody::of(&["data: [DONE]\n\n", ": never read\n\n"]));
    response.extensions_mut().insert(outcome.clone());
    let mut body = Box::pin(answer(&gate, Request::new(()), response).await.into_body());
    body.frame().await.unwrap().unwrap();
    outcome.mark_finished();
    drop(body);
    assert_eq!(gate.ends(), [End::Complete]);
}

#[tokio::test]
async fn a_permit_that_has_seen_enough_at_the_head_is_free_while_the_body_passes() {
    let gate = TestGate::default();
    gate.settle_at_the_head();
    let response = answer(&gate, Request::new(()), Response::new(TestBody::of(&["a"]))).await;
    assert_eq!((gate.held(), gate.ends()), (0, vec![End::Complete]));
    assert_eq!(read(response.into_body()).await.0, b"a");
    assert_eq!(gate.ends().len(), 1);
}

/// Answers over a real connection, and waits until the server is done with it.
async fn over_hyper(request: Request<Full<Bytes>>, response: fn() -> Response<TestBody>) -> Vec<End> {
    let gate = TestGate::default();
    let service = GateLayer::from_gate(gate.clone()).layer(service_fn(
        move |_: Request<hyper::body::Incoming>| async move { Ok::<_, BoxError>(response()) },
    ));
    let (client, server) = tokio::io::duplex(4096);
    let serving = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(server), hyper_util::service::TowerToHyperService::new(service));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(client)).await.unwrap();
    let asking = async move {
        let response = sender.send_request(request).await.unwrap();
        response.into_body().collect().await.unwrap();
    };
    let _ = tokio::join!(serving, connection, asking);
    gate.ends()
}

#[tokio::test]
async fn a_real_server_that_drops_a_finished_body_has_not_abandoned_it() {
    let get = || Request::builder().uri("/").body(Full::default()).unwrap();
    let head = || Request::builder().method(Method::HEAD).uri("/").body(Full::default()).unwrap();
    let chunked = || Response::new(TestBody::of(&["a", "b"]));
    let exact = || Response::new(TestBody::of(&["a", "b"]).exact());
    let announced =
        || Response::builder().header("content-length", "2").body(TestBody::of(&["a", "b"])).unwrap();
    let no_content = || Response::builder().status(204).body(TestBody::of(&[])).unwrap();
    for (name, ends) in [
        ("chunked", over_hyper(get(), chunked).await),
        ("exact", over_hyper(get(), exact).await),
        ("announced", over_hyper(get(), announced).await),
        ("no content", over_hyper(get(), no_content).await),
        ("head", over_hyper(head(), exact).await),
    ] {
        assert_eq!(ends, [End::Complete], "{name}");
    }
}

/// A body whose size is known to be zero although trailers follow.
struct OnlyTrailers(Option<http::HeaderMap>);

impl Body for OnlyTrailers {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        std::task::Poll::Ready(self.0.take().map(|trailers| Ok(http_body::Frame::trailers(trailers))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(0)
    }
}

#[tokio::test]
async fn b154_trailers_survive_every_wrapper_over_a_real_connection() {
    let gate = TestGate::default();
    let log = Arc::new(Mutex::new(Vec::new()));
    let outcomes = log.clone();
    let stack = tower::ServiceBuilder::new()
        .layer(GateLayer::from_gate(gate.clone()))
        .layer(TimeoutLayer::new(std::time::Duration::from_secs(60)))
        .map_response(move |response: Response<_>| {
            outcomes.lock().unwrap().extend(Outcome::of(&response).cloned());
            response
        })
        .layer(OutcomeLayer::new())
        .service_fn(|_: Request<hyper::body::Incoming>| async {
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", "14".parse().unwrap());
            let response = Response::builder().header("content-type", "application/grpc");
            Ok::<_, BoxError>(response.body(OnlyTrailers(Some(trailers))).unwrap())
        });
    let (client, server) = tokio::io::duplex(4096);
    let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(server), hyper_util::service::TowerToHyperService::new(stack));
    let serving = tokio::spawn(serving);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("http://upstream.example/").body(Full::<Bytes>::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "14");
    drop(sender);
    connection.await.unwrap().unwrap();
    serving.await.unwrap().unwrap();
    assert_eq!(gate.ends(), [End::Complete]);
    let verdict = log.lock().unwrap()[0].verdict().map(|verdict| verdict.class());
    assert_eq!(
        verdict,
        Some(seawall::Class::Transient),
        "the permit was settled after the status, not before"
    );
}
