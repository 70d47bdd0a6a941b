//! `.respond()`: a refusal as a response.

use std::convert::Infallible;

use axum::Router;
use axum::routing::get;
use http::{Method, Request};
use http_body_util::BodyExt;
use seawall::gate::GateLayer;
use seawall::{Refusal, RefusalKind};
use tower::ServiceExt;

use crate::support::{Answer, TestGate};

fn refusing() -> (TestGate, Router) {
    let gate = TestGate::default();
    gate.answer(Answer::Refused);
    // A router takes the layer as it is: its error type is `Infallible`.
    let router = Router::new().route("/", get(|| async { "served" }));
    (gate.clone(), router.layer(GateLayer::from_gate(gate).respond()))
}

#[tokio::test]
async fn a_server_answers_with_a_problem_document() {
    let (gate, router) = refusing();
    let response = router.clone().oneshot(Request::new(axum::body::Body::empty())).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.extensions().get::<Refusal>().map(Refusal::kind), Some(RefusalKind::Custom));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"{\"type\":\"about:blank\""), "{body:?}");

    gate.answer(Answer::Now);
    let response = router.oneshot(Request::new(axum::body::Body::empty())).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "served");
}

#[tokio::test]
async fn a_refusal_of_head_has_the_head_alone() {
    let gate = TestGate::default();
    gate.answer(Answer::Refused);
    let service = tower::Layer::layer(
        &GateLayer::from_gate(gate).respond(),
        tower::service_fn(|_: Request<()>| async {
            Ok::<_, Infallible>(http::Response::new(http_body_util::Empty::<bytes::Bytes>::new()))
        }),
    );
    let request = Request::builder().method(Method::HEAD).body(()).unwrap();
    let response = service.oneshot(request).await.unwrap();
    assert!(response.headers()["content-length"].to_str().unwrap().parse::<u64>().unwrap() > 0);
    assert!(http_body::Body::is_end_stream(response.body()));
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn a_refusal_of_grpc_is_trailers_only_and_grpc_web_is_not_grpc() {
    let (_gate, router) = refusing();
    let ask = |content_type: &'static str| {
        let request = Request::builder().header("content-type", content_type);
        router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap())
    };
    for content_type in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
        let response = ask(content_type).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["grpc-status"]),
            (200, &"14".parse().unwrap())
        );
    }
    let response = ask("application/grpc-web").await.unwrap();
    assert_eq!(response.status(), 503);
}
