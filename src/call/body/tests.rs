use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full, StreamBody};
use tokio::sync::mpsc;
use tokio_test::{assert_pending, assert_ready, task};

use super::*;

fn data(text: &'static str) -> Frame<Bytes> {
    Frame::data(Bytes::from_static(text.as_bytes()))
}

fn trailers() -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("checksum"), http::HeaderValue::from_static("7"))])
}

/// A body that counts how many of its frames were asked for.
struct Script {
    frames: VecDeque<Frame<Bytes>>,
    polled: Arc<AtomicUsize>,
}

impl Script {
    fn new(frames: impl IntoIterator<Item = Frame<Bytes>>) -> (Self, Arc<AtomicUsize>) {
        let polled = Arc::<AtomicUsize>::default();
        (Self { frames: frames.into_iter().collect(), polled: Arc::clone(&polled) }, polled)
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.polled.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(self.frames.pop_front().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.frames.iter().filter_map(Frame::data_ref).map(Bytes::len).sum::<usize>();
        SizeHint::with_exact(left as u64)
    }
}

/// All frames, with what the body says of itself checked before each.
async fn frames(mut body: CallBody) -> Result<(Vec<Bytes>, Option<HeaderMap>), BoxError> {
    let (mut all, mut trailers) = (Vec::new(), None);
    loop {
        let (hint, over) = (body.size_hint(), body.is_end_stream());
        let Some(frame) = body.frame().await else { break };
        assert!(!over, "a frame behind the end");
        match frame?.into_data() {
            Ok(data) => {
                assert!(hint.upper().is_none_or(|upper| upper >= data.len() as u64), "{hint:?}");
                let after = body.size_hint();
                assert!(hint.lower() <= after.lower() + data.len() as u64, "{hint:?} {after:?}");
                all.push(data);
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    assert!(body.is_end_stream());
    Ok((all, trailers))
}

async fn text(body: CallBody) -> Result<String, BoxError> {
    Ok(frames(body).await?.0.iter().map(|data| std::str::from_utf8(data).unwrap()).collect())
}

#[tokio::test]
async fn b001_a_second_attempt_carries_the_same_bytes_in_every_framing() {
    let input = "twenty-six bytes of a body";
    let whole = CallBody::from(input);
    let full = CallBody::streaming(Full::new(Bytes::from(input)), 1 << 10);
    let (two, _) = Script::new([data("twenty-six "), data("bytes of a body")]);
    let (with, _) = Script::new([data(input), Frame::trailers(trailers())]);
    let with = CallBody::streaming(with, 1 << 10);
    for kept in [whole, full, CallBody::streaming(two, 1 << 10), with.clone()] {
        let (first, second) = (kept.clone(), kept.clone());
        assert_eq!(text(first).await.unwrap(), input);
        assert!(kept.is_replayable());
        assert_eq!(text(second).await.unwrap(), input);
    }
    assert_eq!(frames(with).await.unwrap().1, Some(trailers()));
}

#[tokio::test]
async fn b002_each_attempt_gets_every_byte_once_also_when_the_first_never_looked() {
    let (send, receive) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Infallible>>();
    let stream =
        futures_util::stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)));
    let kept = CallBody::streaming(StreamBody::new(Box::pin(stream)), 1 << 10);
    drop(kept.clone());
    let mut second = task::spawn(text(kept.clone()));
    assert_pending!(second.poll());
    send.send(Ok(data("first "))).unwrap();
    assert_pending!(second.poll());
    send.send(Ok(data("second"))).unwrap();
    drop(send);
    assert!(second.is_woken());
    assert_eq!(assert_ready!(second.poll()).unwrap(), "first second");
    assert_eq!(text(kept).await.unwrap(), "first second");
}

#[tokio::test]
async fn b005_an_unknown_length_is_recorded_up_to_the_limit() {
    let small =
        StreamBody::new(futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(vec![
            7;
            100
        ])))]));
    let kept = CallBody::streaming(small, 64 << 10);
    assert_eq!(kept.size_hint().upper(), None);
    assert_eq!(frames(kept.clone()).await.unwrap().0.concat(), vec![7; 100]);
    assert!(kept.is_replayable());
    assert_eq!(frames(kept).await.unwrap().0.concat(), vec![7; 100]);
}

#[tokio::test]
async fn what_is_over_the_limit_is_sent_once_and_then_says_no() {
    let (script, _) = Script::new([data("0123456789"), data("0123456789")]);
    let kept = CallBody::streaming(script, 10 + 64 + 5);
    assert!(kept.is_replayable(), "nothing is lost yet");
    assert_eq!(text(kept.clone()).await.unwrap(), "01234567890123456789");
    assert!(!kept.is_replayable());
    let error = text(kept).await.unwrap_err();
    assert!(error.to_string().contains("cannot be sent again"), "{error}");
}

#[tokio::test]
async fn a_body_that_nobody_could_send_again_is_not_kept() {
    let big = Bytes::from(vec![1; 1_000]);
    let (script, _) = Script::new([Frame::data(big.clone()), data("end")]);
    let mut only = CallBody::streaming(script, 1 << 20);
    let kept = only.clone();
    drop(only.frame().await.unwrap().unwrap());
    assert!(!big.is_unique(), "it may be sent again");
    drop(kept);
    assert!(big.is_unique(), "the response has committed: the memory is free");
    assert!(!only.is_replayable());
    assert_eq!(text_of_rest(&mut only).await, "end");
}

async fn text_of_rest(body: &mut CallBody) -> String {
    let rest = body.collect().await.unwrap().to_bytes();
    String::from_utf8(rest.to_vec()).unwrap()
}

#[tokio::test]
async fn it_is_never_read_ahead_of_who_sends_it() {
    let (script, polled) = Script::new([data("a"), data("b"), data("c")]);
    let kept = CallBody::streaming(script, 1 << 10);
    let mut first = kept.clone();
    assert_eq!(polled.load(Ordering::Relaxed), 0);
    first.frame().await.unwrap().unwrap();
    assert_eq!(polled.load(Ordering::Relaxed), 1);
    // The attempt failed half-way: the next one replays, then goes on reading.
    drop(first);
    assert_eq!(text(kept).await.unwrap(), "abc");
}

#[tokio::test]
async fn two_that_send_at_once_both_get_every_frame() {
    let (send, receive) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Infallible>>();
    let stream =
        futures_util::stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)));
    let one = CallBody::streaming(StreamBody::new(Box::pin(stream)), 1 << 10);
    let other = one.clone();
    let (mut one, mut other) = (task::spawn(text(one)), task::spawn(text(other)));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    send.send(Ok(data("x"))).unwrap();
    assert!(one.is_woken() && other.is_woken());
    assert_pending!(other.poll());
    assert_pending!(one.poll());
    drop(other);
    send.send(Ok(data("y"))).unwrap();
    drop(send);
    assert_eq!(assert_ready!(one.poll()).unwrap(), "xy");
}

#[tokio::test]
async fn an_error_reaches_who_reads_and_nobody_gets_a_part_for_the_whole() {
    let stream = futures_util::stream::iter([Ok(data("a")), Err("cut")]);
    let kept = CallBody::streaming(StreamBody::new(stream), 1 << 10);
    let mut first = kept.clone();
    first.frame().await.unwrap().unwrap();
    assert_eq!(first.frame().await.unwrap().unwrap_err().to_string(), "cut");
    assert!(first.frame().await.is_none());
    assert!(!kept.is_replayable());
    assert!(text(kept).await.is_err());
}

#[tokio::test]
async fn a_source_that_panics_fails_the_body_for_everybody() {
    struct Panics;
    impl Body for Panics {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("on purpose")
        }
    }
    let kept = CallBody::streaming(Panics, 1 << 10);
    let first = kept.clone();
    assert!(tokio::spawn(text(first)).await.is_err());
    assert!(!kept.is_replayable());
    assert!(text(kept).await.is_err());
}

#[tokio::test]
async fn empty_frames_are_bounded_too() {
    let stream = futures_util::stream::iter((0..100).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::new()))));
    let kept = CallBody::streaming(StreamBody::new(stream), 64 * 99);
    assert_eq!(text(kept.clone()).await.unwrap(), "");
    assert!(!kept.is_replayable());
}

#[tokio::test]
async fn whole_bytes_are_truthful_from_the_start() {
    let empty = CallBody::empty();
    assert!(empty.is_end_stream());
    assert_eq!(empty.size_hint().exact(), Some(0));
    let body = CallBody::from("abc").with_trailers(trailers());
    assert_eq!(body.size_hint().exact(), Some(3));
    assert_eq!(frames(body).await.unwrap(), (vec![Bytes::from("abc")], Some(trailers())));
    let only = CallBody::empty().with_trailers(trailers());
    assert!(!only.is_end_stream());
    assert_eq!(frames(only).await.unwrap().1, Some(trailers()));
}

#[test]
fn it_can_be_sent_shared_and_moved_and_shows_no_content() {
    fn check<T: Send + Sync + Unpin + Clone + 'static>() {}
    check::<CallBody>();
    let shown = format!("{:?}", CallBody::from("secret prompt"));
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn another_name_of_another_length_can_be_replaced_again() {
    let body = CallBody::from(r#"{"model":"large","n":1}"#);
    let other = body.with_model("a-longer-name").unwrap();
    assert_eq!(other.bytes().unwrap(), r#"{"model":"a-longer-name","n":1}"#);
    assert_eq!(other.with_model("x").unwrap().bytes().unwrap(), r#"{"model":"x","n":1}"#);
    assert_eq!(body.bytes().unwrap(), r#"{"model":"large","n":1}"#, "the original stays");
    assert!(CallBody::from("{}").with_model("x").is_none());
}

#[tokio::test]
async fn a_body_that_fails_is_the_callers_fault() {
    use crate::refusal::Failure;
    use crate::{Class, Classify, StatusClassifier};
    let frames = [Ok(data("half")), Err(BoxError::from("cut"))];
    let mut body = CallBody::streaming(StreamBody::new(futures_util::stream::iter(frames)), 0);
    assert!(body.frame().await.unwrap().is_ok());
    let error = body.frame().await.unwrap().unwrap_err();
    assert!(error.is_of_the_request());
    let class = |error: &BoxError| {
        let result: Result<&http::Response<()>, _> = Err(error);
        StatusClassifier.classify(result).class()
    };
    assert_eq!(class(&error), Class::Invalid);
    // Also below what a client makes of it; and nothing else is.
    let told: BoxError = Box::new(std::io::Error::other(error));
    assert_eq!(class(&told), Class::Invalid);
    assert_eq!(class(&BoxError::from("reset")), Class::Transient);
}
