//! The one service of all gates.

use std::fmt;
use std::task::{Context, Poll};

use tower_service::Service;

use crate::gate::future::ResponseFuture;
use crate::gate::{Admission, BodyEnd, Gate, Held, Mode};

/// A service behind a gate.
///
/// Its clones share the gate's state; readiness is each clone's own. It refuses from `call`, never from `poll_ready`,
/// whose errors are the inner service's own.
pub struct Gated<S, G, M = BodyEnd> {
    inner: S,
    gate: G,
    mode: M,
    /// Whether `inner` was polled ready and not called since.
    ready: bool,
}

impl<S, G, M> Gated<S, G, M> {
    /// Puts `inner` behind `gate`.
    pub fn new(inner: S, gate: G, mode: M) -> Self {
        Self { inner, gate, mode, ready: false }
    }

    /// The gate: a handle on its state.
    pub fn gate(&self) -> &G {
        &self.gate
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service. What it was ready for is still reserved in it.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Clone, G, M> Gated<S, G, M> {
    /// A fresh clone of the inner service; the readied one, if there is one, is dropped, and what it had reserved is
    /// free for others while this call waits or is refused.
    fn release(&mut self) -> S {
        let clone = self.inner.clone();
        if std::mem::take(&mut self.ready) {
            self.inner = clone.clone();
        }
        clone
    }
}

impl<S: Clone, G: Clone, M: Clone> Clone for Gated<S, G, M> {
    fn clone(&self) -> Self {
        // A clone of a ready service is not ready.
        Self { inner: self.inner.clone(), gate: self.gate.clone(), mode: self.mode.clone(), ready: false }
    }
}

impl<S, G, M, Req> Service<Req> for Gated<S, G, M>
where
    S: Clone,
    G: Gate<Req>,
    M: Mode<S, Req, G::Permit> + Copy,
{
    type Response = M::Response;
    type Error = M::Error;
    type Future = ResponseFuture<S, G, M, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.gate.shut() {
            // The refusal is said in `call`. An inner service readied earlier stays so until then.
            return Poll::Ready(Ok(()));
        }
        let polled = self.mode.poll_ready(&mut self.inner, cx);
        self.ready = matches!(polled, Poll::Ready(Ok(())));
        polled
    }

    #[inline]
    fn call(&mut self, mut request: Req) -> Self::Future {
        match self.gate.admit(&mut request) {
            Admission::Now(permit) => {
                let note = self.mode.note(&request);
                let mut held = Held::new(permit);
                if std::mem::take(&mut self.ready) {
                    let future =
                        held.running(crate::gate::End::Failed, || self.mode.call(&mut self.inner, request));
                    ResponseFuture::calling(note, future, held)
                } else {
                    // The gate was shut when this handle was polled, and is open now.
                    ResponseFuture::readying(note, self.mode, self.inner.clone(), request, held)
                }
            }
            Admission::Later(wait) => {
                let note = self.mode.note(&request);
                ResponseFuture::waiting(note, self.mode, wait, self.release(), request)
            }
            Admission::Refused(refusal) => {
                if self.ready {
                    drop(self.release());
                }
                ResponseFuture::refused(self.mode.note(&request), refusal)
            }
        }
    }
}

impl<S: fmt::Debug, G, M: fmt::Debug> fmt::Debug for Gated<S, G, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gated").field("inner", &self.inner).field("mode", &self.mode).finish_non_exhaustive()
    }
}
