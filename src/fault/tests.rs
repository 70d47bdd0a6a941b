use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

use super::*;
use crate::Class;
use crate::call::{CallBody, IntakeLayer, Outcome, OutcomeLayer};
use crate::refusal::BoxError;
use crate::time;

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3_600);

/// Frames as a server sends them, with their length, an extension and trailers.
#[derive(Clone, Debug)]
struct Frames(VecDeque<&'static str>, bool);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(text) = self.0.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
        }
        let trailers = std::mem::take(&mut self.1);
        Poll::Ready(trailers.then(|| Ok(Frame::trailers(trailer()))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty() && !self.1
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|text| text.len() as u64).sum())
    }
}

fn trailer() -> HeaderMap {
    HeaderMap::from_iter([("x-sum".parse().unwrap(), "1".parse().unwrap())])
}

const EVENTS: [&str; 4] = ["data: {\"a\":1}\r\n", "\r\ndata: 2\n", "\nda", "ta: 3\n\n"];

fn answer() -> Response<Frames> {
    let mut response = Response::new(Frames(EVENTS.into(), true));
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response.headers_mut().insert("content-length", EVENTS.concat().len().into());
    response.extensions_mut().insert(7_u8);
    response
}

/// A provider that counts who asks it.
fn provider(
    asked: &Arc<AtomicUsize>,
) -> impl Service<Request<()>, Response = Response<Frames>, Error = BoxError, Future: Send> + Clone + use<> {
    let asked = asked.clone();
    service_fn(move |_| {
        asked.fetch_add(1, Ordering::SeqCst);
        async { Ok(answer()) }
    })
}

fn always(fault: Inject) -> FaultLayer {
    FaultLayer::builder().rate(1.0, fault).on().build().unwrap()
}

async fn ask(layer: &FaultLayer) -> Result<Response<FaultBody<Frames>>, BoxError> {
    layer.layer(provider(&Arc::default())).oneshot(Request::new(())).await
}

/// All that passes before the end, or before what went wrong.
async fn read(body: FaultBody<Frames>) -> (String, Result<Option<HeaderMap>, BoxError>) {
    let mut body = std::pin::pin!(body);
    let mut text = Vec::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => text.extend_from_slice(&data),
            Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
            Err(error) => return (String::from_utf8(text).unwrap(), Err(error)),
        }
    }
    (String::from_utf8(text).unwrap(), Ok(trailers))
}

fn is_injected(error: &BoxError, kind: std::io::ErrorKind) -> bool {
    let error = error.downcast_ref::<std::io::Error>().unwrap();
    error.kind() == kind && error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Injected>)
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_zero_and_a_layer_that_is_off_change_nothing_byte_for_byte() {
    let none = FaultLayer::builder().rate(0.0, Inject::reset()).on().build().unwrap();
    let off = FaultLayer::builder().script([Inject::reset()]).rate(1.0, Inject::hang()).build().unwrap();
    let through = FaultLayer::builder().script(vec![Inject::nothing(); 100]).on().build().unwrap();
    let start = time::now();
    for layer in [none, off, through, FaultLayer::new()] {
        for _ in 0..100 {
            let response = ask(&layer).await.unwrap();
            let (head, mut body) = response.into_parts();
            let (expected, mut untouched) = answer().into_parts();
            assert_eq!((head.status, head.version), (expected.status, expected.version));
            assert_eq!(head.headers, expected.headers);
            assert_eq!(head.extensions.get::<u8>(), Some(&7));
            assert!(head.extensions.get::<Injected>().is_none());
            loop {
                assert_eq!(body.is_end_stream(), untouched.is_end_stream());
                assert_eq!(body.size_hint().exact(), untouched.size_hint().exact());
                let (frame, expected) = (body.frame().await, untouched.frame().await);
                let Some(expected) = expected else { break assert!(frame.is_none()) };
                let (frame, expected) = (frame.unwrap().unwrap(), expected.unwrap());
                assert_eq!(frame.data_ref(), expected.data_ref(), "frame by frame");
                assert_eq!(frame.trailers_ref(), expected.trailers_ref());
            }
        }
        assert_eq!(layer.handle().injected(), 0);
    }
    assert_eq!(time::now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_script_is_used_up_in_order_and_clones_share_it() {
    let asked = Arc::default();
    let script = [500, 502, 503, 504].map(|status| Inject::status(StatusCode::from_u16(status).unwrap()));
    let layer = FaultLayer::builder().script(script).script([Inject::nothing()]).on().build().unwrap();
    let first = layer.layer(provider(&asked));
    let services =
        [first.clone(), layer.layer(provider(&asked)), first, layer.clone().layer(provider(&asked))];
    let handle = layer.handle();
    for (service, status) in services.iter().zip([500, 502, 503, 504]) {
        let response = service.clone().oneshot(Request::new(())).await.unwrap();
        assert_eq!(response.status(), status);
        assert!(response.extensions().get::<Injected>().is_some());
        assert_eq!(asked.load(Ordering::SeqCst), 0, "the provider is not asked");
    }
    assert_eq!((handle.left(), handle.injected()), (1, 4));
    for _ in 0..3 {
        assert_eq!(services[0].clone().oneshot(Request::new(())).await.unwrap().status(), 200);
    }
    assert_eq!((handle.left(), handle.injected(), asked.load(Ordering::SeqCst)), (0, 4, 3));
}

#[tokio::test(start_paused = true)]
async fn the_handle_switches_and_changes_it_while_it_runs() {
    let layer = FaultLayer::new();
    let handle = layer.handle();
    handle.script([Inject::status(StatusCode::BAD_GATEWAY)]);
    assert_eq!(ask(&layer).await.unwrap().status(), 200);
    assert_eq!((handle.is_on(), handle.left()), (false, 1), "while it is off its script is not used");
    handle.on();
    assert_eq!(ask(&layer).await.unwrap().status(), 502);
    assert_eq!(ask(&layer).await.unwrap().status(), 200, "used up");
    handle.rates([(1.0, Inject::status(StatusCode::INTERNAL_SERVER_ERROR))]).unwrap();
    assert_eq!(ask(&layer).await.unwrap().status(), 500);
    assert!(handle.rates([(0.7, Inject::reset()), (0.7, Inject::reset())]).is_err());
    assert_eq!(ask(&layer).await.unwrap().status(), 500, "a wrong change changes nothing");
    handle.off();
    assert_eq!(ask(&layer).await.unwrap().status(), 200);
    handle.on();
    handle.clear();
    assert_eq!(ask(&layer).await.unwrap().status(), 200);
    assert_eq!(handle.injected(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_faults_at_about_the_rate() {
    let faults = async |seed| {
        let builder = FaultLayer::builder().rate(0.2, Inject::status(StatusCode::BAD_GATEWAY));
        let layer = builder.rate(0.1, Inject::reset()).seed(seed).on().build().unwrap();
        let mut kinds = Vec::new();
        for _ in 0..2_000 {
            kinds.push(ask(&layer).await.map_or(0, |response| response.status().as_u16()));
        }
        kinds
    };
    let (one, same, other) = (faults(7).await, faults(7).await, faults(8).await);
    assert_eq!(one, same);
    assert_ne!(one, other);
    let share = |kind| one.iter().filter(|found| **found == kind).count();
    assert!((340..460).contains(&share(502)) && (160..240).contains(&share(0)), "{}", share(502));
}

#[tokio::test(start_paused = true)]
async fn statuses_and_resets_are_what_classifiers_take_them_for() {
    let verdicts = [
        (Inject::throttled(Duration::from_millis(1_500)), Class::Throttled, Some(2 * SECOND)),
        (Inject::status(StatusCode::TOO_MANY_REQUESTS), Class::Throttled, None),
        (Inject::status(StatusCode::SERVICE_UNAVAILABLE), Class::Transient, None),
        (Inject::status(StatusCode::BAD_REQUEST), Class::Invalid, None),
        (Inject::error_event(0), Class::Transient, None),
    ];
    for (fault, class, hint) in verdicts {
        let client = ServiceBuilder::new().layer(IntakeLayer::new()).layer(OutcomeLayer::new());
        let client = client
            .layer(always(fault.clone()))
            .service_fn(|_: Request<CallBody>| async { Ok::<_, BoxError>(answer()) });
        let request = Request::new(http_body_util::Full::<Bytes>::default());
        let response = client.oneshot(request).await.unwrap();
        let outcome = Outcome::of(&response).unwrap().clone();
        let _ = response.into_body().collect().await;
        let verdict = outcome.verdict().unwrap();
        assert_eq!((verdict.class(), verdict.hint()), (class, hint), "{fault:?}");
    }
    let error = ask(&always(Inject::reset())).await.unwrap_err();
    assert!(is_injected(&error, std::io::ErrorKind::ConnectionReset));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_added_and_a_hang_is_for_ever() {
    let start = time::now();
    let response = ask(&always(Inject::delay(3 * SECOND))).await.unwrap();
    assert_eq!((response.status().as_u16(), time::now() - start), (200, 3 * SECOND));
    assert_eq!(read(response.into_body()).await.0, EVENTS.concat());
    let late = always(Inject::status(StatusCode::BAD_GATEWAY).delayed(5 * SECOND));
    assert_eq!(ask(&late).await.unwrap().status(), 502);
    assert_eq!(time::now() - start, 8 * SECOND);
    assert!(timeout(LONG, ask(&always(Inject::hang()))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_cut_and_a_stall_come_after_exactly_so_many_bytes() {
    let whole = EVENTS.concat();
    for after in 0..whole.len() + 5 {
        let passed = &whole[..after.min(whole.len())];
        let response = ask(&always(Inject::cut(after as u64))).await.unwrap();
        assert!(response.extensions().get::<Injected>().is_some());
        let (text, end) = read(response.into_body()).await;
        assert_eq!(text, passed);
        assert!(is_injected(&end.unwrap_err(), std::io::ErrorKind::UnexpectedEof), "also after a short body");

        let start = time::now();
        let response = ask(&always(Inject::stall_for(after as u64, SECOND))).await.unwrap();
        let (text, end) = read(response.into_body()).await;
        assert_eq!((text, end.unwrap()), (whole.clone(), Some(trailer())), "nothing is lost");
        assert_eq!(time::now() - start, SECOND);

        let mut body = ask(&always(Inject::stall(after as u64))).await.unwrap().into_body();
        let mut text = Vec::new();
        while let Ok(frame) = timeout(LONG, body.frame()).await {
            text.extend_from_slice(frame.unwrap().unwrap().data_ref().unwrap());
            assert!(!body.is_end_stream());
        }
        assert_eq!(text, passed.as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_event_stands_between_events() {
    let whole = EVENTS.concat();
    let ends = [0, 17, 26, 35];
    assert_eq!(whole.len(), ends[3]);
    for after in 0..whole.len() + 5 {
        let layer = always(Inject::error_event_of(after as u64, "data: {\"error\":{}}\n\n"));
        let response = ask(&layer).await.unwrap();
        assert!(response.headers().get("content-length").is_none(), "it would be wrong");
        let (text, end) = read(response.into_body()).await;
        let at = ends.into_iter().find(|end| *end >= after).unwrap_or(whole.len());
        assert_eq!(text, format!("{}data: {{\"error\":{{}}}}\n\n", &whole[..at]), "{after}");
        assert!(end.unwrap().is_none(), "the stream ends with it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_leaves_nothing_behind() {
    let alive = Arc::new(());
    let held = alive.clone();
    let inner = service_fn(move |_: Request<()>| {
        let held = held.clone();
        async move {
            tokio::time::sleep(SECOND).await;
            drop(held);
            Ok::<_, BoxError>(answer())
        }
    });
    let script = [Inject::nothing(), Inject::delay(SECOND), Inject::hang(), Inject::reset().delayed(SECOND)];
    let layer = FaultLayer::builder().script(script).on().build().unwrap();
    let service = layer.layer(inner);
    for (left, steps) in [(3, 1), (2, 3), (1, 3), (0, 1)] {
        let mut call = Box::pin(service.clone().oneshot(Request::new(())));
        for _ in 0..steps {
            assert!(timeout(SECOND / 2, &mut call).await.is_err());
        }
        drop(call);
        assert_eq!(layer.handle().left(), left, "it has used up its entry, and no other");
        assert_eq!(Arc::strong_count(&alive), 2, "the service's own, and no call's");
    }
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(read(response.into_body()).await.0, EVENTS.concat());
}

#[tokio::test(start_paused = true)]
async fn what_was_made_ready_for_a_call_that_is_not_made_is_free_again() {
    let limited = tower::limit::ConcurrencyLimit::new(provider(&Arc::default()), 1);
    let mut service = always(Inject::reset()).layer(limited.clone());
    let _ = service.ready().await.unwrap().call(Request::new(())).await;
    // A held slot would make this wait for ever.
    let mut other = limited;
    assert!(timeout(LONG, other.ready()).await.is_ok());
}

#[test]
fn a_rate_that_is_no_share_cannot_be_built() {
    for rates in [vec![1.1], vec![-0.1], vec![f64::NAN], vec![f64::INFINITY], vec![0.6, 0.5]] {
        let mut builder = FaultLayer::builder();
        for rate in &rates {
            builder = builder.rate(*rate, Inject::reset());
        }
        assert_eq!(builder.build().unwrap_err().field(), "rate", "{rates:?}");
    }
    let thirds = FaultLayer::builder().rate(1.0 / 3.0, Inject::reset()).rate(1.0 / 3.0, Inject::hang());
    assert!(thirds.rate(1.0 / 3.0, Inject::cut(0)).build().is_ok());
}

#[test]
fn everything_crosses_threads_and_says_what_it_is() {
    fn check<T: Send + Sync + std::fmt::Debug>(_: &T) {}
    let layer = FaultLayer::new();
    check(&layer);
    check(&layer.handle());
    check(&Inject::reset());
    check(&layer.layer(()));
    check(&FaultBody::<Frames>::default());
    let future = layer.layer(provider(&Arc::default())).call(Request::new(()));
    assert_eq!(format!("{future:?}"), "FaultFuture { state: \"passing\", .. }");
}
