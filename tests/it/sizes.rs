//! How large futures and services are: they live in a task for each call, and are moved from layer to layer. The figures are
//! those of 64-bit processors; what is larger than it was must be meant.
#![cfg(target_pointer_width = "64")]

use std::future::{Ready, ready};
use std::num::NonZeroU64;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{Aim, Answer, Call, CallBody, Describe, Destination, IntakeLayer, Misfit, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Verdict, classify};
use tower::{Layer, Service, ServiceBuilder};

/// A client whose future is an answer, and nothing else.
#[derive(Clone)]
struct Client;

impl Service<Request<CallBody>> for Client {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Full<Bytes>>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<CallBody>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

/// The request of an own protocol, which describes itself.
#[derive(Clone, Copy)]
struct Prompt(&'static Call);

impl Describe for Prompt {
    fn call(&self) -> Option<&Call> {
        Some(self.0)
    }
}

impl Aim for Prompt {
    fn aim(&self, _: &Destination<'_>) -> Result<Self, Misfit> {
        Ok(*self)
    }
}

struct Reply;

impl Answer for Reply {}

/// The same for [`Prompt`].
#[derive(Clone)]
struct Model;

impl Service<Prompt> for Model {
    type Response = Reply;
    type Error = BoxError;
    type Future = Ready<Result<Reply, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Prompt) -> Self::Future {
        ready(Ok(Reply))
    }
}

/// Fallback, retry, breaker, guard, bucket, bulkhead: in the order that the crate recommends.
fn all_six() -> impl Service<Prompt> {
    let judge = || classify::from_fn(|_: Result<&Reply, &BoxError>| Verdict::SUCCESS);
    let answers = classify::responses(|_: &Reply| Verdict::SUCCESS);
    let route = Route::to("*").target(Target::at("a"));
    let routes = Routes::builder().named("a").unwrap().route(route).build().unwrap();
    let guard = CostGuardLayer::builder()
        .prices(PriceTable::new().model("m", Price::per_million("1", "2").unwrap()))
        .budget(Budget::new(Usd::dollars(1), Window::TOTAL));
    let quota = Quota::per_second(NonZeroU64::MIN);
    ServiceBuilder::new()
        .layer(FallbackLayer::builder(routes).classify(answers).build().unwrap().at_head())
        .layer(RetryLayer::new(RetryPolicy::builder().classify(judge()).build().unwrap()))
        .layer(CircuitBreakerLayer::builder().classify(judge()).build().unwrap().at_head())
        .layer(guard.build().unwrap().at_head())
        .layer(TokenBucketLayer::builder().requests(quota).classify(judge()).build().unwrap().at_head())
        .layer(BulkheadLayer::new(1).at_head())
        .service(Model)
}

/// The bytes of a service, of its future and of its response.
fn sizes<S: Service<R>, R>() -> [usize; 3] {
    [size_of::<S>(), size_of::<S::Future>(), size_of::<S::Response>()]
}

/// The same for a type that has no name.
fn sizes_of<S: Service<R>, R>(_: &S) -> [usize; 3] {
    sizes::<S, R>()
}

/// Smaller is welcome: then store that.
#[track_caller]
fn at_most(sizes: [usize; 3], stored: [usize; 3]) {
    let fits = sizes.iter().zip(&stored).all(|(size, stored)| size <= stored);
    assert!(fits, "service, future and response have {sizes:?} bytes; {stored:?} are stored");
}

/// The future is to have 2 KB at most, a client's own included that is no larger than its response.
#[cfg(feature = "serde")]
#[test]
fn the_recommended_stack_is_no_larger_than_it_was() {
    at_most(sizes::<seawall::config::Stacked<Client>, Request<Full<Bytes>>>(), [384, 2_032, 1_080]);
}

#[tokio::test]
async fn six_layers_over_an_own_type_are_no_larger_than_they_were() {
    at_most(sizes_of(&all_six()), [128, 696, 0]);
}

/// Beside what the client has: 0 bytes, a future of 144, a response of 144.
#[test]
fn each_layer_is_no_larger_than_it_was() {
    fn over_client<L>() -> [usize; 3]
    where
        L: Layer<Client>,
        L::Service: Service<Request<CallBody>>,
    {
        sizes::<L::Service, Request<CallBody>>()
    }
    assert_eq!(sizes::<Client, Request<CallBody>>(), [0, 144, 144]);
    at_most(over_client::<OutcomeLayer>(), [8, 224, 192]);
    at_most(over_client::<TimeoutLayer>(), [40, 336, 272]);
    at_most(over_client::<BulkheadLayer>(), [32, 336, 192]);
    at_most(over_client::<TokenBucketLayer>(), [32, 552, 248]);
    at_most(over_client::<CostGuardLayer>(), [24, 424, 280]);
    at_most(over_client::<CircuitBreakerLayer>(), [16, 432, 240]);
    at_most(over_client::<RetryLayer<RetryPolicy>>(), [8, 528, 144]);
    at_most(over_client::<FallbackLayer>(), [16, 896, 184]);
    at_most(sizes::<<IntakeLayer as Layer<Client>>::Service, Request<Full<Bytes>>>(), [24, 144, 144]);
}
