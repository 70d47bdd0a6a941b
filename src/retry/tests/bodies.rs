//! What is sent again, and what of the answer passes through.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use http_body::{Body, Frame};
use http_body_util::StreamBody;
use tower::{Layer, ServiceExt, service_fn};

use super::*;

type Frames = Vec<Result<Frame<Bytes>, BoxError>>;

fn frames() -> Frames {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", "7".parse().unwrap());
    vec![
        Ok(Frame::data(Bytes::from_static(b"first, "))),
        Ok(Frame::data(Bytes::from_static(b"second"))),
        Ok(Frame::trailers(trailers)),
    ]
}

fn streaming(frames: Frames, limit: usize) -> Req {
    let body = StreamBody::new(futures_util::stream::iter(frames));
    post().map(|_| CallBody::streaming(body, limit))
}

#[tokio::test(start_paused = true)]
async fn b001_each_attempt_carries_the_same_bytes_and_trailers() {
    let whole = post();
    let trailers = post().map(|body| {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-checksum", "7".parse().unwrap());
        body.with_trailers(trailers)
    });
    for (request, text, trailer) in [
        (whole, "the prompt", false),
        (trailers, "the prompt", true),
        (streaming(frames(), 4096), "first, second", true),
    ] {
        let upstream = Upstream::statuses([500, 429, 200]);
        RetryLayer::new(steady().build().unwrap()).layer(upstream.clone()).oneshot(request).await.unwrap();
        let seen = upstream.seen();
        assert_eq!(seen.len(), 3);
        for attempt in seen.iter() {
            assert_eq!(attempt.body, text);
            assert_eq!(attempt.trailers.as_ref().is_some_and(|t| t["x-checksum"] == "7"), trailer);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b002_a_body_that_nobody_had_polled_is_sent_once_and_whole() {
    let (send, receive) = tokio::sync::mpsc::unbounded_channel();
    let stream = futures_util::stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|frame| (frame, receive))
    });
    let request = post().map(|_| CallBody::streaming(StreamBody::new(stream), 4096));
    let upstream = Upstream::new([Reply::Unread(503), Reply::Says(200, &[])]);
    let call = RetryLayer::new(steady().build().unwrap()).layer(upstream.clone()).oneshot(request);
    let call = tokio::spawn(call);
    tokio::time::sleep(ms(100)).await;
    assert_eq!(upstream.calls(), 1, "refused before the first frame was there");
    for frame in frames() {
        send.send(frame).unwrap();
    }
    drop(send);
    call.await.unwrap().unwrap();
    assert_eq!(upstream.seen()[1].body, "first, second");
}

#[tokio::test(start_paused = true)]
async fn b004_what_cannot_be_copied_is_sent_once_and_its_outcome_passes() {
    for status in [200, 503] {
        let (upstream, told) = (Upstream::statuses([status]), Told::default());
        let policy = steady().copy_with(|_: &Req| None).build().unwrap();
        let service = RetryLayer::new(policy).layer(upstream.clone());
        assert_eq!(service.oneshot(post()).await.unwrap().status(), status);
        assert_eq!(upstream.calls(), 1);
        // A body that outgrew what is kept of it while it was sent.
        let long = vec![Ok(Frame::data(Bytes::from(vec![b'x'; 5000])))];
        let upstream = Upstream::statuses([status]);
        let service = told.layer(steady().build().unwrap()).layer(upstream.clone());
        assert_eq!(service.oneshot(streaming(long, 4096)).await.unwrap().status(), status);
        assert_eq!((upstream.calls(), upstream.seen()[0].body.len()), (1, 5000));
        assert_eq!(told.last(), if status == 200 { "" } else { "1 NotReplayable" });
    }
}

#[tokio::test(start_paused = true)]
async fn b005_a_body_without_a_length_is_retried_where_it_fits() {
    let upstream = Upstream::new([Reply::Fails, Reply::Says(200, &[])]);
    let request = streaming(vec![Ok(Frame::data(Bytes::from(vec![b'x'; 100])))], 64 * 1024);
    assert_eq!(request.body().size_hint().exact(), None);
    RetryLayer::new(steady().build().unwrap()).layer(upstream.clone()).oneshot(request).await.unwrap();
    assert_eq!(upstream.seen().iter().map(|seen| seen.body.len()).collect::<Vec<_>>(), [100, 100]);
}

#[tokio::test(start_paused = true)]
async fn b019_a_body_that_fails_after_a_good_head_reaches_the_caller() {
    let calls = Arc::new(Mutex::new(0));
    let counted = calls.clone();
    let upstream = service_fn(move |_: Req| {
        *counted.lock().unwrap() += 1;
        let frames: Frames = vec![Ok(Frame::data(Bytes::from_static(b"half"))), Err("cut".into())];
        async move { Ok::<_, BoxError>(Response::new(StreamBody::new(futures_util::stream::iter(frames)))) }
    });
    let response = RetryLayer::new(steady().build().unwrap()).layer(upstream).oneshot(post()).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.next().await.unwrap().unwrap().into_data().unwrap(), "half");
    assert_eq!(body.next().await.unwrap().unwrap_err().to_string(), "cut");
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn b026_a_grpc_status_in_a_head_that_nothing_follows_is_the_outcome() {
    let calls = async |status: &'static str, body: &'static [u8]| {
        let calls = Arc::new(Mutex::new(0));
        let counted = calls.clone();
        let upstream = service_fn(move |_: Req| {
            *counted.lock().unwrap() += 1;
            let response = Response::builder().header("content-type", "application/grpc");
            let response = if status.is_empty() { response } else { response.header("grpc-status", status) };
            async move { Ok::<_, BoxError>(response.body(Full::new(Bytes::from_static(body))).unwrap()) }
        });
        let policy = steady().attempts(2).build().unwrap();
        RetryLayer::new(policy).layer(upstream).oneshot(post()).await.unwrap();
        *calls.lock().unwrap()
    };
    assert_eq!(calls("14", b"").await, 2, "trailers only");
    assert_eq!(calls("", b"frame").await, 1, "its trailers come too late for a retry");
    assert_eq!(calls("14", b"frame").await, 1, "above a body it is stray");
    assert_eq!(calls("3", b"").await, 1, "an invalid argument stays one");
}

#[tokio::test(start_paused = true)]
async fn b028_a_streamed_answer_passes_frame_by_frame_and_on_time() {
    let upstream = service_fn(|_: Req| async {
        let frames = futures_util::stream::iter(0..5_u8).then(|n| async move {
            tokio::time::sleep(ms(100)).await;
            Ok::<_, BoxError>(Frame::data(Bytes::copy_from_slice(&[n])))
        });
        Ok::<_, BoxError>(Response::new(StreamBody::new(Box::pin(frames))))
    });
    let start = time::now();
    let response = RetryLayer::new(RetryPolicy::llm()).layer(upstream).oneshot(post()).await.unwrap();
    let mut body = response.into_body();
    let mut arrived = Vec::new();
    while let Some(frame) = body.next().await {
        arrived.push((frame.unwrap().into_data().unwrap()[0], (time::now() - start).as_millis()));
    }
    assert_eq!(arrived, [(0, 100), (1, 200), (2, 300), (3, 400), (4, 500)]);
}

/// A body that says when it is dropped.
struct Guarded(Arc<Mutex<Option<Instant>>>);

impl Body for Guarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(None)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.lock().unwrap().get_or_insert_with(time::now);
    }
}

#[tokio::test(start_paused = true)]
async fn b020_the_failed_response_is_gone_before_the_wait() {
    let dropped = Arc::new(Mutex::new(None));
    let (guard, first) = (dropped.clone(), Arc::new(Mutex::new(true)));
    let upstream = service_fn(move |_: Req| {
        let failing = std::mem::take(&mut *first.lock().unwrap());
        let mut response = Response::new(Guarded(if failing { guard.clone() } else { Arc::default() }));
        *response.status_mut() = if failing { 503 } else { 200 }.try_into().unwrap();
        async move { Ok::<_, BoxError>(response) }
    });
    let start = time::now();
    RetryLayer::new(steady().build().unwrap()).layer(upstream).oneshot(post()).await.unwrap();
    assert_eq!(*dropped.lock().unwrap(), Some(start));
    assert_eq!(time::now() - start, ms(500));
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_of_a_body_is_free_once_the_answer_is_good() {
    #[derive(Clone)]
    struct Held(#[expect(dead_code, reason = "its count is what is looked at")] Arc<()>);

    let kept = Arc::new(());
    let mut request = post();
    request.extensions_mut().insert(Held(kept.clone()));
    let mut call = Box::pin(
        RetryLayer::new(RetryPolicy::llm())
            .layer(service_fn(async |_: Req| Ok::<_, BoxError>(answer(200, &[]))))
            .oneshot(request),
    );
    assert!(call.as_mut().await.is_ok());
    assert_eq!(Arc::strong_count(&kept), 1, "although the future is still there");
}
