//! hyper's client behind the recommended stack: retry, breaker, fallback to another provider, a stream, a deadline.
//!
//! Two simulated providers on ports of this machine; no key, no network. It ends by itself after about two seconds.
//!
//! ```sh
//! cargo run --example hyper_client
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, Credential, IntakeLayer, Outcome, OutcomeLayer, Upstream};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::fallback::{FallbackLayer, Route, Routes, Served, Target};
use seawall::gate::ByUpstream;
use seawall::monitor::Event;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use support::{Fault, Provider};
use tower::{ServiceBuilder, ServiceExt};

fn prompt(model: &str, stream: bool) -> Result<Request<Full<Bytes>>, BoxError> {
    let body = format!(
        r#"{{"model":"{model}","stream":{stream},"max_tokens":50,"messages":[{{"role":"user","content":"Good morning."}}]}}"#
    );
    // The host is of no matter: the route says which upstream is asked.
    let request = Request::post("http://any/v1/chat/completions").header(CONTENT_TYPE, "application/json");
    Ok(request.body(Full::from(body))?)
}

/// Prints what a call brought.
async fn tell<B>(result: Result<Response<B>, BoxError>) -> Result<(), BoxError>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>>,
{
    let response = match result {
        Ok(response) => response,
        Err(error) => {
            println!("  => {error}");
            return Ok(());
        }
    };
    let status = response.status();
    let served =
        response.extensions().get::<Served>().map(|served| served.target().upstream().name().clone());
    let outcome = Outcome::of(&response).cloned();
    let text = response.into_body().collect().await.map_err(Into::into)?.to_bytes();
    let by = served.as_ref().map_or("nobody", |name| name.as_str());
    println!("  => {status} from {by}: {}", words(&text));
    if let Some(total) = outcome.and_then(|outcome| outcome.usage().total()) {
        println!("     {total} tokens were used");
    }
    Ok(())
}

/// What a whole answer says, or the events of a stream together.
fn words(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let read = |json: &str| {
        let value: serde_json::Value = serde_json::from_str(json).ok()?;
        let choice =
            value.pointer("/choices/0/delta/content").or(value.pointer("/choices/0/message/content"));
        choice?.as_str().map(str::to_owned)
    };
    read(&text).unwrap_or_else(|| events.filter_map(read).collect())
}

/// Prints what the layers did.
fn narrate(event: &Event<'_>) {
    match event {
        Event::Retrying { attempt, after, .. } => {
            println!("  attempt {attempt} failed; the next one in {} ms", after.as_millis());
        }
        Event::FellOver { from, to, .. } => println!("  {from} failed; {to} is asked"),
        Event::BreakerMoved { label, to, .. } => {
            println!("  the breaker of {} is now {to:?}", label.key().map_or("all", |key| key.as_str()));
        }
        _ => {}
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
    let breaker = CircuitBreakerLayer::builder()
        .consecutive_failures(3, Duration::from_secs(60))
        .observer(narrate)
        .keyed(ByUpstream)
        .build()?;
    let fallback = FallbackLayer::builder(routes).health(breaker.gate().clone()).observer(narrate).build()?;
    let attempt =
        TimeoutLayer::builder().head(Duration::from_millis(300)).idle(Duration::from_secs(5)).build()?;

    let hyper = Client::builder(TokioExecutor::new()).build_http::<CallBody>();
    let client = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .layer(TimeoutLayer::new(Duration::from_secs(10)))
        .layer(fallback)
        .layer(RetryLayer::new(RetryPolicy::llm()).observer(narrate))
        .layer(breaker)
        .layer(BulkheadLayer::new(8))
        .layer(attempt)
        .layer(OutcomeLayer::new())
        // hyper's own error, so that the layers can add a refusal to it.
        .map_err(BoxError::from)
        .service(hyper);

    println!("a call while all is well");
    tell(client.clone().oneshot(prompt("chat", false)?).await).await?;

    println!("a call that meets one failure: it is repeated");
    first.script([Fault::status(503)]);
    tell(client.clone().oneshot(prompt("chat", false)?).await).await?;

    println!("a stream");
    tell(client.clone().oneshot(prompt("chat", true)?).await).await?;

    println!("the first provider hangs: each of its attempts has 300 ms for a head");
    first.always(Fault::Hang);
    for _ in 0..4 {
        tell(client.clone().oneshot(prompt("chat", false)?).await).await?;
    }

    println!("a call for a model that no route is for");
    tell(client.clone().oneshot(prompt("unknown", false)?).await).await?;
    Ok(())
}
