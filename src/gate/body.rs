//! A body that holds a permit to its end.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::call::Answer;
use crate::gate::content::{Content, ContentProj};
use crate::gate::{End, Held, Permit};
use crate::provider::grpc::is_grpc;

/// A response whose body can be wrapped.
///
/// Implemented for [`http::Response`]. For a library's own streaming response, give the stream as the body:
/// [`GateBody`] is a [`Stream`] wherever the body is one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a response with a body",
    label = "this layer holds its permit to the end of the response's body",
    note = "for a response without a body build the layer with `.at_head()`",
    note = "for your own streaming response implement `seawall::gate::WithBody`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait WithBody: Answer {
    /// The body.
    type Body;
    /// The same response with another body.
    type Map<B>;

    /// Replaces the body.
    fn map_body<B>(self, wrap: impl FnOnce(Self::Body) -> B) -> Self::Map<B>;

    /// How many bytes follow, where that is known; zero where none may. Whoever reads the body may stop there without
    /// asking for its end.
    fn length(&self) -> Option<u64> {
        None
    }
}

impl<B: Body> WithBody for Response<B> {
    type Body = B;
    type Map<T> = Response<T>;

    fn map_body<T>(self, wrap: impl FnOnce(B) -> T) -> Response<T> {
        self.map(wrap)
    }

    fn length(&self) -> Option<u64> {
        let bodiless = self.status().is_informational()
            || matches!(self.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if bodiless || self.body().is_end_stream() {
            return Some(0);
        }
        if is_grpc(self.headers()) {
            // Its status is in the trailers: the last byte of its data is not its end.
            return None;
        }
        // A server stops at the length that it announced, whatever the body itself knows of its size.
        let announced = self.headers().get(CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
        match (self.body().size_hint().exact(), announced) {
            (Some(exact), Some(announced)) => Some(exact.min(announced)),
            (one, other) => one.or(other),
        }
    }
}

pin_project! {
    /// A body that holds a permit until it ends, fails or is dropped. Frames, trailers and hints pass unchanged.
    pub struct GateBody<B, P: Permit> {
        // Declared, and so dropped, before the permit that it was admitted by.
        #[pin]
        content: Content<B>,
        // Bytes still to come, where their number is known.
        left: Option<u64>,
        held: Held<P>,
    }
}

impl<B, P: Permit> GateBody<B, P> {
    pub(super) fn holding(body: B, length: Option<u64>, held: Held<P>) -> Self {
        Self { content: Content::Inner { body }, left: length, held }
    }

    /// The permit that is still held, and what is read of the response.
    pub(crate) fn held(&self) -> Option<(&P, &std::sync::Arc<crate::call::Outcome>)> {
        self.held.watched()
    }

    pub(super) fn text(text: Bytes) -> Self {
        Self { content: Content::text(text), left: None, held: Held::none() }
    }
}

/// An empty body that holds nothing: layers of others that answer in the place of a service ask for one.
impl<B, P: Permit> Default for GateBody<B, P> {
    fn default() -> Self {
        Self::text(Bytes::new())
    }
}

impl<B, P> Body for GateBody<B, P>
where
    B: Body,
    B::Data: From<Bytes>,
    P: Permit,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let mut body = match this.content.project() {
            ContentProj::Text { text } => {
                return Poll::Ready(text.take().map(|text| Ok(Frame::data(text.into()))));
            }
            ContentProj::Inner { body } => body,
        };
        let polled = this.held.running(End::Broken, || body.as_mut().poll_frame(cx));
        let frame = ready!(polled);
        match &frame {
            None => this.held.settle(End::Complete),
            Some(Err(_)) => this.held.settle(End::Broken),
            Some(Ok(frame)) => {
                let passed = frame.data_ref().map(|data| data.remaining() as u64);
                if is_last(passed, this.left) || (this.held.is_held() && body.is_end_stream()) {
                    this.held.settle(End::Complete);
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// Whether nothing comes after this frame: it carried the last bytes of a known number, or it was no data at all but
/// trailers, which end every body.
fn is_last(passed: Option<u64>, left: &mut Option<u64>) -> bool {
    match (passed, left) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(passed), Some(left)) => {
            *left = left.saturating_sub(passed);
            *left == 0
        }
    }
}

/// For own streaming responses: an item that is `Err` breaks the stream.
impl<B, P, T, E> Stream for GateBody<B, P>
where
    B: Stream<Item = Result<T, E>>,
    P: Permit,
{
    type Item = Result<T, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let body = match this.content.project() {
            ContentProj::Text { .. } => return Poll::Ready(None),
            ContentProj::Inner { body } => body,
        };
        let polled = this.held.running(End::Broken, || body.poll_next(cx));
        let item = ready!(polled);
        match &item {
            None => this.held.settle(End::Complete),
            Some(Err(_)) => this.held.settle(End::Broken),
            Some(Ok(_)) => {}
        }
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.content {
            Content::Inner { body } => body.size_hint(),
            Content::Text { .. } => (0, Some(0)),
        }
    }
}

impl<B, P: Permit> fmt::Debug for GateBody<B, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateBody").field("held", &self.held.is_held()).finish_non_exhaustive()
    }
}
