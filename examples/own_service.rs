//! A library's own request and response types behind a fallback, with no HTTP in sight.
//!
//! `cargo run --example own_service`. Offline; ends by itself.
#![allow(clippy::print_stdout, reason = "it shows what happened")]

use std::time::Duration;

use seawall::call::{Aim, Call, Describe, Destination, Estimate, Key, Misfit};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::fallback::{FallbackLayer, Route, Routes, Served, Target};
use seawall::gate::ByUpstream;
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, Class, Failure, Verdict, classify};
use tower::{Service, ServiceBuilder, ServiceExt};

/// What the library's users fill in.
#[derive(Clone, Debug)]
struct ChatRequest {
    model: Key,
    prompt: String,
    /// Which backend of the library serves it; the fallback decides.
    backend: Key,
    call: Call,
}

/// What they get.
#[derive(Debug)]
struct ChatResponse {
    text: String,
    finish: Finish,
    served_by: Option<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Finish {
    Stop,
    Overloaded,
    ContextTooLong,
}

impl ChatRequest {
    fn new(model: &str, prompt: impl Into<String>) -> Self {
        let (model, prompt) = (Key::from(model), prompt.into());
        let mut call = Call::default();
        call.model = Some(model.clone());
        let length = prompt.len() as u64;
        call.estimate = Some(Estimate::new(seawall::call::tokens::estimate(&prompt), length));
        Self { model, prompt, backend: Key::from(""), call }
    }
}

// What the layers may know of a request: deadline, model, size.
impl Describe for ChatRequest {
    fn call(&self) -> Option<&Call> {
        Some(&self.call)
    }

    fn call_mut(&mut self) -> Option<&mut Call> {
        Some(&mut self.call)
    }
}

// How it is sent elsewhere.
impl Aim for ChatRequest {
    fn aim(&self, at: &Destination<'_>) -> Result<Self, Misfit> {
        let mut aimed = self.clone();
        aimed.backend = at.upstream.name().clone();
        aimed.call.upstream = Some(at.upstream.name().clone());
        if let Some(model) = at.model {
            aimed.model = model.clone();
        }
        Ok(aimed)
    }
}

/// What an answer means.
fn judge(result: Result<&ChatResponse, &BoxError>) -> Verdict {
    match result {
        Ok(answer) => match answer.finish {
            Finish::Stop => Verdict::SUCCESS,
            Finish::Overloaded => Verdict::new(Class::Transient),
            Finish::ContextTooLong => Verdict::new(Class::Unfit).with_reason(seawall::Reason::Context),
        },
        Err(error) => error.refusal().map_or(Verdict::new(Class::Transient), |refusal| refusal.verdict()),
    }
}

/// The library's backends: one is overloaded, one hangs, one is well.
async fn backend(request: ChatRequest) -> Result<ChatResponse, BoxError> {
    println!("  {} is asked for {} ({} characters)", request.backend, request.model, request.prompt.len());
    let answer = |text: &str, finish| ChatResponse { text: text.to_owned(), finish, served_by: None };
    match request.backend.as_str() {
        "fast" => Ok(answer("", Finish::Overloaded)),
        "hanging" => {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            Ok(answer("too late", Finish::Stop))
        }
        "small" => Ok(answer("", Finish::ContextTooLong)),
        _ => Ok(answer("Good morning!", Finish::Stop)),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let routes = Routes::builder()
        .named("fast")?
        .named("hanging")?
        .named("small")?
        .named("careful")?
        .route(
            Route::to("chat")
                .target(Target::at("fast").model("fast-1"))
                .target(Target::at("hanging").model("slow-2"))
                .target(Target::at("small").model("small-1").context(100))
                .target(Target::at("careful").model("careful-3").context(100_000)),
        )
        .build()?;
    let breaker =
        CircuitBreakerLayer::builder().classify(classify::from_fn(judge)).keyed(ByUpstream).build()?;
    let fallback = FallbackLayer::builder(routes)
        .classify(classify::from_fn(judge))
        .health(breaker.gate().clone())
        .build()?
        .at_head_telling(|answer: &mut ChatResponse, served: &Served| {
            answer.served_by = Some(served.target().upstream().name().clone());
        });
    let attempt = TimeoutLayer::builder().head(Duration::from_millis(20)).build()?;
    let mut service = ServiceBuilder::new()
        .layer(fallback)
        .layer(breaker.at_head())
        .layer(attempt.at_head())
        .service_fn(backend);

    for prompt in ["Say good morning.".to_owned(), "A long story. ".repeat(100)] {
        println!("a call of {} characters", prompt.len());
        let answer = service.ready().await?.call(ChatRequest::new("chat", prompt)).await?;
        println!("  => {:?} from {:?}", answer.text, answer.served_by);
    }
    println!("a call for a model that has no route");
    let refused = service.ready().await?.call(ChatRequest::new("unknown", "Hello?")).await;
    println!("  => {}", refused.map_or_else(|error| error.to_string(), |answer| answer.text));
    Ok(())
}
