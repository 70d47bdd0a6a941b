//! The service that asks one target after the other.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tower_service::Service;

use super::chain::{Chain, no_target};
use super::future::ResponseFuture;
use super::handle::Cached;
use super::layer::Rules;
use super::mode::Ends;
use crate::call::{Aim, Describe};
use crate::gate::BodyEnd;
use crate::verdict::StatusClassifier;

/// A service that asks one target after the other: see the [module](crate::fallback).
///
/// The first target gets the inner service that was polled ready; each later one a clone of its own, which is polled ready
/// first. Its errors of readiness are the inner service's own.
pub struct Fallback<S, C = StatusClassifier, M = BodyEnd> {
    inner: S,
    shared: Arc<Shared<S, C>>,
    routes: Cached,
    mode: M,
}

/// What all clones share: the rules, and an inner service that is never polled.
pub(super) struct Shared<S, C> {
    pub(super) rules: Arc<Rules<C>>,
    template: Mutex<S>,
}

impl<S: Clone, C> Shared<S, C> {
    /// A clone of the inner service that was never polled.
    #[cold]
    pub(super) fn fresh(&self) -> S {
        self.template.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S: Clone, C, M> Fallback<S, C, M> {
    pub(super) fn new(inner: S, rules: Arc<Rules<C>>, mode: M) -> Self {
        let routes = rules.routes.load();
        let template = Mutex::new(inner.clone());
        Self { inner, shared: Arc::new(Shared { rules, template }), routes, mode }
    }
}

impl<S, C, M> Fallback<S, C, M> {
    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service. What it was ready for is still reserved in it.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, C, M, Req> Service<Req> for Fallback<S, C, M>
where
    S: Clone,
    Req: Aim + Describe,
    M: Ends<S, Req, C> + Copy,
{
    type Response = M::Response;
    type Error = M::Error;
    type Future = ResponseFuture<S, C, M, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        self.mode.poll_ready(&mut self.inner, cx)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let rules = &*self.shared.rules;
        let mode = (self.mode, self.mode.note(&request));
        let routes = self.routes.get(&rules.routes).clone();
        let chain = Chain::new(routes, &request, rules);
        let (chain, aimed) = match chain {
            Some(mut chain) => {
                let aimed = chain.next(&request, rules);
                (Some(chain), aimed)
            }
            None => (None, None),
        };
        match (chain, aimed) {
            (Some(chain), Some(aimed)) => {
                // Nothing of it is kept that no target can get any more.
                let original = if chain.may_go_on() { Some(request) } else { None };
                let future = self.mode.call(&mut self.inner, aimed);
                ResponseFuture::calling(mode, self.shared.clone(), chain, original, future)
            }
            (chain, _) => {
                // What the readied instance had reserved is free for others.
                self.inner = self.shared.fresh();
                let refusal = match chain {
                    Some(mut chain) => {
                        chain.tell_end(rules);
                        chain.refusal(rules)
                    }
                    None => no_target(rules),
                };
                ResponseFuture::refused(mode, self.shared.clone(), refusal)
            }
        }
    }
}

impl<S: Clone, C, M: Clone> Clone for Fallback<S, C, M> {
    fn clone(&self) -> Self {
        // A clone of a ready service is not ready.
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
            routes: self.routes.clone(),
            mode: self.mode.clone(),
        }
    }
}

impl<S: fmt::Debug, C, M> fmt::Debug for Fallback<S, C, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("inner", &self.inner)
            .field("rules", &self.shared.rules)
            .finish_non_exhaustive()
    }
}
