//! Reading the body as a part of the attempt.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http_body::Frame;
use http_body_util::StreamBody;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use super::*;
use crate::bulkhead::BulkheadLayer;
use crate::call::{Outcome, OutcomeLayer};

type Frames = StreamBody<BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;

const PING: &str = ": ping\n\n";
const ROLE: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const CONTENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const ERROR: &str = "data: {\"error\":{\"type\":\"server_error\",\"message\":\"no\"}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
/// The connection fails here.
const CUT: &str = "cut";
/// Nothing more comes.
const SILENCE: &str = "silence";

fn body(script: &'static [&'static str]) -> Frames {
    let frames = stream::iter(script.iter()).then(|text| async move {
        match *text {
            CUT => Err("connection reset".into()),
            SILENCE => std::future::pending().await,
            text => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
        }
    });
    StreamBody::new(frames.boxed())
}

/// An upstream whose answers are streams of these frames, the last one for ever; and how often it was asked.
#[derive(Clone)]
struct Streams {
    script: &'static [&'static [&'static str]],
    kind: &'static str,
    calls: Arc<Mutex<usize>>,
}

impl Streams {
    fn new(script: &'static [&'static [&'static str]]) -> Self {
        Self { script, kind: "text/event-stream", calls: Arc::default() }
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }

    fn service(
        &self,
    ) -> impl Service<Req, Response = Response<Frames>, Error = BoxError, Future: Send> + Clone + use<> {
        let streams = self.clone();
        service_fn(move |_: Req| {
            let mut calls = streams.calls.lock().unwrap();
            let script = streams.script[(*calls).min(streams.script.len() - 1)];
            *calls += 1;
            let response = Response::builder().header("content-type", streams.kind);
            async move { Ok::<_, BoxError>(response.body(body(script)).unwrap()) }
        })
    }
}

/// All that the caller gets to see; `cut` where its body fails.
async fn seen<B>(response: Response<B>) -> String
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let mut body = response.into_body();
    let mut all = String::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => all.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap()),
            Err(_) => all.push_str(CUT),
        }
    }
    all
}

/// What the caller sees of a call, with nobody below who reads responses and with somebody.
async fn through(hold: HoldLayer, streams: Streams) -> (String, usize) {
    let layer = RetryLayer::new(steady().build().unwrap()).hold(hold);
    let bare = layer.layer(streams.service()).oneshot(post()).await.unwrap();
    let result = (seen(bare).await, streams.calls());
    let again = Streams { calls: Arc::default(), ..streams };
    let service = layer.layer(OutcomeLayer::new().layer(again.service()));
    let read = service.oneshot(post()).await.unwrap();
    assert_eq!((seen(read).await, again.calls()), result, "read by a layer below");
    result
}

#[tokio::test(start_paused = true)]
async fn an_error_a_cut_or_an_end_before_content_is_a_failed_attempt() {
    let good = [PING, ROLE, CONTENT, DONE].concat();
    for bad in [&[PING, ROLE, ERROR][..], &[PING, CUT], &[ROLE, DONE], &[ROLE]] {
        let script: &'static _ = Box::leak(Box::new([bad, &[PING, ROLE, CONTENT, DONE]]));
        let answer = through(HoldLayer::until_content(), Streams::new(script)).await;
        assert_eq!(answer, (good.clone(), 2), "{bad:?}: nothing of it is seen, and all of the other");
    }
}

#[tokio::test(start_paused = true)]
async fn b019_b028_what_fails_after_content_reaches_the_caller() {
    for bad in [&[ROLE, CONTENT, ERROR][..], &[ROLE, CONTENT, CUT]] {
        let script: &'static _ = Box::leak(Box::new([bad]));
        let answer = through(HoldLayer::until_content(), Streams::new(script)).await;
        assert_eq!(answer, (bad.concat(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_is_passed_on_as_it_failed() {
    let answer = through(HoldLayer::until_content(), Streams::new(&[&[PING, CUT]])).await;
    assert_eq!(answer, ([PING, CUT].concat(), 3));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_bounded_in_bytes_and_time() {
    let pings: &'static [&'static str] = Box::leak(vec![PING; 2_000].into_boxed_slice());
    let script: &'static _ = Box::leak(Box::new([pings]));
    let layer = RetryLayer::new(RetryPolicy::llm()).until_content();
    let streams = Streams::new(script);
    let response = layer.layer(streams.service()).oneshot(post()).await.unwrap();
    assert_eq!((seen(response).await.len(), streams.calls()), (PING.len() * 2_000, 1), "64 KiB with frames");

    let streams = Streams::new(&[&[PING, SILENCE]]);
    let start = time::now();
    let response = layer.layer(streams.service()).oneshot(post()).await.unwrap();
    assert_eq!((time::now() - start, streams.calls()), (secs(30), 1));
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), PING);
}

#[tokio::test(start_paused = true)]
async fn b019_a_whole_response_that_is_cut_off_is_a_failed_attempt() {
    let mut streams = Streams::new(&[&["{\"half\":", CUT], &["{\"half\":", "1}"]]);
    streams.kind = "application/json";
    assert_eq!(through(HoldLayer::whole(1_000), streams).await, ("{\"half\":1}".to_owned(), 2));
    // A stream too, though its content has begun.
    let streams = Streams::new(&[&[CONTENT, ERROR], &[CONTENT, DONE]]);
    assert_eq!(through(HoldLayer::whole(1_000), streams).await, ([CONTENT, DONE].concat(), 2));
}

#[tokio::test(start_paused = true)]
async fn a_response_over_the_limit_passes_as_it_comes() {
    let streams = Streams::new(&[&["0123456789", "0123456789", CUT]]);
    assert_eq!(through(HoldLayer::whole(15), streams).await, ("01234567890123456789cut".to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn b020_a_response_that_failed_while_it_was_held_holds_nothing_during_the_wait() {
    let bulkhead = BulkheadLayer::new(1);
    let slots = bulkhead.gate().clone();
    let streams = Streams::new(&[&[PING, ERROR], &[CONTENT]]);
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(steady().build().unwrap()).until_content())
        .layer(bulkhead)
        .service(streams.service());
    let mut call = tokio_test::task::spawn(service.oneshot(post()));
    assert!(call.poll().is_pending());
    assert_eq!((slots.in_flight(), streams.calls()), (0, 1), "it waits");
    tokio::time::advance(ms(600)).await;
    assert!(call.is_woken());
    let Poll::Ready(response) = call.poll() else { panic!("the second attempt answers at once") };
    assert_eq!(slots.in_flight(), 1, "to the end of the body that the caller reads");
    drop(response);
    assert_eq!(slots.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_head_and_a_body_that_nobody_can_read_are_not_held() {
    let unread = Streams { kind: "text/plain", ..Streams::new(&[&["a", SILENCE]]) };
    let layer = RetryLayer::new(steady().build().unwrap()).until_content();
    let response = layer.layer(unread.service()).oneshot(post()).await.unwrap();
    assert!(Outcome::of(&response).is_none());

    let failing = service_fn(|_: Req| async {
        Ok::<_, BoxError>(Response::builder().status(400).body(body(&[SILENCE])).unwrap())
    });
    assert_eq!(layer.layer(failing).oneshot(post()).await.unwrap().status(), 400);
}

#[tokio::test(start_paused = true)]
async fn dropped_after_any_number_of_polls_nothing_is_held() {
    for polls in 0..8 {
        let bulkhead = BulkheadLayer::new(1);
        let slots = bulkhead.gate().clone();
        let streams = Streams::new(&[&[PING, SILENCE]]);
        let service = ServiceBuilder::new()
            .layer(RetryLayer::new(RetryPolicy::llm()).until_content())
            .layer(bulkhead)
            .service(streams.service());
        let mut call = tokio_test::task::spawn(service.oneshot(post()));
        for _ in 0..polls {
            assert!(call.poll().is_pending());
        }
        drop(call);
        assert_eq!(slots.in_flight(), 0, "after {polls} polls");
    }
}
