//! Services, gates and bodies that record what is done to them.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use seawall::call::Outcome;
use seawall::gate::{Admission, End, Follow, Gate, Heads, Permit};
use seawall::{BoxError, Refusal, RefusalKind};
use tower::Service;

pub(crate) type Req = Request<()>;

/// A gauge that a guard raises while it lives.
#[derive(Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn guard(&self) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        GaugeGuard(self.clone())
    }
}

pub(crate) struct GaugeGuard(Gauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A service that panics when it is called without having been polled ready; a clone of it is not ready.
pub(crate) struct Probe {
    pub(crate) script: Arc<Script>,
    ready: bool,
}

/// What the probe does, and what was done to it.
#[derive(Default)]
pub(crate) struct Script {
    /// How often `poll_ready` is pending before it is ready.
    pub(crate) pending_ready: AtomicUsize,
    /// `poll_ready` fails while this is not zero.
    pub(crate) failing_ready: AtomicUsize,
    pub(crate) panic_in: Mutex<Option<PanicIn>>,
    /// How often the future is pending before it answers.
    pub(crate) pending_future: AtomicUsize,
    pub(crate) polls_of_ready: AtomicUsize,
    pub(crate) calls: AtomicUsize,
    /// Futures and bodies that are alive.
    pub(crate) alive: Gauge,
    pub(crate) frames: Mutex<Vec<Bytes>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PanicIn {
    Ready,
    Call,
    Future,
    Body,
}

impl Probe {
    pub(crate) fn new() -> Self {
        Self { script: Arc::default(), ready: false }
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self { script: self.script.clone(), ready: false }
    }
}

impl Script {
    fn panics(&self, place: PanicIn) {
        let set = *self.panic_in.lock().unwrap();
        assert!(set != Some(place), "scripted panic in {place:?}");
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Counts down; true while it was not zero.
fn countdown(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Service<Req> for Probe {
    type Response = Response<TestBody>;
    type Error = BoxError;
    type Future = ProbeFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.script.polls_of_ready.fetch_add(1, Ordering::SeqCst);
        self.script.panics(PanicIn::Ready);
        if self.script.failing_ready.load(Ordering::SeqCst) > 0 {
            self.ready = false;
            return Poll::Ready(Err("the inner service is gone".into()));
        }
        if countdown(&self.script.pending_ready) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Req) -> ProbeFuture {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        self.script.calls.fetch_add(1, Ordering::SeqCst);
        self.script.panics(PanicIn::Call);
        ProbeFuture { script: self.script.clone(), _alive: self.script.alive.guard() }
    }
}

pub(crate) struct ProbeFuture {
    script: Arc<Script>,
    _alive: GaugeGuard,
}

impl Future for ProbeFuture {
    type Output = Result<Response<TestBody>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.script.panics(PanicIn::Future);
        if countdown(&self.script.pending_future) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let frames =
            self.script.frames.lock().unwrap().iter().cloned().map(|data| Ok(Frame::data(data))).collect();
        let mut body = TestBody::new(frames);
        body.panics = *self.script.panic_in.lock().unwrap() == Some(PanicIn::Body);
        body.alive = Some(self.script.alive.guard());
        Poll::Ready(Ok(Response::new(body)))
    }
}

/// A body of scripted frames, each of which comes after one `Pending`.
pub(crate) struct TestBody {
    frames: VecDeque<Result<Frame<Bytes>, BoxError>>,
    pended: bool,
    pub(crate) exact: bool,
    pub(crate) panics: bool,
    alive: Option<GaugeGuard>,
}

impl TestBody {
    pub(crate) fn new(frames: VecDeque<Result<Frame<Bytes>, BoxError>>) -> Self {
        Self { frames, pended: false, exact: false, panics: false, alive: None }
    }

    pub(crate) fn of(parts: &[&'static str]) -> Self {
        Self::new(parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))).collect())
    }

    pub(crate) fn with_trailers(mut self) -> Self {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        self.frames.push_back(Ok(Frame::trailers(trailers)));
        self
    }

    pub(crate) fn with_error(mut self) -> Self {
        self.frames.push_back(Err("connection reset".into()));
        self
    }

    pub(crate) fn exact(mut self) -> Self {
        self.exact = true;
        self
    }
}

impl Body for TestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        assert!(!self.panics, "scripted panic in the body");
        if !std::mem::replace(&mut self.pended, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.pended = false;
        Poll::Ready(self.frames.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.exact && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if !self.exact {
            return SizeHint::default();
        }
        let left = |frame: &Result<Frame<Bytes>, BoxError>| {
            frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64)
        };
        SizeHint::with_exact(self.frames.iter().map(left).sum())
    }
}

/// A gate whose answers are scripted, and which records how its permits ended.
#[derive(Clone, Default)]
pub(crate) struct TestGate(Arc<TestGateState>);

#[derive(Default)]
struct TestGateState {
    answer: Mutex<Answer>,
    shut: Mutex<bool>,
    held: Gauge,
    ends: Mutex<Vec<End>>,
    follow_head_only: Mutex<bool>,
    waiters: Mutex<Vec<Waker>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    #[default]
    Now,
    Later,
    Refused,
}

impl TestGate {
    pub(crate) fn answer(&self, answer: Answer) {
        *self.0.answer.lock().unwrap() = answer;
        for waker in self.0.waiters.lock().unwrap().drain(..) {
            waker.wake();
        }
    }

    pub(crate) fn set_shut(&self, shut: bool) {
        *self.0.shut.lock().unwrap() = shut;
    }

    pub(crate) fn settle_at_the_head(&self) {
        *self.0.follow_head_only.lock().unwrap() = true;
    }

    /// Permits that are out.
    pub(crate) fn held(&self) -> usize {
        self.0.held.now()
    }

    pub(crate) fn ends(&self) -> Vec<End> {
        self.0.ends.lock().unwrap().clone()
    }

    fn permit(&self) -> TestPermit {
        TestPermit { gate: self.clone(), _held: self.0.held.guard() }
    }
}

pub(crate) struct TestPermit {
    gate: TestGate,
    _held: GaugeGuard,
}

pub(crate) struct TestWait(TestGate);

impl<Req> Gate<Req> for TestGate {
    type Permit = TestPermit;
    type Wait = TestWait;

    fn shut(&self) -> bool {
        *self.0.shut.lock().unwrap()
    }

    fn admit(&self, _request: &mut Req) -> Admission<TestPermit, TestWait> {
        match *self.0.answer.lock().unwrap() {
            Answer::Now => Admission::Now(self.permit()),
            Answer::Later => Admission::Later(TestWait(self.clone())),
            Answer::Refused => Admission::Refused(Refusal::new(RefusalKind::Custom)),
        }
    }
}

impl Future for TestWait {
    type Output = Result<TestPermit, Refusal>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = *self.0.0.answer.lock().unwrap();
        match answer {
            Answer::Now => Poll::Ready(Ok(self.0.permit())),
            Answer::Refused => Poll::Ready(Err(Refusal::new(RefusalKind::Custom))),
            Answer::Later => {
                self.0.0.waiters.lock().unwrap().push(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Permit for TestPermit {
    fn settle(&mut self, end: End, _outcome: Option<&Outcome>) {
        self.gate.0.ends.lock().unwrap().push(end);
    }
}

impl<Res, E> Heads<Res, E> for TestPermit {
    fn head(&mut self, _head: Result<&Res, &E>) -> Follow {
        if *self.gate.0.follow_head_only.lock().unwrap() { Follow::Settle } else { Follow::Body }
    }
}

/// Polls once.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Reads a body to its end: its data, its trailers, and the error that broke it.
pub(crate) async fn read<B>(body: B) -> (Vec<u8>, Option<HeaderMap>, Option<String>)
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let (mut data, mut trailers) = (Vec::new(), None);
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame {
            Err(error) => return (data, trailers, Some(error.to_string())),
            Ok(frame) => match frame.into_data() {
                Ok(bytes) => data.extend_from_slice(&bytes),
                Err(frame) => trailers = frame.into_trailers().ok(),
            },
        }
    }
    (data, trailers, None)
}
