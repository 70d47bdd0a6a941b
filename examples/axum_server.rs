//! An axum server in front of a model: at most four calls at once, and for each verified caller a rate and a budget.
//!
//! A real server on a port of this machine, and its callers in the same process. It ends by itself after about a second.
//!
//! ```sh
//! cargo run --example axum_server
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::num::NonZeroU64;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{Call, CallBody, IntakeLayer, Key, OutcomeLayer};
use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, Price, PriceTable, Usd, Window};
use seawall::gate::ByTenant;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceBuilder;

/// The model itself: thinks for 50 ms, and says what it used.
async fn chat(Json(asked): Json<Value>) -> Json<Value> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    let text = format!("You said: {}", asked["messages"][0]["content"]);
    Json(json!({
        "choices": [{ "message": { "role": "assistant", "content": text } }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 100 },
    }))
}

/// Who calls is what a key proves, never what a header claims. A real server looks keys up in constant time.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let key = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let tenant = match key {
        Some("Bearer key-of-alice") => "alice",
        Some("Bearer key-of-bob") => "bob",
        _ => return (StatusCode::UNAUTHORIZED, "who are you?").into_response(),
    };
    let mut call = Call::default();
    call.tenant = Some(Key::from(tenant));
    request.extensions_mut().insert(call);
    next.run(request).await
}

/// One call; its status, the wait it was told, and the reason in a word.
async fn ask(url: String, key: &str, tokens: u32) -> Result<String, BoxError> {
    let prompt = json!({
        "model": "big-1",
        "max_tokens": tokens,
        "messages": [{ "role": "user", "content": "Good morning." }],
    });
    let response = reqwest::Client::new().post(url).bearer_auth(key).json(&prompt).send().await?;
    let status = response.status();
    let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let text = response.text().await?;
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    let said = body["detail"].as_str().or(body["choices"][0]["message"]["content"].as_str());
    let wait = wait.map_or(String::new(), |seconds| format!(" (come back after {seconds} s)"));
    Ok(format!("{}: {}{wait}", status.as_u16(), said.unwrap_or(&text)))
}

/// Calls made at once, each outcome once with how often it came.
async fn burst(url: &str, key: &'static str, calls: usize, tokens: u32) -> Result<(), BoxError> {
    let mut tasks = JoinSet::new();
    (0..calls).for_each(|_| drop(tasks.spawn(ask(url.to_owned(), key, tokens))));
    let mut said = Vec::new();
    while let Some(done) = tasks.join_next().await {
        said.push(done??);
    }
    said.sort_unstable();
    for same in said.chunk_by(|a, b| a == b) {
        println!("  {} × {}", same.len(), same[0]);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // Every refusal is a response, so that the router takes each layer as it is.
    let bulkhead = BulkheadLayer::new(4).refuse().respond();
    let in_flight = bulkhead.gate().clone();
    let ten = NonZeroU64::new(10).ok_or("ten is not zero")?;
    let bucket = TokenBucketLayer::builder()
        .requests(Quota::per_minute(ten).burst(ten))
        .refuse()
        .keyed(ByTenant)
        .key_class("tenant")
        .build()?;
    let prices = PriceTable::new().model("big-1", Price::per_million("2.50", "10")?);
    let guard = CostGuardLayer::builder()
        .prices(prices)
        .budget(Budget::new(Usd::cents(1), Window::DAY).by(BudgetKey::Tenant).named("day"))
        .patience(Duration::ZERO)
        .build()?;
    let ledger = guard.gate().ledger().clone();

    // Outermost first: no stranger costs a slot for longer than it takes to be turned away, and only a known caller spends.
    let layers = ServiceBuilder::new()
        .layer(bulkhead)
        .layer(middleware::from_fn(authenticate))
        .layer(IntakeLayer::new())
        .layer(bucket.respond())
        .layer(guard.respond())
        .layer(OutcomeLayer::new())
        // The intake has read the body; the handler gets it as axum's own again.
        .map_request(|request: http::Request<CallBody>| request.map(axum::body::Body::new));
    let app = Router::new().route("/v1/chat/completions", post(chat)).layer(layers);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1/chat/completions", listener.local_addr()?);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    println!("a stranger");
    burst(&url, "no-key", 1, 100).await?;
    println!("alice, six calls at once: four fit");
    burst(&url, "key-of-alice", 6, 100).await?;
    println!("alice, who has six of her ten calls a minute left, and then some");
    for _ in 0..4 {
        burst(&url, "key-of-alice", 2, 100).await?;
    }
    println!("bob, whose limits are his own, asks for an answer that may cost more than a cent");
    burst(&url, "key-of-bob", 1, 5_000).await?;
    println!("bob asks for less");
    burst(&url, "key-of-bob", 1, 100).await?;

    println!("the bill of the day");
    let mut accounts = ledger.accounts("day");
    accounts.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    for (tenant, account) in accounts {
        println!("  {tenant}: {} of {}", account.spent, account.limit.unwrap_or(Usd::MAX));
    }
    println!("{} calls in flight now", in_flight.in_flight());
    server.abort();
    Ok(())
}
