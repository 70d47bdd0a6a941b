//! The request cannot be sent to another target: `impl Aim for Prompt` is missing.
use seawall::call::Describe;
use seawall::fallback::{FallbackLayer, Route, Routes, Target};
use seawall::{BoxError, Verdict, calls, classify};
use tower::{Layer, service_fn};

#[derive(Clone)]
struct Prompt;

impl Describe for Prompt {}

fn main() {
    let route = Route::to("*").target(Target::at("one"));
    let routes = Routes::builder().named("one").unwrap().route(route).build().unwrap();
    let judge = classify::from_fn(|_: Result<&String, &BoxError>| Verdict::SUCCESS);
    let inner = service_fn(|_: Prompt| async { Ok::<_, BoxError>(String::new()) });
    let fallback = FallbackLayer::builder(routes).classify(judge).build().unwrap().at_head();
    calls::<Prompt>().layer(fallback.layer(inner));
}
