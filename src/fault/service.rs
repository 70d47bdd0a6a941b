//! The service.

use std::io;
use std::mem;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::body::FaultBody;
use super::future::FaultFuture;
use super::handle::FaultHandle;
use super::inject::{Injected, Kind};
use crate::call::HttpResponse;

/// A service with faults on purpose; see [the module](crate::fault). Clones share the script and the switch.
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    inner: S,
    handle: FaultHandle,
}

impl<S> Faulty<S> {
    pub(super) fn new(inner: S, handle: FaultHandle) -> Self {
        Self { inner, handle }
    }

    /// What switches the faults, and changes them, while calls run.
    #[must_use]
    pub fn handle(&self) -> FaultHandle {
        self.handle.clone()
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

/// A service whose error type can tell that a connection was lost. Blanket-implemented; it names the inner service once, as
/// `gate/mode.rs` explains.
#[diagnostic::on_unimplemented(
    message = "the error of `{S}` cannot be made from an `std::io::Error`",
    note = "below the fault layer box the error: `.map_err(seawall::BoxError::from)`"
)]
pub trait Breaks<S: Service<Req>, Req> {
    #[doc(hidden)]
    fn error(error: io::Error) -> S::Error;
}

impl<S, Req> Breaks<S, Req> for FaultHandle
where
    S: Service<Req>,
    FaultHandle: BreaksWith<S::Error>,
{
    fn error(error: io::Error) -> S::Error {
        <FaultHandle as BreaksWith<S::Error>>::error(error)
    }
}

/// The same over the error type alone.
pub trait BreaksWith<E> {
    #[doc(hidden)]
    fn error(error: io::Error) -> E;
}

impl<E: From<io::Error>> BreaksWith<E> for FaultHandle {
    fn error(error: io::Error) -> E {
        error.into()
    }
}

impl<S, B> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<B>, Response: HttpResponse> + Clone,
    FaultHandle: Breaks<S, Request<B>>,
{
    type Response = Response<FaultBody<<S::Response as HttpResponse>::Body>>;
    type Error = S::Error;
    type Future = FaultFuture<S::Future, <S::Response as HttpResponse>::Body, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(inject) = self.handle.next() else {
            return FaultFuture::passing(self.inner.call(request));
        };
        let result = match inject.kind {
            Kind::Nothing => return FaultFuture::changing(self.inner.call(request), inject.wait, None),
            Kind::Body(change) => {
                return FaultFuture::changing(self.inner.call(request), inject.wait, Some(change));
            }
            Kind::Answer(response) => {
                let mut response = response.map(FaultBody::text);
                response.extensions_mut().insert(Injected::MARK);
                Some(Ok(response))
            }
            Kind::Reset => {
                let error = Injected::error(io::ErrorKind::ConnectionReset);
                Some(Err(<FaultHandle as Breaks<S, Request<B>>>::error(error)))
            }
            Kind::Hang => None,
        };
        // What was made ready is not called, so that what it holds goes back.
        let fresh = self.inner.clone();
        drop(mem::replace(&mut self.inner, fresh));
        FaultFuture::instead(result, inject.wait)
    }
}
