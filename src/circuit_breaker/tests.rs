//! Scenarios over the real gate service, on a paused clock.

mod cases;
mod ends;
mod layer;
mod peers;

use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Service, ServiceExt};
use tower_layer::Layer;

use super::*;
use crate::gate::{BodyEnd, Gated};
use crate::monitor::Event;
use crate::refusal::{BoxError, Refusal, RefusalKind};

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;
type Answer = Response<Body>;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Three failures in a row open it for exactly 30 s.
fn simple() -> CircuitBreakerBuilder {
    CircuitBreakerLayer::builder().consecutive_failures(3, secs(60)).without_failure_rate().jitter(0.0)
}

/// An upstream that answers with a status after a time, and counts.
#[derive(Clone, Default)]
struct Upstream(Arc<Script>);

#[derive(Default)]
struct Script {
    status: AtomicU16,
    delay: AtomicU64,
    calls: AtomicUsize,
}

/// Stands for no answer at all.
const HANGS: Duration = Duration::MAX;

impl Upstream {
    fn answering(status: u16) -> Self {
        let upstream = Self::default();
        upstream.answer(status);
        upstream
    }

    fn after(self, delay: Duration) -> Self {
        self.delay(delay);
        self
    }

    fn answer(&self, status: u16) {
        self.0.status.store(status, Ordering::SeqCst);
    }

    fn delay(&self, delay: Duration) {
        self.0.delay.store(crate::time::nanos(delay), Ordering::SeqCst);
    }

    fn calls(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }

    fn service(
        &self,
    ) -> impl Service<Request<()>, Response = Answer, Error = BoxError, Future: Send> + Clone + Sync + use<>
    {
        let script = self.0.clone();
        tower::service_fn(move |_: Request<()>| {
            script.calls.fetch_add(1, Ordering::SeqCst);
            let (status, delay) = (script.status.load(Ordering::SeqCst), script.delay.load(Ordering::SeqCst));
            async move {
                match delay {
                    0 => {}
                    u64::MAX => std::future::pending().await,
                    nanos => tokio::time::sleep(Duration::from_nanos(nanos)).await,
                }
                Ok(Response::builder().status(status).body(body("")).unwrap())
            }
        })
    }
}

fn body(text: &'static str) -> Body {
    Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
}

/// Calls once, and reads the answer to its end.
async fn call<S>(service: &S) -> Result<u16, Refusal>
where
    S: Service<
            Request<()>,
            Response = Response<crate::gate::GateBody<Body, BreakerPermit<crate::StatusClassifier>>>,
        > + Clone,
    S::Error: Into<BoxError>,
{
    ask(service, Request::new(())).await
}

async fn ask<S>(service: &S, request: Request<()>) -> Result<u16, Refusal>
where
    S: Service<
            Request<()>,
            Response = Response<crate::gate::GateBody<Body, BreakerPermit<crate::StatusClassifier>>>,
        > + Clone,
    S::Error: Into<BoxError>,
{
    match service.clone().oneshot(request).await {
        Ok(response) => {
            let status = response.status().as_u16();
            let _ = response.into_body().collect().await;
            Ok(status)
        }
        Err(error) => {
            Err(crate::refusal::find(&*error.into()).expect("the upstream does not fail otherwise"))
        }
    }
}

/// A breaker over an upstream.
fn over<G: Clone>(
    layer: &CircuitBreakerLayer<G>,
    upstream: &Upstream,
) -> Gated<tower::util::BoxCloneSyncService<Request<()>, Answer, BoxError>, G, BodyEnd> {
    layer.layer(tower::util::BoxCloneSyncService::new(upstream.service()))
}

/// Opens a `simple()` breaker.
async fn open(layer: &CircuitBreakerLayer, upstream: &Upstream) {
    upstream.answer(503);
    let service = over(layer, upstream);
    for _ in 0..3 {
        assert_eq!(call(&service).await, Ok(503));
    }
    assert_eq!(layer.gate().state(), BreakerState::Open);
}

/// Writes down what an observer hears.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn observer(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let log = self.0.clone();
        move |event| {
            let line = match event {
                Event::BreakerMoved { from, to, cause, .. } => format!("{from:?} {to:?} {cause:?}"),
                Event::Refused { refusal, .. } => format!("refused {:?}", refusal.kind()),
                Event::WouldRefuse { refusal, .. } => format!("would refuse {:?}", refusal.kind()),
                Event::Abandoned { .. } => "abandoned".to_owned(),
                other => format!("{other:?}"),
            };
            log.lock().unwrap().push(line);
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self, line: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|other| *other == line).count()
    }
}

#[test]
fn handles_layers_and_permits_can_be_sent() {
    fn check<T: Send + Sync + 'static>() {}
    check::<CircuitBreakerLayer>();
    check::<CircuitBreaker>();
    check::<BreakerPermit<crate::StatusClassifier>>();
    check::<CircuitBreakerBuilder>();
}
