//! Where a response ends, and how a refusal is told: the gate's three modes, for clocks.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::body::TimeoutBody;
use super::clocks::Clocks;
use super::layer::Settings;
use crate::call::{HttpResponse, Outcome};
use crate::gate::{BodyEnd, Head, Respond, RespondNote, asks_inner};
use crate::refusal::Refusal;

/// What is still to be watched of a call whose head is there.
#[derive(Debug)]
pub struct Watch {
    pub(super) clocks: Clocks,
    pub(super) settings: Arc<Settings>,
}

/// Where a response ends, and how a refusal is told. Implemented for [`BodyEnd`], [`Head`] and [`Respond`]; sealed by
/// its private parts.
pub trait Ends<S, Req> {
    /// What the service answers.
    type Response;
    /// How it fails.
    type Error;
    /// What the inner service answers, or how it fails.
    type Output;
    /// The inner service's future.
    type Future: Future<Output = Self::Output>;
    /// What must be remembered of the request.
    type Note;

    #[doc(hidden)]
    fn note(&self, request: &Req) -> Self::Note;
    #[doc(hidden)]
    fn poll_ready(&self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;
    #[doc(hidden)]
    fn call(&self, inner: &mut S, request: Req) -> Self::Future;
    #[doc(hidden)]
    fn finish(note: Self::Note, output: Self::Output, watch: Watch) -> Result<Self::Response, Self::Error>;
    #[doc(hidden)]
    fn refuse(note: Self::Note, refusal: Refusal) -> Result<Self::Response, Self::Error>;
}

/// A service whose error type can carry a refusal. The impls name the inner service once; see `gate/mode.rs`.
pub trait CanRefuse<S: Service<Req>, Req> {
    #[doc(hidden)]
    fn refuse(refusal: Refusal) -> S::Error;
}

impl<S, Req, M> CanRefuse<S, Req> for M
where
    S: Service<Req>,
    M: RefusesIn<S::Error>,
{
    fn refuse(refusal: Refusal) -> S::Error {
        M::refuse(refusal)
    }
}

/// The same over the error type alone.
pub trait RefusesIn<E> {
    #[doc(hidden)]
    fn refuse(refusal: Refusal) -> E;
}

impl<E, M> RefusesIn<E> for M
where
    E: crate::refusal::Failure + From<Refusal>,
{
    fn refuse(refusal: Refusal) -> E {
        refusal.into()
    }
}

impl<S, Req> Ends<S, Req> for Head
where
    S: Service<Req>,
    Head: CanRefuse<S, Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Note = ();
    asks_inner!(S, Req);

    fn note(&self, _request: &Req) {}

    fn finish((): (), output: Self::Output, _watch: Watch) -> Self::Output {
        output
    }

    fn refuse((): (), refusal: Refusal) -> Self::Output {
        Err(<Self as CanRefuse<S, Req>>::refuse(refusal))
    }
}

impl<S, Req> Ends<S, Req> for BodyEnd
where
    S: Service<Req, Response: HttpResponse>,
    BodyEnd: CanRefuse<S, Req>,
{
    type Response = Response<TimeoutBody<<S::Response as HttpResponse>::Body>>;
    type Error = S::Error;
    type Note = ();
    asks_inner!(S, Req);

    fn note(&self, _request: &Req) {}

    fn finish((): (), output: Self::Output, watch: Watch) -> Result<Self::Response, S::Error> {
        output.map(|response| watched(response.into_http(), watch))
    }

    fn refuse((): (), refusal: Refusal) -> Result<Self::Response, S::Error> {
        Err(<Self as CanRefuse<S, Req>>::refuse(refusal))
    }
}

impl<S, B> Ends<S, Request<B>> for Respond
where
    S: Service<Request<B>, Response: HttpResponse>,
{
    type Response = Response<TimeoutBody<<S::Response as HttpResponse>::Body>>;
    type Error = S::Error;
    type Note = RespondNote;
    asks_inner!(S, Request<B>);

    fn note(&self, request: &Request<B>) -> RespondNote {
        RespondNote::of(request)
    }

    fn finish(_note: RespondNote, output: Self::Output, watch: Watch) -> Result<Self::Response, S::Error> {
        output.map(|response| watched(response.into_http(), watch))
    }

    fn refuse(note: RespondNote, refusal: Refusal) -> Result<Self::Response, S::Error> {
        Ok(note.tell(&refusal).map(TimeoutBody::text))
    }
}

fn watched<B>(response: Response<B>, watch: Watch) -> Response<TimeoutBody<B>> {
    let outcome = Outcome::of(&response).cloned();
    response.map(|body| TimeoutBody::watched(body, watch, outcome))
}
