//! Cuts a stream that has used up what was reserved for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Outcome;
use crate::cost_guard::gate::CostPermit;
use crate::cost_guard::layer::CostGuardLayer;
use crate::cost_guard::ledger::Ledger;
use crate::gate::{Content, ContentProj, GateBody};
use crate::refusal::{BoxError, Refusal};

impl<G, M> CostGuardLayer<G, M> {
    /// Cuts a running stream once it has used more than was reserved for it: its body then ends with a refusal
    /// ([`BudgetExhausted`](crate::RefusalKind::BudgetExhausted)), and the upstream's is dropped. What was reserved is charged,
    /// or what was used if that is more.
    ///
    /// It goes by what the upstream *reports while it streams*, so it can know only where that is done: Gemini, xAI and
    /// servers with continuous usage (vLLM) say in each event what was used so far; Anthropic's streams say at the start what
    /// the input was, and at the end what the output was; OpenAI's say it in the last event alone, when there is nothing
    /// left to cut. A stream that reports its end is never cut. As long as calls stay within their bound nothing is cut.
    ///
    /// The body's error is a [`BoxError`], in which [`refusal::find`](crate::refusal::find) finds the refusal.
    ///
    /// ```
    /// use std::{num::NonZeroUsize, time::Duration};
    /// use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, Usd, Window};
    ///
    /// let prices = PriceTable::new().model("m", Price::per_million("1", "4")?);
    /// let guard = CostGuardLayer::new(prices, Budget::new(Usd::dollars(10), Window::DAY));
    /// // Cuts what exceeds its bound, and reads on at most 32 calls that their callers left, each for a minute.
    /// let layer = guard.cut_streams().drain(NonZeroUsize::new(32).unwrap(), Duration::from_secs(60));
    /// assert_eq!(layer.running(), 0);
    /// # Ok::<(), seawall::cost_guard::MoneyError>(())
    /// ```
    pub fn cut_streams(self) -> CutStreamsLayer<Self> {
        CutStreamsLayer { guard: self }
    }
}

/// A guard that cuts streams: see [`CostGuardLayer::cut_streams`].
#[derive(Clone, Debug)]
pub struct CutStreamsLayer<L> {
    pub(super) guard: L,
}

impl<S, L: Layer<S>> Layer<S> for CutStreamsLayer<L> {
    type Service = CutStreams<L::Service>;

    fn layer(&self, inner: S) -> CutStreams<L::Service> {
        CutStreams { inner: self.guard.layer(inner) }
    }
}

/// The service of [`CutStreamsLayer`].
#[derive(Clone, Debug)]
pub struct CutStreams<S> {
    inner: S,
}

/// A response that comes right out of a cost guard, with its body. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no response of a cost guard that ends with its body",
    note = "`.cut_streams()` needs HTTP responses, and no `.at_head()`"
)]
pub trait Metered: sealed::Sealed {
    /// Its body.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Meter;
    #[doc(hidden)]
    fn into_metered(self) -> Response<Self::Body>;
}

/// A body that knows whether its reservation is used up. Sealed.
pub trait Meter: sealed::Sealed {
    #[doc(hidden)]
    fn used_up(&self) -> Option<(Refusal, Arc<Outcome>)>;
}

impl<B, L> Metered for Response<GateBody<B, CostPermit<L>>>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
    L: Ledger,
{
    type Body = GateBody<B, CostPermit<L>>;

    fn into_metered(self) -> Self {
        self
    }
}

impl<B, L: Ledger> Meter for GateBody<B, CostPermit<L>> {
    fn used_up(&self) -> Option<(Refusal, Arc<Outcome>)> {
        let (permit, outcome) = self.held()?;
        if outcome.is_finished() {
            return None;
        }
        Some((permit.used_up(outcome)?, outcome.clone()))
    }
}

impl<S, Req> Service<Req> for CutStreams<S>
where
    S: Service<Req, Response: Metered>,
{
    type Response = Response<CutBody<<S::Response as Metered>::Body>>;
    type Error = S::Error;
    type Future = CutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        CutFuture { future: self.inner.call(request) }
    }
}

pin_project! {
    /// The response of [`CutStreams`]. Dropping it drops the call.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct CutFuture<F> {
        #[pin]
        future: F,
    }
}

impl<F, R, E> Future for CutFuture<F>
where
    F: Future<Output = Result<R, E>>,
    R: Metered,
{
    type Output = Result<Response<CutBody<R::Body>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().future.poll(cx))?.into_metered();
        Poll::Ready(Ok(response.map(|body| CutBody { content: Content::Inner { body }, cut: None })))
    }
}

pin_project! {
    /// Passes frames on unchanged until what was reserved is used up; ends with a refusal then.
    pub struct CutBody<B> {
        #[pin]
        content: Content<B>,
        cut: Option<Refusal>,
    }
}

impl<B> Body for CutBody<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Meter,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        if let Some(refusal) = this.cut.take() {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        let ContentProj::Inner { mut body } = this.content.as_mut().project() else {
            return Poll::Ready(None);
        };
        let frame = ready!(body.as_mut().poll_frame(cx));
        // What has come is paid for, and passes.
        if let (Some(Ok(_)), Some((refusal, outcome))) = (&frame, body.used_up()) {
            // Settled first, and then told why it ended: nobody's refusal makes free what the upstream has done.
            this.content.set(Content::over());
            outcome.set_verdict(refusal.verdict());
            *this.cut = Some(refusal);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.cut.is_none() && self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.cut.is_some() { SizeHint::default() } else { self.content.size_hint() }
    }
}

impl<B> fmt::Debug for CutBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutBody").field("cut", &self.cut.is_some()).finish_non_exhaustive()
    }
}

mod sealed {
    use super::{CostPermit, GateBody, Ledger, Response};

    pub trait Sealed {}
    impl<B, L: Ledger> Sealed for GateBody<B, CostPermit<L>> {}
    impl<B, L: Ledger> Sealed for Response<GateBody<B, CostPermit<L>>> {}
}
