//! A gateway's fallback: what it refuses, it answers; and a retry below that reads on.

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::fallback::{Attempts, Commit, FallbackLayer, Route, Routes, Target};
use seawall::retry::{Backoff, Jitter, RetryLayer, RetryPolicy};
use seawall::{BoxError, Failure, Refusal, RefusalKind};
use tower::{Layer, ServiceBuilder, ServiceExt};

use super::provider::*;

async fn answer(providers: &Providers, request: Request<CallBody>) -> Result<Response<String>, BoxError> {
    let client = ServiceBuilder::new().layer(IntakeLayer::new()).layer(two().respond());
    let client = client.layer(OutcomeLayer::new()).service(providers.clone());
    let (head, body) = client.oneshot(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, String::from_utf8(body.to_vec()).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn where_no_target_is_left_the_refusal_is_a_response() {
    let providers = Providers::new().on("a", [Reply::Reset]).on("b", [Reply::Reset]);
    let response = answer(&providers, request(CHAT)).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let refusal = response.extensions().get::<Refusal>().unwrap();
    assert_eq!(refusal.kind(), RefusalKind::NoTarget);
    assert_eq!(Attempts::find(refusal).unwrap().to_string(), "a: Transient, b: Transient");
    assert!(response.body().contains("no_target"), "{}", response.body());

    let mut head = request(CHAT);
    *head.method_mut() = Method::HEAD;
    assert!(answer(&providers, head).await.unwrap().body().is_empty());
    let mut grpc = request(CHAT);
    grpc.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    let response = answer(&providers, grpc).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["grpc-status"]),
        (200, &"14".parse().unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_route_is_answered_too_and_a_real_answer_stays_as_it_is() {
    let only = Routes::builder().upstream(upstream("a")).route(Route::to("other").target(Target::at("a")));
    let layer = FallbackLayer::new(only.build().unwrap()).respond();
    let service = IntakeLayer::new().layer(layer.layer(OutcomeLayer::new().layer(Providers::new())));
    let response = service.oneshot(request(CHAT)).await.unwrap();
    assert_eq!(response.extensions().get::<Refusal>().unwrap().kind(), RefusalKind::NoTarget);

    let providers = Providers::new().on("a", [status(503, "late")]).on("b", [status(500, "also")]);
    let response = answer(&providers, request(CHAT)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.body().as_str()), (500, "also"));
    assert!(response.extensions().get::<Refusal>().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_a_retry_below_found_empty_is_no_answer_either() {
    let backoff = Backoff::exponential(SECOND / 10).jitter(Jitter::None);
    let policy =
        || RetryPolicy::builder().ambiguous(true).backoff(backoff.clone()).attempts(2).build().unwrap();
    let ask = async |providers: &Providers, commit| {
        let layer = FallbackLayer::new(routes(route().commit(commit)));
        let below = ServiceBuilder::new().layer(RetryLayer::new(policy()).until_content());
        let below = below.layer(OutcomeLayer::new()).service(providers.clone());
        over(IntakeLayer::new(), layer, below).oneshot(request(CHAT)).await
    };
    for commit in [Commit::Head, Commit::FirstContent] {
        let failing = || stream(&[ROLE, STREAM_ERROR]);
        let providers = Providers::new().on("a", [failing()]).on("b", [healthy_stream()]);
        let got = read(ask(&providers, commit).await.unwrap()).await;
        assert_eq!((got.by(), providers.asked().concat().as_str()), ("b", "aab"));
        assert!(!got.body.contains("overloaded"), "nothing of the first is seen");

        let providers = Providers::new().on("a", [failing()]).on("b", [failing()]);
        let error = ask(&providers, commit).await.err().unwrap();
        assert_eq!(error.refusal().unwrap().kind(), RefusalKind::NoTarget, "its 200 is none");
        assert_eq!(providers.asked().concat(), "aabb");
    }
}
