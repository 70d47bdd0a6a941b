//! The service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};
use tower_service::Service;

use super::future::TimeoutFuture;
use super::layer::TimeoutLayer;
use super::mode::Ends;
use crate::call::{Described, Read};
use crate::deadline::Deadline;
use crate::gate::BodyEnd;
use crate::refusal::Phase;
use crate::time::{self, Instant};

/// A service whose calls are limited in time; see [the module](crate::timeout).
pub struct Timeout<S, R = Described, M = BodyEnd> {
    inner: S,
    layer: TimeoutLayer<R, M>,
    /// The wait for the inner service to be ready, which counts into the total.
    wait: Option<Wait>,
}

struct Wait {
    started: Instant,
    // Boxed: only a call that has to wait for readiness pays for it.
    timer: Option<Pin<Box<Sleep>>>,
    expired: bool,
}

impl<S, R, M> Timeout<S, R, M> {
    pub(super) fn new(inner: S, layer: TimeoutLayer<R, M>) -> Self {
        Self { inner, layer, wait: None }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl Wait {
    fn new(limit: Option<std::time::Duration>) -> Self {
        let started = time::now();
        let at = limit.and_then(|limit| time::checked_add(started, limit));
        Self { started, timer: at.map(|at| Box::pin(sleep_until(at))), expired: false }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.expired = self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
        self.expired
    }
}

impl<S: Clone, R: Clone, M: Clone> Clone for Timeout<S, R, M> {
    fn clone(&self) -> Self {
        // A clone has not waited.
        Self { inner: self.inner.clone(), layer: self.layer.clone(), wait: None }
    }
}

impl<S, R, M, Req> Service<Req> for Timeout<S, R, M>
where
    R: Read<Req>,
    M: Ends<S, Req> + Copy,
{
    type Response = M::Response;
    type Error = M::Error;
    type Future = TimeoutFuture<S, M, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let polled = self.layer.mode.poll_ready(&mut self.inner, cx);
        if polled.is_ready() {
            return polled;
        }
        let limit = self.layer.settings.total.map(|limit| limit.longest());
        let wait = self.wait.get_or_insert_with(|| Wait::new(limit));
        // Too late is said in `call`: an error here would end the service.
        if wait.poll(cx) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let TimeoutLayer { settings, reader, mode } = &self.layer;
        let now = time::now();
        let (started, expired) = self.wait.take().map_or((now, false), |wait| (wait.started, wait.expired));
        let note = mode.note(&request);
        if expired {
            return TimeoutFuture::refused(note, settings.refusal(Phase::Total));
        }
        let own = reader.deadline(&request).and_then(Deadline::instant);
        let told = settings.heed.as_ref().and_then(|header| reader.time_left(&request, header));
        let told = told.and_then(|left| time::checked_add(now, left));
        let deadline = own.into_iter().chain(told).min();
        let clocks = settings.clocks(started, now, reader.call(&request), deadline);
        if let Some(total) = clocks.total {
            if own != Some(total) {
                reader.set_deadline(&mut request, Deadline::at(total));
            }
            if total <= now {
                return TimeoutFuture::refused(note, settings.refusal(Phase::Total));
            }
            if let Some(header) = &settings.propagate {
                reader.tell_time_left(&mut request, header, total - now);
            }
        }
        let future = mode.call(&mut self.inner, request);
        TimeoutFuture::running(note, future, clocks, settings.clone())
    }
}

impl<S: fmt::Debug, R, M> fmt::Debug for Timeout<S, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("inner", &self.inner)
            .field("settings", &self.layer.settings)
            .finish_non_exhaustive()
    }
}
