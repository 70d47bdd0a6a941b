//! The listening side: routes, connections, and the way to the end.

use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse};
use axum::routing::{any, get};
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use seawall::monitor::PROMETHEUS_CONTENT_TYPE;
use seawall::{BoxError, Config};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;

use super::proxy::proxy;
use super::state::Gateway;
use super::{errors, stats};

/// Whoever can reach a gateway spends its money.
pub(crate) fn allow(config: &Config, address: SocketAddr) -> Result<(), BoxError> {
    if address.ip().is_loopback() || !config.clients().is_empty() {
        return Ok(());
    }
    let problem =
        "without any [[clients]] whoever reaches it spends your money: listen on 127.0.0.1, or name clients";
    Err(format!("will not listen on {address}: {problem}").into())
}

/// Takes the port; another one where that is taken, if `or_elsewhere`.
pub(crate) async fn listen(address: SocketAddr, or_elsewhere: bool) -> Result<TcpListener, BoxError> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(_) if or_elsewhere => Ok(TcpListener::bind((address.ip(), 0)).await?),
        Err(error) => Err(format!("cannot listen on {address}: {error}").into()),
    }
}

fn app(gateway: &Gateway) -> Router {
    let figures = Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/stats", get(stats::stats))
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn_with_state(gateway.clone(), only_here));
    Router::new()
        .route("/v1/models", get(stats::models))
        .route("/v1/{*rest}", any(proxy))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .merge(figures)
        .fallback(|| async { errors::error(StatusCode::NOT_FOUND, "not_found", "There is nothing here.") })
        .with_state(gateway.clone())
}

async fn metrics(State(gateway): State<Gateway>) -> impl IntoResponse {
    ([(CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE)], gateway.current().stack.monitor().prometheus())
}

async fn ready(State(gateway): State<Gateway>) -> (StatusCode, &'static str) {
    if gateway.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n");
    }
    (StatusCode::OK, "ready\n")
}

/// Figures are for the people of this machine, unless they were opened to all.
async fn only_here(
    State(gateway): State<Gateway>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let here = match peer.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(ip.is_loopback(), |ip| ip.is_loopback()),
        IpAddr::V4(ip) => ip.is_loopback(),
    };
    if here || gateway.options().open {
        return next.run(request).await;
    }
    errors::error(StatusCode::NOT_FOUND, "not_found", "There is nothing here.")
}

/// Serves until `stop`, then lets what is under way end within `drain`. Answers whether all of it did.
pub(crate) async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    drain: Duration,
    stop: impl Future<Output = ()>,
) -> bool {
    let app = app(&gateway);
    let limits = gateway.options().limits;
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(Duration::from_secs(30)));
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    eprintln!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        let service = TowerToHyperService::new(app.clone().layer(axum::Extension(ConnectInfo(peer))));
        let asked = Arc::new(AtomicBool::new(false));
        let has_asked = asked.clone();
        let service = service_fn(move |request| {
            asked.store(true, Ordering::Relaxed);
            service.call(request)
        });
        let stream = TokioIo::new(timed(stream, limits.unread));
        let connection = builder.serve_connection_with_upgrades(stream, service);
        let connection = graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            // The server knows no limit for those who do not even say which HTTP they speak.
            let first = tokio::time::timeout(limits.head, &mut connection).await;
            if first.is_err() && has_asked.load(Ordering::Relaxed) {
                // A caller that leaves is no news.
                let _ = connection.await;
            }
        });
    }
    drop(listener);
    gateway.drain();
    tokio::time::timeout(drain, graceful.shutdown()).await.is_ok()
}

/// A connection whose caller must read what it is sent.
fn timed(stream: TcpStream, unread: Duration) -> Pin<Box<TimeoutStream<TcpStream>>> {
    // Without it the first byte of a stream may wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(unread));
    Box::pin(stream)
}

/// What `/stats` and `/v1/models` say of time.
#[expect(clippy::disallowed_types, reason = "a date to be told, on which nothing is decided")]
pub(crate) fn unix_seconds() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// The list of models in OpenAI's shape.
pub(crate) fn list_of<'m>(models: impl Iterator<Item = &'m str>) -> serde_json::Value {
    let created = unix_seconds();
    let each = |id| json!({ "id": id, "object": "model", "created": created, "owned_by": "gateway" });
    json!({ "object": "list", "data": models.map(each).collect::<Vec<_>>() })
}
