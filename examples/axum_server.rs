//! An axum server that serves two calls at once and answers 503 to the rest, at once.
//!
//! A real server on a port of this machine, and a client in the same process. It ends by itself.
//!
//! ```sh
//! cargo run --example axum_server
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::BoxError;
use seawall::bulkhead::BulkheadLayer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_millis(200)).await;
    "Hello!"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // Two at once, nobody waits; a refusal is a response, so that the router takes the layer as it is.
    let bulkhead = BulkheadLayer::new(2).refuse().respond();
    let handle = bulkhead.gate().clone();
    let app = Router::new().route("/", get(slow)).layer(bulkhead);

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let mut calls = JoinSet::new();
    for _ in 0..6 {
        let request = Request::get(format!("http://{address}/")).body(Empty::new())?;
        let call = client.request(request);
        calls.spawn(async move {
            let response = call.await?;
            let status = response.status();
            let text = response.into_body().collect().await?.to_bytes();
            Ok::<_, BoxError>((status, text))
        });
    }
    let (mut good, mut refused) = (0, 0);
    while let Some(done) = calls.join_next().await {
        let (status, text) = done??;
        match status {
            StatusCode::OK => good += 1,
            _ => refused += 1,
        }
        println!("{status}: {}", String::from_utf8_lossy(&text));
    }
    println!("{good} served, {refused} refused, {} in flight now", handle.in_flight());
    server.abort();
    Ok(())
}
