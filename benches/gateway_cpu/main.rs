//! What the example gateway costs in CPU a request, beside a bare hyper proxy of the same shape in the same run.
//!
//! ```sh
//! cargo bench --bench gateway_cpu
//! ```
//!
//! Provider, bare proxy and gateway are processes of their own; the CPU is what /proc says of the two in the middle. The
//! gateway has everything on: clients, budget, prices, limits, breakers, bulkheads, retries, alerts. 16 callers; a JSON
//! answer of 1 KB, and a stream of 64 chunks. Rounds alternate, and the best of each counts: what is above it is noise of
//! the machine. Linux only.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench talks to the person who runs it, and may panic"
)]

mod gateway;
mod provider;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The bar: how many times the CPU of the bare proxy the gateway may take.
const BAR: f64 = 3.0;
const CALLERS: usize = 16;
const ROUNDS: usize = 5;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let role = words.next();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let upstream =
        |words: &mut dyn Iterator<Item = String>| -> SocketAddr { words.next().unwrap().parse().unwrap() };
    match role.as_deref() {
        Some("provider") => runtime.block_on(provider::provide()),
        Some("bare") => runtime.block_on(provider::forward(upstream(&mut words))),
        Some("gateway") => runtime.block_on(gateway::serve(upstream(&mut words))),
        _ if !std::path::Path::new("/proc/self/stat").exists() => println!("skipped: there is no /proc here"),
        _ => compare(&runtime),
    }
}

/// A process of this same program in another role.
struct Role {
    child: Child,
    address: SocketAddr,
}

impl Role {
    fn start(role: &str, upstream: Option<SocketAddr>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(role).args(upstream.map(|address| address.to_string()));
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.next().expect("it says where it listens").unwrap().parse().unwrap();
        Self { child, address }
    }

    /// What it has used so far.
    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap();
        Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compare(runtime: &tokio::runtime::Runtime) {
    let provider = Role::start("provider", None);
    let bare = Role::start("bare", Some(provider.address));
    let gateway = Role::start("gateway", Some(provider.address));
    println!("{:<22}{:>12}{:>12}{:>8}", "CPU a request", "bare", "gateway", "ratio");
    let mut worst: f64 = 0.0;
    for (name, stream, calls) in [("1 KB of JSON", false, 4_000), ("a stream of 64 chunks", true, 800)] {
        let [mut least_bare, mut least_gateway] = [f64::MAX; 2];
        for round in 0..=ROUNDS {
            for (role, least) in [(&bare, &mut least_bare), (&gateway, &mut least_gateway)] {
                let before = role.cpu();
                runtime.block_on(load(role.address, stream, calls));
                let micros = role.cpu().saturating_sub(before).as_secs_f64() * 1e6 / f64::from(calls);
                // The first round fills caches and pools.
                if round > 0 {
                    *least = least.min(micros);
                }
            }
        }
        let ratio = least_gateway / least_bare;
        worst = worst.max(ratio);
        println!("{name:<22}{least_bare:>9.1} us{least_gateway:>9.1} us{ratio:>8.2}");
    }
    let word = if worst <= BAR { "kept" } else { "MISSED" };
    println!("the bar of {BAR} is {word}");
}

/// So many calls by all callers together.
async fn load(address: SocketAddr, stream: bool, calls: u32) {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let each = usize::try_from(calls).unwrap() / CALLERS;
    let callers = (0..CALLERS).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            for _ in 0..each {
                call(&client, address, stream).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

async fn call(client: &Client<HttpConnector, Full<Bytes>>, address: SocketAddr, stream: bool) {
    let body = format!(
        r#"{{"model":"chat","stream":{stream},"max_tokens":100,"messages":[{{"role":"system","content":"{}"}},{{"role":"user","content":"Say something."}}]}}"#,
        "You are helpful. ".repeat(50),
    );
    let request = Request::post(format!("http://{address}/v1/chat/completions"))
        .header("content-type", "application/json")
        .header("authorization", "Bearer the-callers-key")
        .header("user-agent", "a client library")
        .header("accept", "application/json")
        .body(Full::from(body))
        .unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() >= 1_000, "{}", body.len());
}
