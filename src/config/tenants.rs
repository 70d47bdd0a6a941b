//! Whose a call is.

use std::task::{Context, Poll};

use http::{HeaderName, Request};
use tower_layer::Layer;
use tower_service::Service;

use super::Client;
use crate::call::{CallBody, Describe, Key, Overrides};

/// Writes into each [`Call`](crate::call::Call) whose it is: of the [`Client`] that a gateway has recognised and put among
/// the extensions, or, for budgets by `header:NAME`, of whom that header names.
///
/// A model that the client may not use has no target for it, as if nobody had ever heard of it.
#[derive(Clone, Debug)]
pub(super) struct TenantsLayer(pub(super) Option<HeaderName>);

/// See the layer.
#[derive(Clone, Debug)]
pub struct Tenants<S> {
    header: Option<HeaderName>,
    inner: S,
}

impl<S> Layer<S> for TenantsLayer {
    type Service = Tenants<S>;

    fn layer(&self, inner: S) -> Tenants<S> {
        Tenants { header: self.0.clone(), inner }
    }
}

impl<S: Service<Request<CallBody>>> Service<Request<CallBody>> for Tenants<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<CallBody>) -> S::Future {
        if let Some(client) = request.extensions().get::<Client>().cloned() {
            let model = request.call().and_then(|call| call.model.as_ref()).map(Key::as_str);
            if !client.may_use(model) {
                request.extensions_mut().insert(Overrides::new().only::<Key>([]));
            }
            if let Some(call) = request.call_mut() {
                call.tenant = Some(client.name().clone());
            }
        }
        if let Some(header) = &self.header {
            let tenant = request.headers().get(header).and_then(|value| value.to_str().ok()).map(Key::from);
            if let Some(call) = request.call_mut() {
                call.tenant = tenant;
            }
        }
        self.inner.call(request)
    }
}
