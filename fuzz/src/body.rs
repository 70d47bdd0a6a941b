//! A request body in frames, and what passes through the intake layer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Body, Frame, SizeHint};
use seawall::call::{CallBody, IntakeLayer};
use tower_layer::Layer;
use tower_service::Service;

/// A body that comes in these pieces, each after a moment, with trailers if there are any.
#[derive(Debug, Default)]
pub struct Pieces {
    rest: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    /// Whether the next look at it finds nothing yet.
    late: bool,
    /// Whether it says its length, as one that is there at once does.
    complete: bool,
}

impl Pieces {
    /// A body that is there at once.
    #[must_use]
    pub fn whole(data: &[u8]) -> Self {
        let rest = VecDeque::from([Bytes::copy_from_slice(data)]);
        Self { rest, complete: true, ..Self::default() }
    }

    /// One that is on its way.
    pub fn coming<'a>(frames: impl Iterator<Item = &'a [u8]>, trailers: Option<HeaderMap>) -> Self {
        let rest = frames.map(Bytes::copy_from_slice).collect();
        Self { rest, trailers, late: true, complete: false }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.complete {
            self.late = !self.late;
            if !self.late {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let data = self.rest.pop_front().map(Frame::data);
        Poll::Ready(data.or_else(|| self.trailers.take().map(Frame::trailers)).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.complete && self.rest.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        if self.complete {
            SizeHint::with_exact(self.rest.iter().map(|piece| piece.len() as u64).sum())
        } else {
            SizeHint::default()
        }
    }
}

/// Hands back the request that reached it.
#[derive(Clone, Debug)]
struct Echo;

impl Service<Request<CallBody>> for Echo {
    type Response = Request<CallBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Self::Future {
        ready(Ok(request))
    }
}

/// The request as the layers below the intake see it.
///
/// # Panics
///
/// If it is never there.
#[must_use]
pub fn intake(layer: &IntakeLayer, request: Request<Pieces>) -> Request<CallBody> {
    let mut service = layer.layer(Echo);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Service::<Request<Pieces>>::poll_ready(&mut service, &mut cx).is_ready());
    match finish(service.call(request)) {
        Ok(request) => request,
        Err(never) => match never {},
    }
}

/// Reads a body to its end: its bytes and its trailers.
///
/// # Panics
///
/// If it errs, does not end, or brings more than it announced.
#[must_use]
pub fn read_to_end(mut body: CallBody) -> (Vec<u8>, Option<HeaderMap>) {
    let (mut data, mut trailers) = (Vec::new(), None);
    let announced = body.size_hint();
    while let Some(frame) = finish(std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx))) {
        let frame = frame.unwrap_or_else(|error| panic!("the body has no error: {error}"));
        match frame.into_data() {
            Ok(piece) => data.extend_from_slice(&piece),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    assert!(body.is_end_stream() || body.size_hint().exact().is_none());
    assert!(announced.lower() <= data.len() as u64);
    assert!(announced.upper().is_none_or(|upper| data.len() as u64 <= upper));
    (data, trailers)
}

/// Polls until it is ready: nothing here waits for time or for another thread.
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1 << 20 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
    }
    panic!("never ready");
}
