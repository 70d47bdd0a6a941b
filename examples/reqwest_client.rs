//! reqwest behind the layers, and before them: `http::Request` goes in, `reqwest::Response` comes out.
//!
//! A small provider on a port of this machine; no key, no network. It ends by itself after about a second.
//!
//! ```sh
//! cargo run --example reqwest_client
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Redirect};
use axum::routing::{get, post};
use http::{Request, Response, StatusCode};
use reqwest::ResponseBuilderExt;
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::monitor::Event;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use serde_json::json;
use tokio::net::TcpListener;
use tower::{ServiceBuilder, ServiceExt};

/// A provider that is over its limit every third time.
async fn start() -> Result<String, BoxError> {
    let asked = Arc::new(AtomicUsize::new(0));
    let chat = move || async move {
        if asked.fetch_add(1, SeqCst) % 3 == 1 {
            return (StatusCode::TOO_MANY_REQUESTS, [("retry-after-ms", "200")], "slow down").into_response();
        }
        axum::Json(json!({ "choices": [{ "message": { "content": "Hello!" } }] })).into_response()
    };
    let app = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/old", get(|| async { Redirect::permanent("/new") }))
        .route("/new", get(|| async { "It is here now." }));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let url = start().await?;
    let client = reqwest::Client::new();

    // Below the stack: an `http::Request` becomes reqwest's, and its response an `http::Response` that keeps its URL.
    let inner = client.clone();
    let below = move |request: Request<CallBody>| {
        let client = inner.clone();
        async move {
            let request = request.map(reqwest::Body::wrap).try_into()?;
            let response = client.execute(request).await?;
            let url = Response::builder().url(response.url().clone()).body(())?;
            let mut response = Response::from(response);
            response.extensions_mut().extend(url.into_parts().0.extensions);
            Ok::<_, BoxError>(response)
        }
    };
    let service = ServiceBuilder::new()
        // Above the stack: back to reqwest's response, which takes its URL out of the extensions.
        .map_response(|response: Response<_>| reqwest::Response::from(response.map(reqwest::Body::wrap)))
        .layer(IntakeLayer::new())
        .layer(TimeoutLayer::new(Duration::from_secs(10)))
        .layer(RetryLayer::new(RetryPolicy::llm()).observer(|event: &Event<'_>| {
            if let Event::Retrying { after, .. } = event {
                println!("  that failed: the next attempt in {} ms", after.as_millis());
            }
        }))
        .layer(CircuitBreakerLayer::new())
        .layer(BulkheadLayer::new(8))
        .layer(OutcomeLayer::new())
        .service_fn(below);

    println!("three calls to a provider that is over its limit every third time");
    for _ in 0..3 {
        let chat = json!({ "model": "big-1", "messages": [{ "role": "user", "content": "Good morning." }] });
        let request = client.post(format!("{url}/v1/chat/completions")).json(&chat).build()?;
        let request: Request<reqwest::Body> = request.try_into()?;
        let response = service.clone().oneshot(request).await?.error_for_status()?;
        let answer: serde_json::Value = response.json().await?;
        println!("  => {}", answer["choices"][0]["message"]["content"]);
    }

    println!("a redirect, followed by reqwest below the layers");
    let request: Request<reqwest::Body> = client.get(format!("{url}/old")).build()?.try_into()?;
    let response = service.clone().oneshot(request).await?;
    print!("  => {} at {}: ", response.status(), response.url().path());
    println!("{}", response.text().await?);

    println!("nobody listens there");
    let request: Request<reqwest::Body> = client.get("http://127.0.0.1:1/").build()?.try_into()?;
    match service.clone().oneshot(request).await {
        Ok(response) => println!("  => {}", response.status()),
        Err(error) => println!("  => {error}"),
    }
    Ok(())
}
