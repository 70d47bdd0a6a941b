//! A circuit breaker and a bulkhead over an upstream that has a bad moment.
//!
//! Everything is in this process: no network, no key. It ends by itself after about two seconds.
//!
//! ```sh
//! cargo run --release --example quickstart
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use seawall::bulkhead::BulkheadLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::monitor::Event;
use seawall::{BoxError, refusal};
use tokio::task::JoinSet;
use tower::{Service, ServiceBuilder, ServiceExt};

/// Stands for a provider: takes 20 ms, and answers 503 while it is down.
#[derive(Clone, Default)]
struct Upstream {
    down: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    busy: Arc<AtomicUsize>,
    busiest: Arc<AtomicUsize>,
}

impl Upstream {
    async fn answer(self) -> Result<Response<Full<Bytes>>, BoxError> {
        self.asked.fetch_add(1, SeqCst);
        self.busiest.fetch_max(self.busy.fetch_add(1, SeqCst) + 1, SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.busy.fetch_sub(1, SeqCst);
        let (status, text) = if self.down.load(SeqCst) {
            (StatusCode::SERVICE_UNAVAILABLE, "overloaded")
        } else {
            (StatusCode::OK, "Hello!")
        };
        Ok(Response::builder().status(status).body(Full::new(Bytes::from_static(text.as_bytes())))?)
    }
}

/// What became of a number of calls made at once.
#[derive(Default)]
struct Tally {
    served: usize,
    failed: usize,
    refused: usize,
    reason: Option<String>,
}

async fn burst<S, B>(service: &S, calls: usize) -> Tally
where
    S: Service<Request<()>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for _ in 0..calls {
        let service = service.clone();
        tasks.spawn(async move {
            let response = service.oneshot(Request::new(())).await?;
            let status = response.status();
            // The slot of the bulkhead is free when the body has ended, not before.
            let _ = response.into_body().collect().await;
            Ok::<_, BoxError>(status)
        });
    }
    let mut tally = Tally::default();
    while let Some(Ok(result)) = tasks.join_next().await {
        match result {
            Ok(status) if status.is_success() => tally.served += 1,
            Ok(_) => tally.failed += 1,
            Err(error) => {
                tally.refused += 1;
                tally.reason = refusal::find(&*error).map(|refusal| refusal.to_string());
            }
        }
    }
    tally
}

fn report(title: &str, tally: &Tally, upstream: &Upstream) {
    let asked = upstream.asked.swap(0, SeqCst);
    let busiest = upstream.busiest.swap(0, SeqCst);
    println!(
        "{title}\n  {} served, {} failed, {} refused; the upstream was asked {asked} times, {busiest} at once",
        tally.served, tally.failed, tally.refused
    );
    if let Some(reason) = &tally.reason {
        println!("  a refusal reads: {reason}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let upstream = Upstream::default();
    let inner = upstream.clone();
    let breaker = CircuitBreakerLayer::builder()
        .open_for(Duration::from_millis(500))
        .jitter(0.0)
        .observer(|event: &Event<'_>| {
            if let Event::BreakerMoved { from, to, cause, .. } = event {
                println!("  breaker: {from:?} -> {to:?} ({cause:?})");
            }
        })
        .build()?;
    let service = ServiceBuilder::new()
        .layer(breaker)
        .layer(BulkheadLayer::new(8))
        .service_fn(move |_: Request<()>| inner.clone().answer());

    let tally = burst(&service, 12).await;
    report("All is well: 12 calls at once, 8 slots and a queue", &tally, &upstream);

    let tally = burst(&service, 40).await;
    report("Too many: 40 calls at once, and no room to wait for all", &tally, &upstream);

    upstream.down.store(true, SeqCst);
    let tally = burst(&service, 8).await;
    report("The upstream is down: 8 calls find out", &tally, &upstream);
    let tally = burst(&service, 100).await;
    report("It is still down: 100 calls more", &tally, &upstream);

    upstream.down.store(false, SeqCst);
    tokio::time::sleep(Duration::from_millis(550)).await;
    let tally = burst(&service, 3).await;
    report("It is back: three calls are the probes", &tally, &upstream);
    let tally = burst(&service, 12).await;
    report("And all is well again", &tally, &upstream);
    Ok(())
}
