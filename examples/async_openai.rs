//! The crate `async-openai` over the whole stack: chat, streaming, retry, fallback, and a budget that holds.
//!
//! Two simulated providers on ports of this machine; no key, no network. It ends by itself after about two seconds.
//!
//! ```sh
//! cargo run --example async_openai
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::num::NonZeroU64;
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::types::chat::{
    ChatCompletionRequestUserMessage, ChatCompletionStreamOptions, CreateChatCompletionRequest,
    CreateChatCompletionRequestArgs,
};
use http::{Request, Response};
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, Credential, IntakeLayer, OutcomeLayer, Upstream};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::fallback::{Attempts, FallbackLayer, Route, Routes, Target};
use seawall::gate::ByUpstream;
use seawall::monitor::Event;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Failure};
use support::{Fault, Provider};
use tokio_stream::StreamExt;
use tower::{ServiceBuilder, ServiceExt, service_fn};

fn prompt(text: &str) -> Result<CreateChatCompletionRequest, OpenAIError> {
    let message = ChatCompletionRequestUserMessage::from(text);
    CreateChatCompletionRequestArgs::default()
        .model("chat")
        .max_completion_tokens(20_u32)
        .messages([message.into()])
        .build()
}

/// Prints what the layers did.
fn narrate(event: &Event<'_>) {
    match event {
        Event::Retrying { after, .. } => println!("  it failed; again in {} ms", after.as_millis()),
        Event::FellOver { from, to, .. } => println!("  {from} failed; {to} is asked"),
        Event::Spent { upstream, amount, .. } if !amount.is_zero() => {
            println!("  {} cost {amount}", upstream.map_or("it", |name| name.as_str()));
        }
        _ => {}
    }
}

/// Prints an error, and which layer refused if one did.
fn tell(error: OpenAIError) {
    match error {
        OpenAIError::Boxed(error) => match error.refusal() {
            Some(refusal) => {
                println!("  => refused by {}: {refusal}", refusal.name());
                if let Some(attempts) = Attempts::find(&*error) {
                    println!("     {attempts}");
                }
            }
            None => println!("  => {error}"),
        },
        error => println!("  => {error}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let first = Provider::builder("first").key("key-1").start().await?;
    let second = Provider::builder("second").key("key-2").start().await?;
    let routes = Routes::builder()
        .upstream(Upstream::new("first", &first.url())?.credential(Credential::bearer("key-1")?))
        .upstream(Upstream::new("second", &second.url())?.credential(Credential::bearer("key-2")?))
        .route(
            Route::to("chat")
                .target(Target::at("first").model("big-1"))
                .target(Target::at("second").model("large-2")),
        )
        .build()?;
    let prices = PriceTable::new()
        .model("big-1", Price::per_million("2.50", "10")?)
        .model("large-2", Price::per_million("3", "15")?);
    let guard = CostGuardLayer::builder()
        .prices(prices)
        .budget(Budget::new(Usd::cents(1), Window::DAY))
        .observer(narrate)
        .build()?;
    let ledger = guard.gate().ledger().clone();
    let breaker = CircuitBreakerLayer::builder().keyed(ByUpstream).build()?;
    let fallback = FallbackLayer::builder(routes).health(breaker.gate().clone()).observer(narrate).build()?;
    let a_hundred = NonZeroU64::new(100).expect("a hundred is not zero");
    let attempt =
        TimeoutLayer::builder().head(Duration::from_secs(5)).idle(Duration::from_secs(5)).build()?;

    // reqwest below the stack, the one that async-openai uses itself.
    let http_client = reqwest::Client::new();
    let below = move |request: Request<CallBody>| {
        let client = http_client.clone();
        async move {
            let response = client.execute(request.map(reqwest::Body::wrap).try_into()?).await?;
            Ok::<_, BoxError>(Response::from(response))
        }
    };
    let stack = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .layer(TimeoutLayer::new(Duration::from_secs(30)))
        .layer(fallback)
        .layer(RetryLayer::new(RetryPolicy::llm()).observer(narrate))
        .layer(breaker)
        .layer(guard)
        .layer(TokenBucketLayer::new(Quota::per_second(a_hundred)))
        .layer(BulkheadLayer::new(8))
        .layer(attempt)
        .layer(OutcomeLayer::new())
        .service_fn(below);
    // async-openai hands out a factory of requests, which is asynchronous and can fail: one small service outside.
    let service = service_fn(move |factory: HttpRequestFactory| {
        let stack = stack.clone();
        async move {
            let request: Request<reqwest::Body> = factory.build().await?.try_into()?;
            let response = stack.oneshot(request).await?;
            Ok::<_, BoxError>(reqwest::Response::from(response.map(reqwest::Body::wrap)))
        }
    });
    let client = Client::with_config(OpenAIConfig::new().with_api_key("unused")).with_http_service(service);

    println!("a chat");
    let answer = client.chat().create(prompt("Good morning.")?).await?;
    println!(
        "  => {} from {}",
        answer.choices[0].message.content.as_deref().unwrap_or("nothing"),
        answer.model
    );

    println!("a stream");
    let mut request = prompt("Good morning.")?;
    // Without it a provider reports no usage of a stream, and the bound is charged.
    request.stream_options =
        Some(ChatCompletionStreamOptions { include_usage: Some(true), include_obfuscation: None });
    let mut stream = client.chat().create_stream(request).await?;
    print!("  => ");
    while let Some(chunk) = stream.next().await {
        for choice in &chunk?.choices {
            print!("{}", choice.delta.content.as_deref().unwrap_or_default());
        }
    }
    println!();

    println!("a chat while the provider fails once: it is repeated");
    first.script([Fault::status(503)]);
    let answer = client.chat().create(prompt("Good morning.")?).await?;
    println!("  => from {}", answer.model);

    println!("a chat while the provider fails for good: the next one is asked");
    first.always(Fault::status(500));
    let answer = client.chat().create(prompt("Good morning.")?).await?;
    println!("  => from {}", answer.model);

    println!("a prompt that is wrong is nobody's failure");
    first.script([Fault::status(400)]);
    if let Err(error) = client.chat().create(prompt("Good morning.")?).await {
        tell(error);
    }

    println!("a prompt that could cost more than is left of the budget");
    if let Err(error) = client.chat().create(prompt(&"A long story. ".repeat(1_000))?).await {
        tell(error);
    }
    let today = ledger.account("budget of the day", "").ok_or("the budget has an account")?;
    println!("{} was spent of {}", today.spent, today.limit.ok_or("the budget has a limit")?);
    Ok(())
}
