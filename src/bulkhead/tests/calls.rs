//! The layer around services: what a call holds, and for how long.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::future::{Either, poll_fn, ready, select};
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::mpsc;
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::*;
use crate::BoxError;

type Frames = mpsc::UnboundedReceiver<Result<Frame<Bytes>, BoxError>>;
type Stream = StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;

/// A body that is fed from elsewhere.
fn streamed(mut frames: Frames) -> Response<Stream> {
    let frames = futures_util::stream::poll_fn(move |cx| frames.poll_recv(cx));
    Response::new(StreamBody::new(Box::pin(frames)))
}

fn kind(error: &BoxError) -> RefusalKind {
    crate::refusal::find(&**error).expect("it is a refusal").kind()
}

#[tokio::test(start_paused = true)]
async fn b077_a_slot_is_held_to_the_end_of_the_body() {
    let (sender, mut senders) = mpsc::unbounded_channel();
    let layer = BulkheadLayer::new(8);
    let gate = layer.gate().clone();
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let (frames, body) = mpsc::unbounded_channel();
        sender.send(frames).unwrap();
        ready(Ok::<_, BoxError>(streamed(body)))
    }));
    let call = || service.clone().oneshot(Request::new(()));
    let mut responses = Vec::new();
    for _ in 0..8 {
        responses.push(call().await.unwrap());
    }
    assert_eq!(gate.in_flight(), 8, "eight heads are there, and eight bodies on their way");
    let mut ninth = spawn(call());
    assert_pending!(ninth.poll());

    // The first body ends.
    drop(senders.recv().await.unwrap());
    let first = responses.remove(0).into_body().collect().await.unwrap();
    assert!(first.to_bytes().is_empty());
    responses.push(assert_ready_ok!(ninth.poll()));

    // The second fails, the third is dropped.
    let mut tenth = spawn(call());
    assert_pending!(tenth.poll());
    senders.recv().await.unwrap().send(Err("reset".into())).unwrap();
    let mut second = responses.remove(0).into_body();
    assert!(second.frame().await.unwrap().is_err());
    responses.push(assert_ready_ok!(tenth.poll()));
    let mut eleventh = spawn(call());
    assert_pending!(eleventh.poll());
    drop(responses.remove(0));
    responses.push(assert_ready_ok!(eleventh.poll()));
    assert_eq!(gate.in_flight(), 8);
    responses.clear();
    drop(second);
    assert_at_rest(&gate);
}

#[tokio::test(start_paused = true)]
async fn b077_at_head_the_slot_is_free_when_the_response_is_there() {
    let layer = BulkheadLayer::new(1).at_head();
    let service = layer.layer(service_fn(|n: u64| ready(Ok::<_, BoxError>(n))));
    for n in 0..3 {
        assert_eq!(service.clone().oneshot(n).await.unwrap(), n);
    }
    assert_at_rest(layer.gate());
}

#[tokio::test(start_paused = true)]
async fn b080_a_call_dropped_before_its_answer_is_taken_gives_its_slot_back() {
    let layer = BulkheadLayer::new(2).at_head();
    let mut service = layer.layer(service_fn(|n: u64| ready(Ok::<_, BoxError>(n))));
    let call = service.ready().await.unwrap().call(1);
    assert_eq!(layer.gate().in_flight(), 1, "the answer is ready, and nobody asked for it");
    drop(call);
    assert_at_rest(layer.gate());
}

#[tokio::test(start_paused = true)]
async fn b083_a_refused_call_never_reaches_the_inner_service() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let layer = BulkheadLayer::new(1).refuse().at_head();
    let service = layer.layer(service_fn(move |(): ()| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<(), BoxError>>()
    }));
    let mut first = spawn(service.clone().oneshot(()));
    assert_pending!(first.poll());
    let mut second = spawn(service.clone().oneshot(()));
    assert_eq!(kind(&assert_ready_err!(second.poll())), RefusalKind::Full);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    drop(first);
    assert_at_rest(layer.gate());
}

#[tokio::test(start_paused = true)]
async fn b085_an_inner_service_that_is_not_ready_is_no_refusal() {
    let layer = BulkheadLayer::new(10).refuse().at_head();
    let (mut service, mut handle) =
        tower_test::mock::spawn_with(|mock: tower_test::mock::Mock<(), ()>| layer.layer(mock));
    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut call = spawn(service.call(()));
    assert_pending!(call.poll());
    handle.next_request().await.unwrap().1.send_response(());
    assert_ready_ok!(call.poll());
}

#[tokio::test(start_paused = true)]
async fn b182_a_full_bulkhead_is_ready_and_refuses_in_the_call_however_busy_the_inner_service_is() {
    let layer = BulkheadLayer::new(1).refuse().at_head();
    let slot = now(admit(layer.gate()));
    let (mut service, mut handle) =
        tower_test::mock::spawn_with(|mock: tower_test::mock::Mock<String, ()>| layer.layer(mock));
    handle.allow(0);
    assert_ready_ok!(service.poll_ready());
    let mut call = spawn(service.call(String::new()));
    assert_eq!(kind(&assert_ready_err!(call.poll())), RefusalKind::Full);
    give_back(slot);
}

#[tokio::test(start_paused = true)]
async fn b178_readiness_that_fails_costs_no_slot() {
    let layer = BulkheadLayer::new(1).at_head();
    for _ in 0..100 {
        let (mut service, mut handle) =
            tower_test::mock::spawn_with(|mock: tower_test::mock::Mock<String, ()>| layer.layer(mock));
        // One that must wait finds the inner service dead once it has its slot.
        assert_ready_ok!(service.poll_ready());
        let slot = now(admit(layer.gate()));
        let mut call = spawn(service.call(String::new()));
        assert_pending!(call.poll());
        handle.send_error("dead");
        give_back(slot);
        assert_eq!(assert_ready_err!(call.poll()).to_string(), "dead");
        assert_at_rest(layer.gate());
    }
}

#[tokio::test(start_paused = true)]
async fn b088_one_layer_is_one_state_and_two_layers_are_two() {
    async fn peak(layers: [&BulkheadLayer<Bulkhead, crate::gate::Head>; 2]) -> usize {
        let peak = Peak::default();
        let inner = |peak: Peak| {
            service_fn(move |(): ()| {
                let peak = peak.clone();
                async move {
                    peak.stay(SECOND).await;
                    Ok::<_, BoxError>(())
                }
            })
        };
        let services = layers.map(|layer| layer.layer(inner(peak.clone())));
        let calls = (0..8).map(|n| services[n % 2].clone().oneshot(()));
        let served = futures_util::future::join_all(calls).await;
        assert!(served.iter().all(Result::is_ok));
        peak.most()
    }
    let layer = || BulkheadLayer::builder(2).queue(8).build().unwrap().at_head();
    let (one, other) = (layer(), layer());
    assert_eq!(peak([&one, &one]).await, 2, "two services of one layer share its slots");
    assert_eq!(peak([&one, &one.clone()]).await, 2, "a clone of a layer is the same layer");
    assert_eq!(peak([&one, &other]).await, 4);
}

#[tokio::test(start_paused = true)]
async fn b176_clones_that_poll_at_the_same_time_do_not_pass_together() {
    let peak = Peak::default();
    let layer = BulkheadLayer::builder(1).queue(20).max_wait(60 * SECOND).build().unwrap().at_head();
    let inside = peak.clone();
    let service = layer.layer(service_fn(move |(): ()| {
        let peak = inside.clone();
        async move {
            peak.stay(SECOND).await;
            Ok::<_, BoxError>(())
        }
    }));
    let mut clones: Vec<_> = (0..20).map(|_| service.clone()).collect();
    for clone in &mut clones {
        poll_fn(|cx| Service::<()>::poll_ready(clone, cx)).await.unwrap();
    }
    let calls: Vec<_> = clones.iter_mut().map(|clone| clone.call(())).collect();
    assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(peak.most(), 1);
    assert_at_rest(layer.gate());
}

#[tokio::test(start_paused = true)]
async fn w11_a_wait_holds_nothing_of_the_inner_service() {
    // The inner service has one place, which a ready handle holds; a handle that waits above it must let go of it, or
    // its own future could never be served.
    let layer = BulkheadLayer::new(1);
    let inner = service_fn(|_: Request<()>| {
        let (frames, body) = mpsc::unbounded_channel();
        std::mem::forget(frames);
        ready(Ok::<_, BoxError>(streamed(body)))
    });
    let mut service = layer.layer(ConcurrencyLimit::new(inner, 1));
    let streaming = service.ready().await.unwrap().call(Request::new(())).await.unwrap();

    let waiting = service.ready().await.unwrap().call(Request::new(()));
    assert_eq!(layer.gate().queued(), 1);
    let mut other = service.clone();
    let ready = poll_fn(|cx| other.poll_ready(cx).map(|_| ()));
    let timeout = std::pin::pin!(tokio::time::sleep(SECOND));
    let Either::Left(_) = select(std::pin::pin!(ready), timeout).await else {
        panic!("the handle that waits keeps the inner service's only place");
    };
    drop(other);
    drop(streaming);
    let served = tokio::time::timeout(SECOND, waiting).await;
    served.expect("its own handle must not be in its way").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_answers_a_refusal_as_a_response() {
    let layer = BulkheadLayer::new(0).respond();
    let service = layer.layer(service_fn(|_: Request<()>| {
        ready(Ok::<_, Infallible>(Response::new(http_body_util::Full::new(Bytes::new()))))
    }));
    let response = service.oneshot(Request::new(())).await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn a_panic_inside_gives_the_slot_back() {
    let layer = BulkheadLayer::new(1).at_head();
    let service = layer.layer(service_fn(|in_call: bool| {
        assert!(!in_call, "in call");
        async {
            tokio::task::yield_now().await;
            assert!(tokio::runtime::Handle::try_current().is_err(), "in the future");
            Ok::<_, BoxError>(())
        }
    }));
    for in_call in [true, false] {
        let service = service.clone();
        assert!(tokio::spawn(service.oneshot(in_call)).await.unwrap_err().is_panic());
        assert_at_rest(layer.gate());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_after_any_number_of_polls_leaves_nothing_behind() {
    for polls in 0..6 {
        let layer = BulkheadLayer::new(1).at_head();
        let service = layer.layer(service_fn(|(): ()| async {
            tokio::task::yield_now().await;
            Ok::<_, BoxError>(())
        }));
        let slot = now(admit(layer.gate()));
        let mut call = spawn(service.oneshot(()));
        let mut slot = Some(slot);
        for poll in 0..polls {
            if poll == 2 {
                give_back(slot.take().unwrap());
            }
            if call.poll().is_ready() {
                break;
            }
        }
        drop(call);
        slot.into_iter().for_each(give_back);
        assert_at_rest(layer.gate());
        assert_ready!(spawn(async { admit(layer.gate()) }).poll());
    }
}
