//! Each clock ends its phase, and nothing else; all on a paused clock.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};
use seawall::call::{Describe, Outcome, OutcomeLayer};
use seawall::timeout::{Limit, TimeoutBuilder, TimeoutLayer};
use seawall::{BoxError, Class, Deadline, Failure, Phase, RefusalKind, time};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{Gauge, GaugeGuard};

const SECOND: Duration = Duration::from_secs(1);

/// A body whose frames come at these times, in milliseconds after the last one.
struct Timed {
    frames: std::vec::IntoIter<(u64, &'static str)>,
    next: Option<(Pin<Box<tokio::time::Sleep>>, &'static str)>,
    then_silent: bool,
    _alive: GaugeGuard,
}

impl Timed {
    fn new(frames: &[(u64, &'static str)], alive: &Gauge) -> Self {
        Self { frames: Vec::from(frames).into_iter(), next: None, then_silent: false, _alive: alive.guard() }
    }

    fn then_silent(mut self) -> Self {
        self.then_silent = true;
        self
    }
}

impl Body for Timed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.next.is_none() {
            let Some((wait, text)) = self.frames.next() else {
                return if self.then_silent { Poll::Pending } else { Poll::Ready(None) };
            };
            self.next = Some((Box::pin(tokio::time::sleep(Duration::from_millis(wait))), text));
        }
        let (sleep, text) = self.next.as_mut().unwrap();
        let text = *text;
        std::task::ready!(sleep.as_mut().poll(cx));
        self.next = None;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(text.as_bytes())))))
    }
}

fn phase(error: &BoxError) -> Option<Phase> {
    match error.refusal()?.kind() {
        RefusalKind::TimedOut(phase) => Some(phase),
        _ => None,
    }
}

/// Reads a body; how many frames came, what ended it, and when.
async fn drain<B: Body<Data = Bytes, Error = BoxError>>(body: B) -> (usize, Option<Phase>) {
    let mut body = Box::pin(body);
    let mut frames = 0;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(_) => frames += 1,
            Err(error) => {
                assert!(body.frame().await.is_none(), "after the error the body is over");
                return (frames, phase(&error));
            }
        }
    }
    (frames, None)
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_ends_the_attempt_and_drops_it() {
    let alive = Gauge::default();
    let guarded = alive.clone();
    let inner = service_fn(move |_: Request<()>| {
        let guard = guarded.guard();
        async move {
            let _guard = guard;
            pending::<Result<Response<Empty<Bytes>>, BoxError>>().await
        }
    });
    let layer = TimeoutLayer::builder().head(SECOND).total(5 * SECOND).build().unwrap();
    let start = time::now();
    let error = layer.layer(inner).oneshot(Request::new(())).await.map(|_| ()).unwrap_err();
    assert_eq!((phase(&error), time::now() - start), (Some(Phase::Head), SECOND));
    assert_eq!(error.refusal().unwrap().verdict().class(), Class::Stalled);
    assert_eq!(alive.now(), 0);
}

/// What becomes of a body whose frames come like this, under these limits.
async fn body(
    layer: TimeoutLayer,
    frames: &[(u64, &'static str)],
    silent: bool,
) -> (usize, Option<Phase>, Duration) {
    let alive = Gauge::default();
    let timed = Timed::new(frames, &alive);
    let timed = if silent { timed.then_silent() } else { timed };
    let mut response =
        Some(Response::builder().header("content-type", "text/event-stream").body(timed).unwrap());
    let inner = service_fn(move |_: Request<()>| {
        let response = response.take();
        async move { response.ok_or_else(|| BoxError::from("asked twice")) }
    });
    let stack = ServiceBuilder::new().layer(layer).layer(OutcomeLayer::new()).service(inner);
    let start = time::now();
    let mut stack = stack;
    let response = stack.ready().await.unwrap().call(Request::new(())).await.unwrap();
    let outcome = Outcome::of(&response).unwrap().clone();
    let (frames, ended) = drain(response.into_body()).await;
    if ended.is_some() {
        assert_eq!(outcome.verdict().map(|verdict| verdict.class()), Some(Class::Stalled));
    }
    assert_eq!(alive.now(), 0, "the inner body is gone");
    (frames, ended, time::now() - start)
}

const PING: &str = ": ping\n\n";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

#[tokio::test(start_paused = true)]
async fn keep_alives_are_life_but_no_content() {
    let layer = TimeoutLayer::builder().first_content(SECOND).idle(SECOND).build().unwrap();
    let pings = [(400, PING), (400, PING), (400, PING)];
    assert_eq!(body(layer.clone(), &pings, true).await, (2, Some(Phase::FirstContent), SECOND));
    // Once content is there, pings keep the stream going for as long as it likes.
    let flowing = [(400, TEXT), (900, PING), (900, PING), (900, DONE)];
    assert_eq!(body(layer, &flowing, false).await.1, None);
}

#[tokio::test(start_paused = true)]
async fn silence_in_mid_stream_ends_it() {
    let layer = TimeoutLayer::builder().idle(SECOND).build().unwrap();
    let (frames, ended, after) = body(layer.clone(), &[(100, TEXT), (900, TEXT)], true).await;
    assert_eq!((frames, ended, after), (2, Some(Phase::Idle), 2 * SECOND));
    assert_eq!(body(layer, &[(100, TEXT), (1_001, DONE)], false).await.1, Some(Phase::Idle));
}

#[tokio::test(start_paused = true)]
async fn the_total_ends_a_stream_that_is_well() {
    let layer = TimeoutLayer::builder().total(2 * SECOND).idle(SECOND).build().unwrap();
    let frames = [(500, TEXT); 9];
    assert_eq!(body(layer, &frames, false).await, (4, Some(Phase::Total), 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_reads_slowly_is_no_silent_upstream() {
    let layer = TimeoutLayer::builder().idle(SECOND).build().unwrap();
    let alive = Gauge::default();
    let timed = Timed::new(&[(0, TEXT), (0, TEXT)], &alive);
    let mut response = Some(Response::new(timed));
    let inner = service_fn(move |_: Request<()>| {
        let response = response.take();
        async move { response.ok_or_else(|| BoxError::from("asked twice")) }
    });
    let response = layer.layer(inner).oneshot(Request::new(())).await.unwrap();
    let mut body = Box::pin(response.into_body());
    body.frame().await.unwrap().unwrap();
    tokio::time::advance(60 * SECOND).await;
    body.frame().await.unwrap().unwrap();
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_total_runs_while_the_inner_service_is_not_ready() {
    let never_ready = tower::util::MapErr::new(NeverReady, |error: Infallible| match error {});
    let mut service = TimeoutLayer::new(SECOND).at_head().layer(never_ready);
    let start = time::now();
    let ready: Result<_, BoxError> = service.ready().await;
    let error = ready.unwrap().call(7).await.unwrap_err();
    assert_eq!((phase(&error), time::now() - start), (Some(Phase::Total), SECOND));
    // The service is not dead: the next call may wait its own total.
    let error = service.ready().await.unwrap().call(7).await.unwrap_err();
    assert_eq!((phase(&error), time::now() - start), (Some(Phase::Total), 2 * SECOND));
}

#[derive(Clone)]
struct NeverReady;

impl Service<u32> for NeverReady {
    type Response = u32;
    type Error = Infallible;
    type Future = std::future::Ready<Result<u32, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Pending
    }

    fn call(&mut self, _: u32) -> Self::Future {
        unreachable!("never ready, never called")
    }
}

#[tokio::test(start_paused = true)]
async fn the_earlier_deadline_holds_and_layers_below_obey_it() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let inner = service_fn(move |request: Request<()>| {
        let left = request.deadline().map(|deadline| deadline.remaining(time::now()));
        log.lock().unwrap().push((left, request.headers().get("grpc-timeout").cloned()));
        async move { Ok::<_, BoxError>(Response::new(Empty::<Bytes>::new())) }
    });
    let layer = TimeoutLayer::builder()
        .total(10 * SECOND)
        .propagate(HeaderName::from_static("grpc-timeout"))
        .build()
        .unwrap();
    let service = layer.layer(inner);
    service.clone().oneshot(Request::new(())).await.unwrap();
    let mut earlier = Request::new(());
    earlier.extensions_mut().insert(Deadline::within(3 * SECOND));
    service.clone().oneshot(earlier).await.unwrap();
    let mut passed = Request::new(());
    passed.extensions_mut().insert(Deadline::within(Duration::ZERO));
    let error = service.oneshot(passed).await.map(|_| ()).unwrap_err();
    assert_eq!(phase(&error), Some(Phase::Total));
    let told = |text: &str| Some(text.parse().unwrap());
    assert_eq!(
        *seen.lock().unwrap(),
        [(Some(10 * SECOND), told("10000m")), (Some(3 * SECOND), told("3000m"))],
        "what is too late from the start is never sent"
    );
}

#[tokio::test(start_paused = true)]
async fn the_callers_own_limit_is_heeded_and_never_lengthens_anything() {
    const GRPC: HeaderName = HeaderName::from_static("grpc-timeout");
    let inner = service_fn(|request: Request<()>| async move {
        let left = request.deadline().map(|deadline| deadline.remaining(time::now()));
        Ok::<_, BoxError>(Response::new(Full::from(format!("{left:?}"))))
    });
    let left = async |builder: TimeoutBuilder, told: &str| {
        let request = Request::builder().header(GRPC, told).body(()).unwrap();
        let response = builder.build().unwrap().layer(inner).oneshot(request).await.unwrap();
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    };
    let heeding = || TimeoutLayer::builder().heed(GRPC);
    assert_eq!(left(heeding(), "3S").await, "Some(3s)");
    assert_eq!(left(heeding().total(10 * SECOND), "3000m").await, "Some(3s)");
    assert_eq!(left(heeding().total(2 * SECOND), "3S").await, "Some(2s)");
    assert_eq!(left(heeding(), "soon").await, "None", "what is malformed is no limit");
    assert_eq!(left(TimeoutLayer::builder().total(10 * SECOND), "3S").await, "Some(10s)", "not asked to");

    let hanging = service_fn(|_: Request<()>| pending::<Result<Response<Full<Bytes>>, BoxError>>());
    let request = Request::builder().header(GRPC, "1S").body(()).unwrap();
    let error = heeding().build().unwrap().layer(hanging).oneshot(request).await.map(|_| ()).unwrap_err();
    assert_eq!(phase(&error), Some(Phase::Total));
}

#[tokio::test(start_paused = true)]
async fn a_server_answers_504_and_names_the_phase() {
    let inner = service_fn(|_: Request<()>| pending::<Result<Response<Empty<Bytes>>, Infallible>>());
    let layer = TimeoutLayer::builder().head(SECOND).build().unwrap().respond();
    let response = layer.layer(inner).oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), 504);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert!(text.windows(12).any(|part| part == b"timeout_head"), "{text:?}");
}

#[tokio::test(start_paused = true)]
async fn b191_a_limit_of_duration_max_never_ends_anything() {
    let layer = TimeoutLayer::builder()
        .total(Duration::MAX)
        .head(Duration::MAX)
        .first_content(Duration::MAX)
        .idle(Duration::MAX)
        .build()
        .unwrap();
    let year = 365 * 24 * 3600 * 1000;
    assert_eq!(body(layer, &[(year, TEXT), (year, DONE)], false).await.1, None);
}

#[test]
fn b193_settings_that_cannot_work_name_their_field() {
    let zero = |build: fn(TimeoutBuilder) -> TimeoutBuilder| {
        build(TimeoutLayer::builder()).build().unwrap_err().field().to_owned()
    };
    assert_eq!(zero(|builder| builder.total(Duration::ZERO)), "total");
    assert_eq!(zero(|builder| builder.head(Duration::ZERO)), "head");
    assert_eq!(zero(|builder| builder.first_content(Duration::ZERO)), "first_content");
    assert_eq!(zero(|builder| builder.idle(Duration::ZERO)), "idle");
    assert_eq!(zero(|builder| builder.total(Limit::fixed(SECOND).at_most(Duration::ZERO))), "total");
    assert_eq!(zero(|builder| builder), "total", "a layer without any clock does nothing");
}
