use std::convert::Infallible;
use std::task::Waker;

use futures_util::stream;
use http::HeaderMap;
use http_body_util::{BodyExt, Full, StreamBody};

use super::*;

fn response(
    frames: &[&'static str],
) -> Response<impl Body<Data = Bytes, Error = Infallible> + fmt::Debug + use<>> {
    let frame = |text: &&'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
    let frames: Vec<_> = frames.iter().map(frame).collect();
    let response = Response::builder().header("content-type", "text/event-stream; charset=utf-8");
    response.body(StreamBody::new(stream::iter(frames))).unwrap()
}

fn poll<B: Body<Data = Bytes>>(hold: &mut Hold<B>) -> Poll<Held> {
    hold.poll(&mut Context::from_waker(Waker::noop()))
}

const BOUNDS: Bounds = Bounds { bytes: 1_000, until: None };
const CONTENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";

#[test]
fn what_is_there_at_once_is_not_held_for_its_content() {
    let plain = Response::new(Full::new(Bytes::from_static(b"{}")));
    assert!(
        Hold::new(plain, Goal::FirstContent, BOUNDS).is_err(),
        "nobody reads it: nothing could be learned"
    );
    let empty = Response::new(Full::new(Bytes::new()));
    assert!(Hold::new(empty, Goal::End, BOUNDS).is_err());
}

#[tokio::test]
async fn frames_that_were_held_come_first_in_order_and_the_hints_stay_true() {
    let mut hold =
        Hold::new(response(&[": ping\n\n", CONTENT, "data: [DONE]\n\n"]), Goal::FirstContent, BOUNDS)
            .unwrap();
    assert_eq!(poll(&mut hold), Poll::Ready(Held::Reached));
    let mut body = Box::pin(hold.into_response().into_body());
    assert_eq!(body.size_hint().lower(), (8 + CONTENT.len()) as u64);
    assert!(!body.is_end_stream());
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        all.push(frame.unwrap().into_data().unwrap());
    }
    assert_eq!(all, [": ping\n\n", CONTENT, "data: [DONE]\n\n"]);
}

#[test]
fn an_error_beside_the_first_content_is_still_got_away_from() {
    let both = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"error\":{\"code\":\"overloaded\"}}\n\n";
    let mut hold = Hold::new(response(&[both]), Goal::FirstContent, BOUNDS).unwrap();
    assert!(matches!(poll(&mut hold), Poll::Ready(Held::Failed(_))));
}

#[test]
fn what_is_kept_is_kept_whole_or_not_at_all() {
    let mut hold = Hold::new(response(&["one", "two"]), Goal::Keep, BOUNDS).unwrap();
    assert_eq!((poll(&mut hold), hold.is_whole()), (Poll::Ready(Held::Reached), true));
    let long: Vec<_> = std::iter::repeat_n("x", 50).collect();
    let mut hold = Hold::new(response(&long), Goal::Keep, BOUNDS).unwrap();
    assert_eq!((poll(&mut hold), hold.is_whole()), (Poll::Ready(Held::Full), false));
}

#[test]
fn a_stream_of_an_api_that_nobody_knows_is_not_called_a_failure() {
    let mut hold = Hold::new(response(&["data: hello\n\n"]), Goal::FirstContent, BOUNDS).unwrap();
    assert_eq!(poll(&mut hold), Poll::Ready(Held::Reached));
}

#[tokio::test]
async fn b154_what_was_held_has_no_exact_size_while_its_trailers_are_to_come() {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames =
        [Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"one"))), Ok(Frame::trailers(trailers))];
    let mut response = Response::new(StreamBody::new(stream::iter(frames)));
    response.extensions_mut().insert(Arc::new(Outcome::new(crate::time::now())));
    let mut hold = Hold::new(response, Goal::End, BOUNDS).unwrap();
    assert_eq!(poll(&mut hold), Poll::Ready(Held::Reached));
    assert!(hold.is_whole());
    let mut body = Box::pin(hold.into_response().into_body());
    assert_eq!((body.size_hint().lower(), body.size_hint().exact()), (3, None));
    body.frame().await.unwrap().unwrap();
    assert!(!body.is_end_stream() && body.size_hint().exact().is_none(), "a server would stop before them");
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert!(body.is_end_stream());
}
