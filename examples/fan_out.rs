//! One prompt to three models at once, each with its own limits, and each answer as it comes.
//!
//! Three simulated providers on ports of this machine: one is quick, one is slow, one is down. No key, no network; it ends by
//! itself after about two seconds.
//!
//! ```sh
//! cargo run --example fan_out
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use serde_json::{Value, json};
use support::{Fault, Pace, Provider};
use tokio::task::JoinSet;
use tower::{ServiceBuilder, ServiceExt};

/// The limits of one model.
#[derive(Clone, Copy)]
struct Limits {
    at_once: u32,
    requests_a_second: u64,
    patience: Duration,
}

fn prompt(provider: &Provider, text: &str) -> Result<Request<Full<Bytes>>, BoxError> {
    let body = json!({ "model": provider.name(), "messages": [{ "role": "user", "content": text }] });
    let request = Request::post(format!("{}/chat/completions", provider.url()));
    Ok(request.header("content-type", "application/json").body(Full::from(body.to_string()))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let quick = Provider::builder("quick").tokens(3).start().await?;
    let slow = Provider::builder("slow").tokens(8).start().await?;
    slow.set_pace(Pace { head: Duration::from_millis(400), ..Pace::default() });
    let down = Provider::builder("down").start().await?;
    down.always(Fault::status(503));

    let hyper = Client::builder(TokioExecutor::new()).build_http::<CallBody>();
    // One stack a model: a breaker, a bucket and a bulkhead of one must not speak for another.
    let stack = |limits: Limits| {
        let requests = NonZeroU64::new(limits.requests_a_second).ok_or("a limit of none")?;
        let bucket = TokenBucketLayer::builder()
            .requests(Quota::per_second(requests).burst(NonZeroU64::MIN))
            .max_wait(limits.patience)
            .build()?;
        let service = ServiceBuilder::new()
            .layer(IntakeLayer::new())
            .layer(TimeoutLayer::new(limits.patience))
            .layer(RetryLayer::new(RetryPolicy::llm()))
            .layer(CircuitBreakerLayer::new())
            .layer(bucket)
            .layer(BulkheadLayer::new(limits.at_once))
            .layer(OutcomeLayer::new())
            .map_err(BoxError::from)
            .service(hyper.clone());
        Ok::<_, BoxError>(service)
    };
    let patience = Duration::from_secs(2);
    let models = [
        (quick, stack(Limits { at_once: 4, requests_a_second: 2, patience })?),
        (slow, stack(Limits { at_once: 8, requests_a_second: 50, patience })?),
        (down, stack(Limits { at_once: 1, requests_a_second: 50, patience })?),
    ];

    for text in ["What is a wave?", "And what is a sea wall?"] {
        println!("to all three: {text}");
        let start = seawall::time::now();
        let mut calls = JoinSet::new();
        for (provider, service) in &models {
            let (name, request) = (provider.name().to_owned(), prompt(provider, text)?);
            let call = service.clone().oneshot(request);
            calls.spawn(async move {
                let answer = async {
                    let response = call.await?;
                    let status = response.status();
                    let text = response.into_body().collect().await?.to_bytes();
                    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
                    let words = answer["choices"][0]["message"]["content"].as_str();
                    Ok::<_, BoxError>(words.map_or_else(|| format!("no answer: {status}"), str::to_owned))
                };
                (name, answer.await)
            });
        }
        while let Some(done) = calls.join_next().await {
            let (name, answer) = done?;
            let answer = answer.unwrap_or_else(|error| format!("no answer: {error}"));
            println!("  {:>4} ms  {name}: {answer}", start.elapsed().as_millis());
        }
    }
    Ok(())
}
