//! The listening side: routes, connections, and the way to the end.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse};
use axum::routing::{any, get};
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use seawall::monitor::PROMETHEUS_CONTENT_TYPE;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;

use super::proxy::proxy;
use super::state::Gateway;
use super::{errors, stats};

/// How long a caller may take to say what it wants.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a caller may leave what was sent to it unread.
const WRITE_TIME: Duration = Duration::from_secs(60);

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
    if here || gateway.is_open() {
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
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(Duration::from_secs(30)));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
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
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(timed(stream)), service);
        let connection = graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            // A caller that leaves is no news.
            let _ = connection.await;
        });
    }
    drop(listener);
    gateway.drain();
    tokio::time::timeout(drain, graceful.shutdown()).await.is_ok()
}

/// A connection whose caller must read what it is sent.
fn timed(stream: TcpStream) -> std::pin::Pin<Box<TimeoutStream<TcpStream>>> {
    // Without it the first byte of a stream may wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME));
    Box::pin(stream)
}

/// What `/stats` and `/v1/models` say of time.
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
