//! Where a response ends, and how a refusal is told.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::call::Describe;
use crate::gate::future::{Running, take};
use crate::gate::{End, Follow, GateBody, Heads, Held, Permit, WithBody};
use crate::provider::grpc::is_grpc;
use crate::refusal::{Failure, Refusal};

/// Where a response ends, and how a refusal is told. Sealed: the three modes are all there are.
///
/// All that the service asks of the inner service goes through this one trait, because each further bound that names
/// the inner service doubles the compiler's work with every layer of a stack.
pub trait Mode<S, Req, P: Permit>: sealed::Sealed {
    /// What the gated service answers.
    type Response;
    /// How it fails.
    type Error;
    /// What the inner service answers, or how it fails.
    type Output;
    /// The inner service's future.
    type Future: Future<Output = Self::Output>;
    /// What must be remembered of the request.
    type Note;

    /// Reads the request before it is gone.
    fn note(&self, request: &Req) -> Self::Note;
    /// Asks whether the inner service is ready.
    fn poll_ready(&self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;
    /// Calls the inner service.
    fn call(&self, inner: &mut S, request: Req) -> Self::Future;
    /// Polls the inner future, which goes before its permit does; shows the result to the permit, and takes that on with the
    /// body or settles it. Errors are those of the inner service, unchanged.
    fn poll(
        running: Pin<&mut Running<Self::Future>>,
        cx: &mut Context<'_>,
        note: &mut Option<Self::Note>,
        held: &mut Held<P>,
    ) -> Poll<Result<Self::Response, Self::Error>>;
    /// Tells a refusal.
    ///
    /// # Errors
    ///
    /// The refusal, where it is told as an error.
    fn refuse(note: Self::Note, refusal: Refusal) -> Result<Self::Response, Self::Error>;
}

/// What all modes do alike: pass on to the inner service.
macro_rules! asks_inner {
    ($inner:ident, $request:ty) => {
        type Output = Result<$inner::Response, $inner::Error>;
        type Future = $inner::Future;

        #[inline]
        fn poll_ready(&self, inner: &mut $inner, cx: &mut Context<'_>) -> Poll<Result<(), $inner::Error>> {
            inner.poll_ready(cx)
        }

        #[inline]
        fn call(&self, inner: &mut $inner, request: $request) -> $inner::Future {
            inner.call(request)
        }
    };
}
pub(crate) use asks_inner;

/// The permit is held to the end of the body; a refusal is an error. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyEnd;

/// The permit is held until the response is there; a refusal is an error. For responses without a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head;

/// The permit is held to the end of the body; a refusal is a response: 429, 503, 402 or 504 with `Retry-After` and a
/// problem document, trailers only if the request was gRPC, without a body for `HEAD`. For servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Respond;

/// What a permit needs to see the heads of a service, and what its error type needs to tell a refusal.
///
/// Blanket-implemented; it exists so that the impl of a mode names the inner service as few times as it can.
pub trait ErrsFor<S: Service<Req>, Req>: Permit {
    #[doc(hidden)]
    fn see(held: &mut Held<Self>, result: Result<&S::Response, &S::Error>) -> Follow;
    #[doc(hidden)]
    fn refuse(refusal: Refusal) -> S::Error;
}

impl<S, Req, P> ErrsFor<S, Req> for P
where
    S: Service<Req>,
    P: Errs<S::Response, S::Error>,
{
    #[inline]
    fn see(held: &mut Held<P>, result: Result<&S::Response, &S::Error>) -> Follow {
        P::see(held, result)
    }

    fn refuse(refusal: Refusal) -> S::Error {
        P::refuse(refusal)
    }
}

/// The same over the response and error types alone.
pub trait Errs<R, E>: Permit {
    #[doc(hidden)]
    fn see(held: &mut Held<Self>, result: Result<&R, &E>) -> Follow;
    #[doc(hidden)]
    fn refuse(refusal: Refusal) -> E;
}

impl<R, E, P> Errs<R, E> for P
where
    P: Heads<R, E>,
    E: Failure + From<Refusal>,
{
    #[inline]
    fn see(held: &mut Held<P>, result: Result<&R, &E>) -> Follow {
        held.head(result)
    }

    fn refuse(refusal: Refusal) -> E {
        refusal.into()
    }
}

impl<S, Req, P> Mode<S, Req, P> for Head
where
    S: Service<Req>,
    P: ErrsFor<S, Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Note = ();

    fn note(&self, _request: &Req) {}

    asks_inner!(S, Req);

    #[inline]
    fn poll(
        mut running: Pin<&mut Running<Self::Future>>,
        cx: &mut Context<'_>,
        _note: &mut Option<()>,
        held: &mut Held<P>,
    ) -> Poll<Self::Output> {
        if size_of::<Self::Output>() <= SMALL {
            return answered(running, cx, held).map(|output| {
                see_head(held, output.as_ref(), <P as ErrsFor<S, Req>>::see);
                output
            });
        }
        // What was polled is looked at where it lies, and not moved.
        let polled = held.running(End::Failed, || running.as_mut().poll(cx));
        match &polled {
            Poll::Pending => held.pending(),
            Poll::Ready(output) => {
                running.end();
                see_head(held, output.as_ref(), <P as ErrsFor<S, Req>>::see);
            }
        }
        polled
    }

    fn refuse((): (), refusal: Refusal) -> Self::Output {
        Err(<P as ErrsFor<S, Req>>::refuse(refusal))
    }
}

impl<S, Req, P> Mode<S, Req, P> for BodyEnd
where
    S: Service<Req, Response: WithBody>,
    P: ErrsFor<S, Req>,
    Req: Describe,
{
    type Response = <S::Response as WithBody>::Map<GateBody<<S::Response as WithBody>::Body, P>>;
    type Error = S::Error;
    type Note = bool;

    fn note(&self, request: &Req) -> bool {
        request.expects_no_body()
    }

    asks_inner!(S, Req);

    #[inline]
    fn poll(
        running: Pin<&mut Running<Self::Future>>,
        cx: &mut Context<'_>,
        note: &mut Option<bool>,
        held: &mut Held<P>,
    ) -> Poll<Result<Self::Response, S::Error>> {
        answered(running, cx, held)
            .map(|output| follow(take(note), output, held, <P as ErrsFor<S, Req>>::see))
    }

    fn refuse(_bodiless: bool, refusal: Refusal) -> Result<Self::Response, S::Error> {
        Err(<P as ErrsFor<S, Req>>::refuse(refusal))
    }
}

/// As [`ErrsFor`], where a refusal is a response and so asks nothing of the error type.
pub trait RespondsFor<S: Service<Req>, Req>: Permit {
    #[doc(hidden)]
    fn see(held: &mut Held<Self>, result: Result<&S::Response, &S::Error>) -> Follow;
}

impl<S, Req, P> RespondsFor<S, Req> for P
where
    S: Service<Req>,
    P: Heads<S::Response, S::Error>,
{
    #[inline]
    fn see(held: &mut Held<P>, result: Result<&S::Response, &S::Error>) -> Follow {
        held.head(result)
    }
}

impl<S, ReqB, P> Mode<S, Request<ReqB>, P> for Respond
where
    S: Service<Request<ReqB>, Response: WithBody + FromText>,
    P: RespondsFor<S, Request<ReqB>>,
{
    type Response = <S::Response as WithBody>::Map<GateBody<<S::Response as WithBody>::Body, P>>;
    type Error = S::Error;
    type Note = RespondNote;

    fn note(&self, request: &Request<ReqB>) -> RespondNote {
        RespondNote::of(request)
    }

    asks_inner!(S, Request<ReqB>);

    #[inline]
    fn poll(
        running: Pin<&mut Running<Self::Future>>,
        cx: &mut Context<'_>,
        note: &mut Option<RespondNote>,
        held: &mut Held<P>,
    ) -> Poll<Result<Self::Response, S::Error>> {
        answered(running, cx, held).map(|output| {
            follow(take(note).bodiless, output, held, <P as RespondsFor<S, Request<ReqB>>>::see)
        })
    }

    fn refuse(note: RespondNote, refusal: Refusal) -> Result<Self::Response, S::Error> {
        Ok(S::Response::from_text(note.tell(&refusal).map(GateBody::text)))
    }
}

/// A response that a refusal's text can become: [`http::Response`].
pub trait FromText: WithBody {
    #[doc(hidden)]
    fn from_text<P: Permit>(
        response: Response<GateBody<Self::Body, P>>,
    ) -> Self::Map<GateBody<Self::Body, P>>;
}

impl<B: Body> FromText for Response<B> {
    fn from_text<P: Permit>(response: Response<GateBody<B, P>>) -> Response<GateBody<B, P>> {
        response
    }
}

/// What [`Respond`] remembers of a request.
#[derive(Clone, Copy, Debug)]
pub struct RespondNote {
    bodiless: bool,
    grpc: bool,
}

impl RespondNote {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        Self { bodiless: *request.method() == Method::HEAD, grpc: is_grpc(request.headers()) }
    }

    /// The refusal as a response to that request.
    pub(crate) fn tell(self, refusal: &Refusal) -> Response<Bytes> {
        let mut response = if self.grpc { refusal.to_grpc_response() } else { refusal.to_response() };
        if self.bodiless {
            // `HEAD` answers with the head that `GET` would have had.
            let length = HeaderValue::from(response.body().len());
            response.headers_mut().insert(CONTENT_LENGTH, length);
            *response.body_mut() = Bytes::new();
        }
        response
    }
}

/// Answers up to this size, in bytes, are moved in registers; to leave them in memory would cost more.
const SMALL: usize = 4 * size_of::<usize>();

/// Shows the head to the permit, which ends there.
#[inline]
fn see_head<R, E, P: Permit>(
    held: &mut Held<P>,
    result: Result<&R, &E>,
    see: impl FnOnce(&mut Held<P>, Result<&R, &E>) -> Follow,
) {
    let end = if result.is_ok() { End::Complete } else { End::Failed };
    see(held, result);
    held.settle(end);
}

/// Polls the inner future, and drops it when it has answered.
#[inline]
fn answered<F: Future, P: Permit>(
    mut running: Pin<&mut Running<F>>,
    cx: &mut Context<'_>,
    held: &mut Held<P>,
) -> Poll<F::Output> {
    let polled = held.running(End::Failed, || running.as_mut().poll(cx));
    match polled {
        Poll::Pending => held.pending(),
        Poll::Ready(_) => running.end(),
    }
    polled
}

/// Shows the head to the permit and puts it into the body, unless it has seen enough or nothing follows.
fn follow<R, E, P>(
    bodiless: bool,
    output: Result<R, E>,
    held: &mut Held<P>,
    see: impl FnOnce(&mut Held<P>, Result<&R, &E>) -> Follow,
) -> Result<R::Map<GateBody<R::Body, P>>, E>
where
    R: WithBody,
    P: Permit,
{
    let response = match output {
        Ok(response) => response,
        Err(error) => {
            see(held, Err(&error));
            held.settle(End::Failed);
            return Err(error);
        }
    };
    held.watch(response.outcome());
    let follow = see(held, Ok(&response));
    let length = if bodiless { Some(0) } else { response.length() };
    if follow == Follow::Settle || length == Some(0) {
        held.settle(End::Complete);
    }
    held.followed();
    Ok(response.map_body(|body| GateBody::holding(body, length, held.take())))
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::BodyEnd {}
    impl Sealed for super::Head {}
    impl Sealed for super::Respond {}
}
