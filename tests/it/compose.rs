//! Our layers above and below those of tower and tower-http, each with each.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer, Upstream};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Fault, calls};
use tower::balance::p2c::Balance;
use tower::buffer::BufferLayer;
use tower::discover::ServiceList;
use tower::limit::ConcurrencyLimitLayer;
use tower::load::Constant;
use tower::load_shed::LoadShedLayer;
use tower::steer::Steer;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::decompression::DecompressionLayer;
use tower_http::request_id::{MakeRequestId, RequestId, SetRequestIdLayer};
use tower_http::trace::TraceLayer;

const ANSWER: &str =
    r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#;
const LONG: Duration = Duration::from_secs(60);

fn falling_over() -> FallbackLayer {
    let upstream = Upstream::new("one", "http://one.example/v1").unwrap();
    let route = Route::to("*").target(Target::at("one"));
    FallbackLayer::new(Routes::builder().upstream(upstream).route(route).build().unwrap())
}

fn bucket() -> TokenBucketLayer {
    TokenBucketLayer::new(Quota::per_second(100.try_into().unwrap()))
}

fn guard() -> CostGuardLayer {
    let prices = PriceTable::new().model("m", Price::per_million("1", "1").unwrap().with_max_output(100));
    CostGuardLayer::new(prices, Budget::new(Usd::dollars(1), Window::DAY))
}

#[derive(Clone, Copy)]
struct SameId;

impl MakeRequestId for SameId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        Some(RequestId::new(HeaderValue::from_static("id-1")))
    }
}

fn timeout_408(limit: Duration) -> tower_http::timeout::TimeoutLayer {
    tower_http::timeout::TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limit)
}

async fn upstream(_: Request<CallBody>) -> Result<Response<Full<Bytes>>, BoxError> {
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::from(ANSWER))?)
}

fn chat() -> Request<CallBody> {
    Request::post("http://any/v1/chat/completions")
        .header("content-type", "application/json")
        .header("accept-encoding", "gzip")
        .body(CallBody::from(r#"{"model":"m","max_tokens":10,"messages":[]}"#))
        .unwrap()
}

/// Two calls through the stack, one of them through a clone, each to the end of its body.
async fn passes<S, B>(service: S)
where
    S: Service<Request<CallBody>, Response = Response<B>, Error: Into<BoxError>>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
{
    for _ in 0..2 {
        let response = service.clone().oneshot(chat()).await.map_err(Into::into).unwrap();
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.map_err(Into::into).unwrap().to_bytes();
        assert!(!body.is_empty());
    }
}

/// That this is a service for others to stand upon and to share. Nothing is called: what is asked here is of types, and code
/// for each pair would take long to build.
fn composes<S, B>(_: S)
where
    S: Service<Request<CallBody>, Response = Response<B>, Error: Into<BoxError>>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
{
}

/// A layer of others above each of ours, and below it.
macro_rules! stands_with_each_of_ours {
    ($($name:ident: $other:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            stands_with_each_of_ours! { @ $other =>
                IntakeLayer::new();
                TimeoutLayer::new(LONG);
                falling_over();
                RetryLayer::new(RetryPolicy::llm());
                CircuitBreakerLayer::new();
                guard();
                bucket();
                BulkheadLayer::new(1);
                OutcomeLayer::new();
            }
        }
    )+};
    (@ $other:expr => $($ours:expr;)+) => {$(
        composes(ServiceBuilder::new().layer($other).layer($ours).service_fn(upstream));
        composes(ServiceBuilder::new().layer($ours).layer($other).service_fn(upstream));
    )+};
}

stands_with_each_of_ours! {
    tower_buffer_stands_with_each: BufferLayer::new(8);
    tower_concurrency_limit_stands_with_each: ConcurrencyLimitLayer::new(1);
    tower_load_shed_stands_with_each: LoadShedLayer::new();
    tower_timeout_stands_with_each: tower::timeout::TimeoutLayer::new(LONG);
    tower_box_clone_sync_stands_with_each: BoxCloneSyncService::layer();
    tower_http_trace_stands_with_each: TraceLayer::new_for_http();
    tower_http_timeout_stands_with_each: timeout_408(LONG);
    tower_http_compression_stands_with_each: CompressionLayer::new();
    tower_http_decompression_stands_with_each: DecompressionLayer::new();
    tower_http_request_id_stands_with_each: SetRequestIdLayer::x_request_id(SameId);
}

/// All of ours in their order, around this service.
macro_rules! all_of_ours {
    ($inner:expr) => {
        ServiceBuilder::new()
            .layer(IntakeLayer::new())
            .layer(TimeoutLayer::new(LONG))
            .layer(falling_over())
            .layer(RetryLayer::new(RetryPolicy::llm()))
            .layer(CircuitBreakerLayer::new())
            .layer(guard())
            .layer(bucket())
            .layer(BulkheadLayer::new(8))
            .layer(TimeoutLayer::builder().head(LONG).idle(LONG).build().unwrap())
            .layer(OutcomeLayer::new())
            .service($inner)
    };
}

#[tokio::test]
async fn the_whole_stack_stands_between_those_of_tower_http() {
    let others = || {
        ServiceBuilder::new()
            .layer(SetRequestIdLayer::x_request_id(SameId))
            .layer(TraceLayer::new_for_http())
            .layer(timeout_408(LONG))
            .layer(DecompressionLayer::new())
            .layer(CompressionLayer::new())
    };
    passes(others().service(all_of_ours!(others().service_fn(upstream)))).await;
}

#[tokio::test]
async fn a_stack_is_one_of_many_that_steer_and_balance_choose_from() {
    let two = || [all_of_ours!(service_fn(upstream)), all_of_ours!(service_fn(upstream))];
    let by_path = |request: &Request<CallBody>, _: &[_]| usize::from(request.uri().path().len() > 20);
    passes(BulkheadLayer::new(8).layer(Steer::new(two(), by_path))).await;

    // tower asks here for a service without saying of which request: `calls` says it.
    let named = two().map(|stack| Constant::new(calls::<Request<CallBody>>().layer(stack), 1));
    let balanced = Balance::new(ServiceList::new(named));
    // A balancer is not `Clone`: a buffer makes it so.
    let shared =
        ServiceBuilder::new().layer(BulkheadLayer::new(8)).layer(BufferLayer::new(8)).service(balanced);
    passes(shared).await;
}

#[tokio::test]
async fn a_stack_goes_into_a_box_and_further_layers_above_it() {
    let boxed = BoxCloneSyncService::new(all_of_ours!(service_fn(upstream)));
    passes(
        ServiceBuilder::new().layer(BulkheadLayer::new(8)).layer(TraceLayer::new_for_http()).service(boxed),
    )
    .await;
}

/// tower-http answers in the place of a service that takes too long: with an empty body of whatever type stands below.
#[tokio::test(start_paused = true)]
async fn a_timeout_of_tower_http_above_ours_answers_with_an_empty_body() {
    let silent =
        service_fn(|_: Request<CallBody>| std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>());
    let stack = all_of_ours!(silent);
    let service = timeout_408(Duration::from_secs(1)).layer(stack);
    let response = service.oneshot(chat()).await.unwrap();
    assert_eq!(response.status(), 408);
    assert!(response.body().is_end_stream());
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn an_error_of_another_crate_passes_both_with_its_type() {
    let typed = service_fn(|_: Request<CallBody>| async { Err::<Response<Full<Bytes>>, _>(std::fmt::Error) });
    let service = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .layer(TraceLayer::new_for_http())
        .layer(BulkheadLayer::new(8))
        .layer(DecompressionLayer::new())
        .map_err(Fault::Inner)
        .service(typed);
    let error = service.oneshot(Request::new(CallBody::empty())).await.map(|_| ()).unwrap_err();
    assert_eq!(error.into_inner(), Some(std::fmt::Error));
}

#[tokio::test]
async fn a_stack_that_takes_any_body_is_readied_once_its_request_is_named() {
    let mut service = calls::<Request<CallBody>>().layer(all_of_ours!(service_fn(upstream)));
    let ready = service.ready().await.unwrap();
    assert_eq!(ready.call(chat()).await.unwrap().status(), 200);
}
