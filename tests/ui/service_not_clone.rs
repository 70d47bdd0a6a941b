//! The service is not `Clone`: a `Buffer` below, or another shared handle, is missing.
use std::task::{Context, Poll};

use seawall::bulkhead::BulkheadLayer;
use seawall::{BoxError, calls};
use tower::{Service, ServiceBuilder};

struct Single;

impl Service<String> for Single {
    type Response = usize;
    type Error = BoxError;
    type Future = std::future::Ready<Result<usize, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, prompt: String) -> Self::Future {
        std::future::ready(Ok(prompt.len()))
    }
}

fn main() {
    ServiceBuilder::new().layer(calls::<String>()).layer(BulkheadLayer::new(8).at_head()).service(Single);
}
