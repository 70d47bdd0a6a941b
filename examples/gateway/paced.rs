//! Callers over HTTP/2 who do not read what they asked for.

use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use seawall::BoxError;
use tokio::sync::{mpsc, oneshot};

/// A body that is given up where a frame of it is not taken in time. Over HTTP/2 a caller holds back one stream alone: no
/// time-out of the connection sees that, and its body is not even polled.
pub(crate) fn paced(body: Body, unread: Duration) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    let (complete, completed) = oneshot::channel();
    tokio::spawn(async move {
        let mut body = pin!(body);
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = sender.closed() => return,
            };
            let Some(frame) = frame else {
                // Who asks has left where nobody hears it.
                let _ = complete.send(());
                return;
            };
            let over = frame.is_err();
            let sent = sender.send_timeout(frame.map_err(BoxError::from), unread).await;
            if over || sent.is_err() {
                return;
            }
        }
    });
    let frames = stream::unfold(Some((receiver, completed)), |state| async move {
        let (mut receiver, completed) = state?;
        match receiver.recv().await {
            Some(Ok(frame)) => Some((Ok(frame), Some((receiver, completed)))),
            Some(Err(error)) => Some((Err(error), None)),
            None if completed.await.is_ok() => None,
            // What was given up is no whole answer.
            None => Some((Err(BoxError::from("the answer was not read in time")), None)),
        }
    });
    Body::new(StreamBody::new(frames))
}
