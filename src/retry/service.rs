//! The service that repeats calls.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tower_service::Service;

use super::future::ResponseFuture;
use super::judge::{PolicyFor, Rules};
use super::layer::Shared;

/// A service whose failed calls are repeated: see the [module](crate::retry).
///
/// The first attempt goes to the inner service that was polled ready; each later one to a clone of its own, which is polled
/// ready first. Its errors of readiness are the inner service's own.
pub struct Retry<P, S> {
    inner: S,
    shared: Arc<Shared<P, S>>,
}

impl<P, S: Clone> Retry<P, S> {
    pub(super) fn new(inner: S, rules: Arc<Rules<P>>) -> Self {
        let template = Mutex::new(inner.clone());
        Self { inner, shared: Arc::new(Shared { rules, template }) }
    }
}

impl<P, S> Retry<P, S> {
    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service. What it was ready for is still reserved in it.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.shared.rules.policy
    }
}

impl<P, S, Req> Service<Req> for Retry<P, S>
where
    S: Clone,
    P: PolicyFor<S, Req>,
{
    type Response = P::Response;
    type Error = P::Error;
    type Future = ResponseFuture<P, S, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), P::Error>> {
        P::poll_ready(&mut self.inner, cx)
    }

    #[inline]
    fn call(&mut self, mut request: Req) -> Self::Future {
        let run = P::begin(&self.shared.rules, &mut request);
        ResponseFuture::new(P::call(&mut self.inner, request), self.shared.clone(), run)
    }
}

impl<P, S: Clone> Clone for Retry<P, S> {
    fn clone(&self) -> Self {
        // A clone of a ready service is not ready.
        Self { inner: self.inner.clone(), shared: self.shared.clone() }
    }
}

impl<P, S: fmt::Debug> fmt::Debug for Retry<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("inner", &self.inner).finish_non_exhaustive()
    }
}
