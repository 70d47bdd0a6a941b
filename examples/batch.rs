//! Two hundred prompts through one stack: a bounded number at once, progress, and failures collected with their reasons.
//!
//! A simulated provider on a port of this machine that limits requests and fails now and then; no key, no network. It ends by
//! itself after a few seconds.
//!
//! ```sh
//! cargo run --example batch
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::Request;
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Failure};
use serde_json::{Value, json};
use support::{Fault, Pace, Provider};
use tower::{ServiceBuilder, ServiceExt};

const PROMPTS: usize = 200;
const AT_ONCE: u32 = 16;

/// A prompt of the batch; one in forty is far too long.
fn prompt(url: &str, number: usize) -> Result<Request<CallBody>, BoxError> {
    let text =
        if number % 40 == 7 { "word ".repeat(2_000) } else { format!("Tell me of the number {number}.") };
    let body = json!({
        "model": "big-1",
        "max_tokens": 20,
        "messages": [{ "role": "user", "content": text }],
    });
    let request = Request::post(format!("{url}/chat/completions")).header("content-type", "application/json");
    Ok(request.body(CallBody::from(body.to_string()))?)
}

/// What the provider says of its failure, shortly.
fn reason(status: http::StatusCode, text: &[u8]) -> String {
    let value: Value = serde_json::from_slice(text).unwrap_or_default();
    let error = &value["error"];
    let code = error["code"].as_str().or(error["type"].as_str()).unwrap_or("no code");
    format!("{} {code}", status.as_u16())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let pace = Pace { head: Duration::from_millis(60), ..Pace::default() };
    let provider = Provider::builder("provider").context(1_000).pace(pace).seed(11).start().await?;
    provider.rates([(0.08, Fault::status(503)), (0.02, Fault::Reset)]);
    let url = provider.url();

    let a_hundred = NonZeroU64::new(100).expect("a hundred is not zero");
    let prices = PriceTable::new().model("big-1", Price::per_million("2.50", "10")?);
    let guard = CostGuardLayer::new(prices, Budget::new(Usd::dollars(1), Window::TOTAL).named("batch"));
    let ledger = guard.gate().ledger().clone();
    let attempt =
        TimeoutLayer::builder().head(Duration::from_secs(2)).idle(Duration::from_secs(2)).build()?;
    let service = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .layer(TimeoutLayer::new(Duration::from_secs(30)))
        .layer(RetryLayer::new(RetryPolicy::llm()))
        .layer(CircuitBreakerLayer::new())
        .layer(guard)
        .layer(TokenBucketLayer::new(Quota::per_second(a_hundred)))
        .layer(BulkheadLayer::new(AT_ONCE))
        .layer(attempt)
        .layer(OutcomeLayer::new())
        .map_err(BoxError::from)
        .service(Client::builder(TokioExecutor::new()).build_http::<CallBody>());

    // Twice as many as the bulkhead admits, so that it never runs dry while others wait for a retry.
    let start = seawall::time::now();
    let calls = stream::iter(0..PROMPTS).map(|number| {
        let (service, request) = (service.clone(), prompt(&url, number));
        async move {
            let response = service.oneshot(request?).await?;
            let status = response.status();
            let text = response.into_body().collect().await?.to_bytes();
            Ok::<_, BoxError>(if status.is_success() { Ok(text) } else { Err(reason(status, &text)) })
        }
    });
    let mut calls = calls.buffer_unordered(2 * AT_ONCE as usize);

    let (mut done, mut answers) = (0, Vec::new());
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(result) = calls.next().await {
        match result {
            Ok(Ok(answer)) => answers.push(answer),
            Ok(Err(reason)) => *failures.entry(reason).or_default() += 1,
            Err(error) => {
                // A layer's own word, or what the connection said.
                let reason = error.refusal().map_or_else(|| error.to_string(), |refusal| refusal.to_string());
                *failures.entry(reason).or_default() += 1;
            }
        }
        done += 1;
        if done % 40 == 0 {
            println!("{done} of {PROMPTS} done, {} answered", answers.len());
        }
    }

    let bytes: usize = answers.iter().map(Bytes::len).sum();
    let spent = ledger.account("batch", "").map_or(Usd::ZERO, |account| account.spent);
    println!();
    println!("prompts      {PROMPTS:>8}");
    println!("answered     {:>8}   {bytes} bytes", answers.len());
    println!("failed       {:>8}", PROMPTS - answers.len());
    for (reason, count) in &failures {
        println!("             {count:>8}   {reason}");
    }
    println!("requests     {:>8}   at the provider, retries included", provider.requests());
    println!("spent        {:>8}", spent.to_string());
    println!("time         {:>6.1} s", start.elapsed().as_secs_f32());
    Ok(())
}
