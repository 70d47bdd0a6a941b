//! What a fallback costs a call that its first target serves, beside tower's `ConcurrencyLimit` in the same run.
//!
//! `cargo bench --bench fallback`. Compare ratios, not nanoseconds of two runs.
#![allow(missing_docs, reason = "a bench has no users")]

mod support;

use std::future::{Ready, ready};
use std::hint::black_box;
use std::task::{Context, Poll};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use http_body_util::Full;
use seawall::call::{Aim, Call, CallBody, Credential, Describe, Destination, IntakeLayer, Misfit, Upstream};
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::{BoxError, Verdict, classify};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service};

use support::bodies::post;
use support::{call, drain};

/// A small request of an own type that says nothing of itself: the cost of the layer alone.
#[derive(Clone, Copy)]
#[expect(dead_code, reason = "a request carries something")]
struct Bare(u64);

impl Describe for Bare {}

impl Aim for Bare {
    fn aim(&self, _at: &Destination<'_>) -> Result<Self, Misfit> {
        Ok(*self)
    }
}

/// One that is described, with a model by which its route is found.
#[derive(Clone, Default)]
struct Chat {
    call: Call,
}

impl Describe for Chat {
    fn call(&self) -> Option<&Call> {
        Some(&self.call)
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        Some(&mut self.call)
    }
}

impl Aim for Chat {
    fn aim(&self, _at: &Destination<'_>) -> Result<Self, Misfit> {
        Ok(self.clone())
    }
}

#[derive(Clone, Copy)]
struct Echo;

impl<Req> Service<Req> for Echo {
    type Response = u64;
    type Error = BoxError;
    type Future = Ready<Result<u64, BoxError>>;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        black_box(request);
        ready(Ok(black_box(7)))
    }
}

/// Over HTTP, with a JSON answer.
#[derive(Clone, Copy)]
struct Http;

impl Service<Request<CallBody>> for Http {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Self::Future {
        black_box(request);
        ready(Ok(Response::new(Full::new(Bytes::from_static(b"{}")))))
    }
}

fn routes() -> Routes {
    let route =
        |model| Route::to(model).target(Target::at("a").model("m")).target(Target::at("b").model("n"));
    let routes = Routes::builder().named("a").and_then(|routes| routes.named("b"));
    let routes = routes.map(|routes| routes.route(route("*")).route(route("large")).route(route("small")));
    routes.and_then(seawall::fallback::RoutesBuilder::build).expect("the routes fit together")
}

fn layer() -> FallbackLayer<impl seawall::Classify<u64, BoxError> + Clone> {
    let builder = FallbackLayer::builder(routes()).classify(classify::responses(|_: &u64| Verdict::SUCCESS));
    builder.build().expect("all settings are the usual ones")
}

fn own(c: &mut Criterion) {
    let mut group = c.benchmark_group("fallback_own");
    let mut bare = Echo;
    group.bench_function("bare", |b| b.iter(|| black_box(call(&mut bare, black_box(Bare(7))).is_ok())));
    let mut limit = ConcurrencyLimit::new(Echo, 64);
    group.bench_function("tower_concurrency_limit", |b| {
        b.iter(|| black_box(call(&mut limit, black_box(Bare(7))).is_ok()));
    });
    let mut service = layer().at_head().layer(Echo);
    group.bench_function("first_target", |b| {
        b.iter(|| black_box(call(&mut service, black_box(Bare(7))).is_ok()));
    });
    let mut chat = Chat::default();
    chat.call.model = Some("large".into());
    group.bench_function("described_bare", |b| b.iter(|| black_box(call(&mut bare, chat.clone()).is_ok())));
    group.bench_function("described_first_target", |b| {
        b.iter(|| black_box(call(&mut service, chat.clone()).is_ok()));
    });
    group.finish();
}

fn over_http(c: &mut Criterion) {
    let upstream = |name: &str| {
        let upstream = Upstream::new(name, "https://api.example.com/v1").expect("it is a URL");
        upstream.credential(Credential::bearer("secret").expect("a header can hold it"))
    };
    let route = Route::to("large").target(Target::at("a").model("m")).target(Target::at("b").model("n"));
    let routes = Routes::builder().upstream(upstream("a")).upstream(upstream("b")).route(route).build();
    let fallback = FallbackLayer::new(routes.expect("the routes fit together"));
    let words = "word ".repeat(800);
    let body =
        Bytes::from(format!(r#"{{"messages":[{{"role":"user","content":"{words}"}}],"model":"large"}}"#));
    let retry = || RetryLayer::new(RetryPolicy::llm());
    one(c, "intake", &body, IntakeLayer::new().layer(Http));
    one(c, "intake_and_aim", &body, IntakeLayer::new().layer(fallback.layer(Http)));
    let stack = retry().layer(fallback.layer(retry().layer(Http)));
    one(c, "intake_and_aim_between_retries", &body, IntakeLayer::new().layer(stack));
}

fn one<S, B>(c: &mut Criterion, name: &str, body: &Bytes, mut service: S)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>>,
    B: http_body::Body,
{
    let counted = allocation_counter::measure(|| drop(black_box(post(body)))).count_total;
    let mut served = || {
        if let Ok(response) = call(&mut service, post(body)) {
            drain(response.into_body());
        }
    };
    // What is shared by all calls is made by the first.
    served();
    let info = allocation_counter::measure(served);
    eprintln!("{name}: {} allocations", info.count_total - counted);
    c.bench_function(&format!("fallback_http/{name}"), |b| {
        b.iter_batched(
            || post(body),
            |request| black_box(call(&mut service, request).is_ok()),
            criterion::BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, own, over_http);
criterion_main!(benches);
