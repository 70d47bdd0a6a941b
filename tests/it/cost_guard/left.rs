//! Streams that are cut, and streams that are read on when their caller has left.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use seawall::call::OutcomeLayer;
use seawall::cost_guard::{Budget, Usd, Window};
use seawall::{BoxError, RefusalKind};
use tokio::sync::mpsc;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{Log, Upstream, builder, call, guard, kind, request, sse, sums, tokens, used};

const CONTENT: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;

/// As Gemini, xAI and servers with continuous usage stream it.
fn so_far(output: u64) -> String {
    let choices = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}],"#;
    format!("{choices}{}", used(10, output).trim_start_matches('{'))
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_used_up_its_reservation_is_cut() {
    let log = Log::default();
    let budget = Budget::new(Usd::dollars(1), Window::TOTAL);
    let layer = builder().budget(budget).observer(log.observer()).build().unwrap();
    let (gate, layer) = (layer.gate().clone(), layer.cut_streams());
    let events: Vec<String> = [50, 90, 91, 2_000].into_iter().map(so_far).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let upstream = Upstream::answering([Ok(sse(&events))]);
    // 10 in and 90 out are reserved.
    let response = layer.layer(upstream.service()).oneshot(request(call(10, 90))).await.unwrap();
    let outcome = seawall::call::Outcome::of(&response).unwrap().clone();
    let mut body = response.into_body();
    for event in &events[..3] {
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(data, format!("data: {event}\n\n"), "what has come is paid for");
    }
    assert_eq!(sums(&gate), (tokens(101), Usd::ZERO), "it is settled already");
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(kind(&error), RefusalKind::BudgetExhausted);
    assert_eq!(outcome.verdict().unwrap().class(), seawall::Class::Refused, "no fault of the upstream");
    assert!(body.frame().await.is_none());
    assert!(log.lines().contains(&"refused budget_exhausted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_within_its_reservation_or_at_its_end_is_not_cut() {
    for events in [[so_far(50), so_far(90)], [CONTENT.to_owned(), used(10, 5_000)]] {
        let layer = guard(Usd::dollars(1));
        let (gate, layer) = (layer.gate().clone(), layer.cut_streams());
        let last = [events[0].as_str(), &format!("{}\n\ndata: [DONE]", events[1])];
        let upstream = Upstream::answering([Ok(sse(&last))]);
        let response = layer.layer(upstream.service()).oneshot(request(call(10, 90))).await.unwrap();
        response.into_body().collect().await.unwrap();
        assert_eq!(sums(&gate).1, Usd::ZERO);
    }
    // A guard that only looks on cuts nothing.
    let budget = Budget::new(Usd::dollars(1), Window::TOTAL);
    let layer = builder().budget(budget).observe_only().build().unwrap().cut_streams();
    let upstream = Upstream::answering([Ok(sse(&[&so_far(5_000), &so_far(6_000)]))]);
    let response = layer.layer(upstream.service()).oneshot(request(call(10, 90))).await.unwrap();
    response.into_body().collect().await.unwrap();
}

type Sender = mpsc::UnboundedSender<Result<Frame<Bytes>, BoxError>>;

/// A body that the test sends, and that is gone when its sender is closed.
fn open_body() -> (Sender, StreamBody<impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let frames = unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
    (sender, StreamBody::new(frames))
}

#[expect(clippy::unnecessary_wraps, reason = "as a body's frames are")]
fn event(data: &str) -> Result<Frame<Bytes>, BoxError> {
    Ok(Frame::data(Bytes::from(format!("data: {data}\n\n"))))
}

/// An upstream whose bodies are sent by hand.
fn upstream(
    senders: mpsc::UnboundedSender<Sender>,
) -> impl Service<
    Request<()>,
    Response = Response<impl http_body::Body<Data = Bytes, Error = BoxError> + Send + use<>>,
    Error = BoxError,
    Future: Send,
> + Clone
+ use<> {
    OutcomeLayer::new().layer(service_fn(move |_: Request<()>| {
        let senders = senders.clone();
        async move {
            // Its head takes a while.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (sender, body) = open_body();
            senders.send(sender).unwrap();
            Ok::<_, BoxError>(
                Response::builder().header("content-type", "text/event-stream").body(body).unwrap(),
            )
        }
    }))
}

const MINUTE: Duration = Duration::from_secs(60);

async fn settle_down() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn b134_a_call_that_was_left_is_read_on_and_charged_by_its_usage() {
    for leave_before_head in [false, true] {
        let layer = guard(Usd::dollars(1));
        let gate = layer.gate().clone();
        let layer = layer.drain(NonZeroUsize::MIN, MINUTE);
        let (senders, mut opened) = mpsc::unbounded_channel();
        let mut future = Box::pin(layer.layer(upstream(senders)).oneshot(request(call(1_000, 1_000))));
        let sender = if leave_before_head {
            assert!(crate::support::poll_once(future.as_mut()).is_pending());
            drop(future);
            opened.recv().await.unwrap()
        } else {
            let mut body = future.await.unwrap().into_body();
            let sender = opened.recv().await.unwrap();
            sender.send(event(CONTENT)).unwrap();
            body.frame().await.unwrap().unwrap();
            drop(body);
            sender
        };
        settle_down().await;
        assert_eq!((layer.running(), sums(&gate).1), (1, tokens(2_000)), "held while it is read");
        sender.send(event(&used(10, 7))).unwrap();
        sender.send(event("[DONE]")).unwrap();
        settle_down().await;
        assert_eq!((layer.running(), sums(&gate)), (0, (tokens(17), Usd::ZERO)), "{leave_before_head}");
        assert!(sender.is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_read_on_for_too_long_is_charged_by_the_rule() {
    let layer = guard(Usd::dollars(1));
    let gate = layer.gate().clone();
    let layer = layer.drain(NonZeroUsize::MIN, MINUTE);
    let (senders, mut opened) = mpsc::unbounded_channel();
    let response = layer.layer(upstream(senders)).oneshot(request(call(1_000, 1_000))).await.unwrap();
    let sender = opened.recv().await.unwrap();
    drop(response);
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(!sender.is_closed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(sender.is_closed());
    assert_eq!((layer.running(), sums(&gate)), (0, (tokens(2_000), Usd::ZERO)));
}

#[tokio::test(start_paused = true)]
async fn b185_no_more_calls_are_read_on_than_allowed() {
    let layer = guard(Usd::dollars(1));
    let gate = layer.gate().clone();
    let layer = layer.drain(8.try_into().unwrap(), MINUTE);
    let (senders, mut opened) = mpsc::unbounded_channel();
    let service = layer.layer(upstream(senders));
    let mut bodies = Vec::new();
    for _ in 0..100 {
        let response = service.clone().oneshot(request(call(1_000, 1_000))).await.unwrap();
        bodies.push((opened.recv().await.unwrap(), response.into_body()));
    }
    let senders: Vec<Sender> = bodies.into_iter().map(|(sender, _body)| sender).collect();
    settle_down().await;
    let alive = || senders.iter().filter(|sender| !sender.is_closed()).count();
    assert_eq!((alive(), layer.running()), (8, 8));
    assert_eq!(sums(&gate), (tokens(92 * 2_000), tokens(8 * 2_000)), "the others are charged by the rule");
    for sender in senders.iter().filter(|sender| !sender.is_closed()) {
        sender.send(event(&used(10, 7))).unwrap();
        sender.send(event("[DONE]")).unwrap();
    }
    settle_down().await;
    assert_eq!((alive(), layer.running()), (0, 0));
    assert_eq!(sums(&gate), (tokens(92 * 2_000 + 8 * 17), Usd::ZERO), "each is settled once");
    // There is room again; and what was read to its end is not read on.
    let response = service.clone().oneshot(request(call(1_000, 1_000))).await.unwrap();
    let sender = opened.recv().await.unwrap();
    sender.send(event(&used(10, 7))).unwrap();
    drop(sender);
    response.into_body().collect().await.unwrap();
    assert_eq!((layer.running(), sums(&gate).1), (0, Usd::ZERO));
}
