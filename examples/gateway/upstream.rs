//! The client that all upstreams are asked by.

use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use seawall::BoxError;
use seawall::call::CallBody;
use tower::util::MapErr;

/// Pooled, over TLS where the URL says so.
pub(crate) type Upstreams = MapErr<Client<HttpsConnector<HttpConnector>, CallBody>, fn(Error) -> BoxError>;

/// A client with a pool of its own.
pub(crate) fn client() -> Result<Upstreams, BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(Duration::from_secs(5)));
    tcp.enforce_http(false);
    let tls = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(90))
        .build(tls);
    Ok(MapErr::new(client, BoxError::from as fn(Error) -> BoxError))
}
