//! Where a response commits: HTTP responses can be held back, others are taken as they are.

use std::convert::Infallible;
use std::future::Future;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Response, StatusCode};
use tower_service::Service;

use super::served::{Attempts, Served};
use crate::call::commit::{Bounds, Goal, Held, Hold};
use crate::call::{CommitBody, HttpResponse, Outcome};
use crate::gate::{BodyEnd, Head, Respond, RespondNote, asks_inner};
use crate::refusal::{Failure, Refusal, RefusalKind};
use crate::time::Instant;
use crate::verdict::{Classify, Verdict};

/// What an inner service has answered.
#[derive(Debug)]
pub enum Taken<R, E, H> {
    /// A response that is passed on or kept.
    Response(R),
    /// It failed.
    Error(E),
    /// A response that is held back.
    Held(H),
}

/// Where a response commits, and how a refusal is told. Implemented for [`BodyEnd`], [`Head`], [`Telling`] and [`Respond`];
/// sealed by its private parts.
///
/// All that the service asks of the inner service goes through this one trait: see `gate/mode.rs`.
#[diagnostic::on_unimplemented(
    message = "a fallback cannot serve `{Req}` over `{S}`",
    note = "responses of your own: end the layer with `.at_head()`, and give its builder `.classify(..)`",
    note = "the error type must tell a refusal: below the layer `.map_err(seawall::BoxError::from)`, or see `seawall::Failure`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Ends<S, Req, C> {
    /// What the service answers.
    type Response;
    /// How it fails.
    type Error;
    /// What the inner service answers, or how it fails.
    type Output;
    /// The inner service's future.
    type Future: Future<Output = Self::Output>;
    /// A response that is held back.
    type Held: Holds<Self::Response>;
    /// What must be remembered of the request.
    type Note: Copy;

    #[doc(hidden)]
    fn note(&self, request: &Req) -> Self::Note;
    #[doc(hidden)]
    fn poll_ready(&self, inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;
    #[doc(hidden)]
    fn call(&self, inner: &mut S, request: Req) -> Self::Future;
    #[doc(hidden)]
    fn judge(classifier: &C, output: &Self::Output) -> Verdict;
    /// What an output of this verdict is.
    #[doc(hidden)]
    fn fact(verdict: Verdict, output: &Self::Output) -> Fact;
    #[doc(hidden)]
    fn take(
        output: Self::Output,
        plan: impl FnOnce(Option<Instant>) -> Option<(Goal, Bounds)>,
    ) -> Taken<Self::Response, Self::Error, Self::Held>;
    #[doc(hidden)]
    fn refuse(note: Self::Note, refusal: Refusal) -> Result<Self::Response, Self::Error>;
    #[doc(hidden)]
    fn serve(&self, response: &mut Self::Response, served: impl FnOnce() -> Served, headers: bool);
    #[doc(hidden)]
    fn exhausted(&self, response: &mut Self::Response, attempts: impl FnOnce() -> Attempts);
}

/// What an output is.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    pub(super) verdict: Verdict,
    pub(super) status: Option<StatusCode>,
    /// Why one of our own layers said no, where it did.
    pub(super) refused: Option<RefusalKind>,
    /// Whether the upstream answered at all.
    pub(super) answered: bool,
    /// Whether its head was good, and a layer below has found that the rest is not: no answer to keep.
    pub(super) hollow: bool,
}

/// A response that is held back, in a future that polls it.
pub trait Holds<R> {
    #[doc(hidden)]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Held>;
    #[doc(hidden)]
    fn is_whole(&self) -> bool;
    #[doc(hidden)]
    fn into_response(self) -> R;
}

impl<R> Holds<R> for Infallible {
    fn poll(&mut self, _cx: &mut Context<'_>) -> Poll<Held> {
        match *self {}
    }

    fn is_whole(&self) -> bool {
        match *self {}
    }

    fn into_response(self) -> R {
        match self {}
    }
}

impl<B: http_body::Body<Data = bytes::Bytes>> Holds<Response<CommitBody<B>>> for Hold<B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Held> {
        Self::poll(self, cx)
    }

    fn is_whole(&self) -> bool {
        Self::is_whole(self)
    }

    fn into_response(self) -> Response<CommitBody<B>> {
        Self::into_response(self)
    }
}

/// A classifier for the responses of a service whose error type can carry a refusal. Blanket-implemented, so that the
/// impl of a mode names the inner service as few times as it can.
pub trait JudgesFor<S: Service<Req>, Req> {
    #[doc(hidden)]
    fn verdict(&self, result: Result<&S::Response, &S::Error>) -> Verdict;
    #[doc(hidden)]
    fn refused(error: &S::Error) -> Option<RefusalKind>;
    #[doc(hidden)]
    fn refuse(refusal: Refusal) -> S::Error;
}

impl<S, Req, C> JudgesFor<S, Req> for C
where
    S: Service<Req>,
    C: Judges<S::Response, S::Error>,
{
    #[inline]
    fn verdict(&self, result: Result<&S::Response, &S::Error>) -> Verdict {
        Judges::verdict(self, result)
    }

    fn refused(error: &S::Error) -> Option<RefusalKind> {
        <C as Judges<S::Response, S::Error>>::refused(error)
    }

    fn refuse(refusal: Refusal) -> S::Error {
        <C as Judges<S::Response, S::Error>>::refuse(refusal)
    }
}

/// The same over the response and error types alone.
pub trait Judges<R, E> {
    #[doc(hidden)]
    fn verdict(&self, result: Result<&R, &E>) -> Verdict;
    #[doc(hidden)]
    fn refused(error: &E) -> Option<RefusalKind>;
    #[doc(hidden)]
    fn refuse(refusal: Refusal) -> E;
}

impl<R, E, C> Judges<R, E> for C
where
    C: Classify<R, E>,
    E: Failure + From<Refusal>,
{
    #[inline]
    fn verdict(&self, result: Result<&R, &E>) -> Verdict {
        self.classify(result)
    }

    fn refused(error: &E) -> Option<RefusalKind> {
        error.refusal().map(|refusal| refusal.kind())
    }

    fn refuse(refusal: Refusal) -> E {
        refusal.into()
    }
}

/// A classifier for the results of a service, whatever its error type. As [`JudgesFor`], where a refusal is a response.
pub trait ClassifiesFor<S: Service<Req>, Req> {
    #[doc(hidden)]
    fn verdict(&self, result: Result<&S::Response, &S::Error>) -> Verdict;
    #[doc(hidden)]
    fn refused(_error: &S::Error) -> Option<RefusalKind> {
        None
    }
}

impl<S, Req, C> ClassifiesFor<S, Req> for C
where
    S: Service<Req>,
    C: Classify<S::Response, S::Error>,
{
    #[inline]
    fn verdict(&self, result: Result<&S::Response, &S::Error>) -> Verdict {
        self.classify(result)
    }
}

/// What the modes do alike.
macro_rules! judges {
    ($judges:ident, $request:ty, $status:expr, $hollow:expr) => {
        #[inline]
        fn judge(classifier: &C, output: &Self::Output) -> Verdict {
            <C as $judges<S, $request>>::verdict(classifier, output.as_ref())
        }

        fn fact(verdict: Verdict, output: &Self::Output) -> Fact {
            let hollow = !verdict.is_success() && output.as_ref().is_ok_and($hollow);
            let status = output.as_ref().ok().and_then($status).filter(|_| !hollow);
            let refused = output.as_ref().err().and_then(<C as $judges<S, $request>>::refused);
            Fact { verdict, status, refused, answered: output.is_ok(), hollow }
        }
    };
}

/// A refusal is an error.
macro_rules! refuses_by_error {
    () => {
        type Note = ();

        #[inline]
        fn note(&self, _request: &Req) {}

        fn refuse((): (), refusal: Refusal) -> Result<Self::Response, S::Error> {
            Err(<C as JudgesFor<S, Req>>::refuse(refusal))
        }
    };
}

/// Nothing of an own response can be held back.
macro_rules! as_it_is {
    () => {
        #[inline]
        fn take(
            output: Self::Output,
            _plan: impl FnOnce(Option<Instant>) -> Option<(Goal, Bounds)>,
        ) -> Taken<S::Response, S::Error, Infallible> {
            match output {
                Ok(response) => Taken::Response(response),
                Err(error) => Taken::Error(error),
            }
        }
    };
}

impl<S, Req, C> Ends<S, Req, C> for Head
where
    S: Service<Req>,
    C: JudgesFor<S, Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Held = Infallible;
    asks_inner!(S, Req);
    refuses_by_error!();
    judges!(JudgesFor, Req, |_| None, |_| false);
    as_it_is!();

    #[inline]
    fn serve(&self, _response: &mut S::Response, _served: impl FnOnce() -> Served, _headers: bool) {}

    fn exhausted(&self, _response: &mut S::Response, _attempts: impl FnOnce() -> Attempts) {}
}

/// As [`Head`], for responses that want to know who served them: see
/// [`FallbackLayer::at_head_telling`](super::FallbackLayer::at_head_telling).
#[derive(Clone, Copy, Debug)]
pub struct Telling<F>(pub(super) F);

impl<S, Req, C, F> Ends<S, Req, C> for Telling<F>
where
    S: Service<Req>,
    C: JudgesFor<S, Req>,
    F: Tells<S, Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Held = Infallible;
    asks_inner!(S, Req);
    refuses_by_error!();
    judges!(JudgesFor, Req, |_| None, |_| false);
    as_it_is!();

    fn serve(&self, response: &mut S::Response, served: impl FnOnce() -> Served, _headers: bool) {
        self.0.tell(response, &served());
    }

    fn exhausted(&self, _response: &mut S::Response, _attempts: impl FnOnce() -> Attempts) {}
}

/// A closure that is told who served a response.
pub trait Tells<S: Service<Req>, Req> {
    #[doc(hidden)]
    fn tell(&self, response: &mut S::Response, served: &Served);
}

impl<S, Req, F> Tells<S, Req> for F
where
    S: Service<Req>,
    F: Fn(&mut S::Response, &Served),
{
    fn tell(&self, response: &mut S::Response, served: &Served) {
        self(response, served);
    }
}

/// Responses over HTTP can be held back, and told who served them.
macro_rules! over_http {
    ($request:ty, $judges:ident) => {
        type Response = Response<CommitBody<<S::Response as HttpResponse>::Body>>;
        type Error = S::Error;
        type Held = Hold<<S::Response as HttpResponse>::Body>;
        asks_inner!(S, $request);
        judges!($judges, $request, |response| Some(response.http_status()), HttpResponse::is_hollow);

        fn take(
            output: Self::Output,
            plan: impl FnOnce(Option<Instant>) -> Option<(Goal, Bounds)>,
        ) -> Taken<Self::Response, S::Error, Self::Held> {
            let response = match output {
                Ok(response) => response.into_http(),
                Err(error) => return Taken::Error(error),
            };
            let sent = Outcome::of(&response).map(|outcome| outcome.sent());
            let held = match plan(sent) {
                Some((goal, bounds)) => Hold::new(response, goal, bounds),
                None => Err(response),
            };
            match held {
                Ok(held) => Taken::Held(held),
                Err(response) => Taken::Response(response.map(CommitBody::passing)),
            }
        }

        fn serve(&self, response: &mut Self::Response, served: impl FnOnce() -> Served, headers: bool) {
            let served = served();
            if headers {
                let asked = HeaderValue::from(served.attempts.asked() + 1);
                response.headers_mut().insert("x-targets-asked", asked);
                if let Ok(name) = HeaderValue::from_str(served.target.upstream().name().as_str()) {
                    response.headers_mut().insert("x-served-by", name);
                }
            }
            response.extensions_mut().insert(served);
        }

        fn exhausted(&self, response: &mut Self::Response, attempts: impl FnOnce() -> Attempts) {
            response.extensions_mut().insert(attempts());
        }
    };
}

impl<S, Req, C> Ends<S, Req, C> for BodyEnd
where
    S: Service<Req, Response: HttpResponse>,
    C: JudgesFor<S, Req>,
{
    over_http!(Req, JudgesFor);
    refuses_by_error!();
}

impl<S, B, C> Ends<S, Request<B>, C> for Respond
where
    S: Service<Request<B>, Response: HttpResponse>,
    C: ClassifiesFor<S, Request<B>>,
{
    type Note = RespondNote;
    over_http!(Request<B>, ClassifiesFor);

    fn note(&self, request: &Request<B>) -> RespondNote {
        RespondNote::of(request)
    }

    fn refuse(note: RespondNote, refusal: Refusal) -> Result<Self::Response, S::Error> {
        Ok(note.tell(&refusal).map(CommitBody::text))
    }
}
