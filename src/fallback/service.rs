//! The service that asks one target after the other.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tower_service::Service;

use super::chain::{Chain, First, no_target};
use super::future::ResponseFuture;
use super::layer::Rules;
use super::mode::Ends;
use super::routes::Routes;
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
    /// What is shared by whoever has heard of the last replacement of the routes.
    latest: Arc<Mutex<Arc<Shared<S, C>>>>,
    mode: M,
}

/// What all clones share, behind the one count that a call takes: its course, and an inner service that is never polled.
pub(super) struct Shared<S, C> {
    pub(super) course: Course<C>,
    template: Mutex<S>,
}

/// By what a call goes: the rules, and the routes as they were when it began.
pub(super) struct Course<C> {
    pub(super) rules: Arc<Rules<C>>,
    pub(super) routes: Routes,
    version: u64,
    /// By route, where there is one.
    firsts: Box<[Option<First>]>,
}

impl<C> Course<C> {
    fn new(rules: Arc<Rules<C>>) -> Self {
        let (routes, version) = rules.routes.load();
        let first = |route| First::of(route, rules.max_attempts.get()).filter(|_| rules.health.is_empty());
        let firsts = routes.table().routes.iter().map(first).collect();
        Self { rules, routes, version, firsts }
    }

    /// The route of this request.
    #[inline]
    fn route<Req: Describe>(&self, request: &Req) -> Option<usize> {
        self.routes.table().find(request.call().and_then(|call| call.model.as_ref()))
    }

    /// Its first attempt, where nothing has to be weighed.
    #[inline]
    fn first<Req: Describe>(&self, route: usize, request: &Req) -> Option<&First> {
        self.firsts.get(route)?.as_ref().filter(|first| first.is_for(request))
    }

    #[inline]
    fn is_latest(&self) -> bool {
        self.version == self.rules.routes.version()
    }
}

impl<S: Clone, C> Shared<S, C> {
    fn new(template: S, rules: Arc<Rules<C>>) -> Arc<Self> {
        Arc::new(Self { course: Course::new(rules), template: Mutex::new(template) })
    }

    /// A clone of the inner service that was never polled.
    #[cold]
    pub(super) fn fresh(&self) -> S {
        lock(&self.template).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Clone, C, M> Fallback<S, C, M> {
    pub(super) fn new(inner: S, rules: Arc<Rules<C>>, mode: M) -> Self {
        let shared = Shared::new(inner.clone(), rules);
        let latest = Arc::new(Mutex::new(shared.clone()));
        Self { inner, shared, latest, mode }
    }

    /// The routes were replaced.
    #[cold]
    fn renew(&mut self) {
        let template = self.shared.fresh();
        let mut latest = lock(&self.latest);
        let newest = match &*latest {
            newest if newest.course.is_latest() => newest.clone(),
            _ => Shared::new(template, self.shared.course.rules.clone()),
        };
        let old = std::mem::replace(&mut *latest, newest.clone());
        drop(latest);
        // Outside the lock: it may be the last to hold an inner service.
        drop(old);
        self.shared = newest;
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
    fn call(&mut self, mut request: Req) -> Self::Future {
        if !self.shared.course.is_latest() {
            self.renew();
        }
        let course = &self.shared.course;
        let route = course.route(&request);
        if let Some((route, first)) = route.and_then(|route| Some((route, course.first(route, &request)?))) {
            let note = self.mode.note(&request);
            let chain = first.chain(route, request.call());
            // One that misfits is as it was, and is weighed.
            if let Ok(original) = first.aim(&mut request, &course.routes.table().secrets) {
                let future = self.mode.call(&mut self.inner, request);
                return ResponseFuture::calling(
                    (self.mode, note),
                    self.shared.clone(),
                    chain,
                    original,
                    future,
                );
            }
        }
        self.weigh(route, request)
    }
}

impl<S: Clone, C, M> Fallback<S, C, M> {
    /// Calls whichever target is to be the first.
    #[inline(never)]
    fn weigh<Req>(&mut self, route: Option<usize>, mut request: Req) -> ResponseFuture<S, C, M, Req>
    where
        Req: Aim + Describe,
        M: Ends<S, Req, C> + Copy,
    {
        let course = &self.shared.course;
        let mode = (self.mode, self.mode.note(&request));
        let chain = route.and_then(|route| Chain::new(route, &request, course));
        let Some(mut chain) = chain else { return self.refuse(mode, None) };
        let Ok(original) = chain.first(&mut request, course) else { return self.refuse(mode, Some(chain)) };
        let future = self.mode.call(&mut self.inner, request);
        ResponseFuture::calling(mode, self.shared.clone(), chain, original, future)
    }

    #[cold]
    fn refuse<Req>(
        &mut self,
        mode: (M, M::Note),
        chain: Option<Chain<M::Response>>,
    ) -> ResponseFuture<S, C, M, Req>
    where
        M: Ends<S, Req, C>,
    {
        // What the readied instance had reserved is free for others.
        self.inner = self.shared.fresh();
        let course = &self.shared.course;
        let refusal = match chain {
            Some(mut chain) => {
                chain.tell_end(course);
                chain.refusal(course)
            }
            None => no_target(course),
        };
        ResponseFuture::refused(mode, self.shared.clone(), refusal)
    }
}

impl<S: Clone, C, M: Clone> Clone for Fallback<S, C, M> {
    fn clone(&self) -> Self {
        // A clone of a ready service is not ready.
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
            latest: self.latest.clone(),
            mode: self.mode.clone(),
        }
    }
}

impl<S: fmt::Debug, C, M> fmt::Debug for Fallback<S, C, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("inner", &self.inner)
            .field("rules", &self.shared.course.rules)
            .finish_non_exhaustive()
    }
}
