//! A request body that can be sent again.

mod failed;
mod recorded;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::call::model::{self, Place};
use crate::call::packed::Packed;
use crate::refusal::BoxError;
pub(crate) use failed::BodyFailed;
use recorded::Recorded;

/// The body of a request, the same type below the [intake layer](crate::call::intake) whatever came in above it.
///
/// **A clone starts at the beginning.** Keep one, send another, and send a third if that fails:
///
/// - A body of bytes that are all there is sent any number of times at no cost; a clone copies nothing.
/// - A [streaming](CallBody::streaming) body is written down while it is first sent, frame by frame and with its
///   trailers, up to a limit, and only as long as a handle exists that has not read it: drop the one you kept when the
///   response commits, and the memory is free and nothing more is written down. It is never read ahead of who sends it.
///   A clone that starts while another is still sending joins it: both get every frame.
///
/// [`is_replayable`](CallBody::is_replayable) says whether a clone would get everything. One that would not fails with
/// an error instead of sending a part.
///
/// ```
/// use seawall::call::CallBody;
///
/// let kept = CallBody::from("{}");
/// let sent = kept.clone();
/// assert!(kept.is_replayable());
/// # drop(sent);
/// ```
///
/// It is [`Unpin`], `Send` and `Sync`, and a client takes it as any other body:
/// `hyper_util::client::legacy::Client<C, CallBody>`; `reqwest::Body::wrap(body)`; `tonic::body::Body::new(body)`;
/// `axum::body::Body::new(body)`.
pub struct CallBody {
    content: Content,
    model: Model,
}

#[derive(Clone)]
enum Content {
    Whole(Whole),
    Recorded(Recorded),
    /// All of a request that is kept, its own body among it. Nobody sends it.
    Packed(Box<Packed>),
}

/// Bytes that are all there, and how much of them was handed out.
#[derive(Clone)]
struct Whole {
    data: Bytes,
    trailers: Option<Arc<HeaderMap>>,
    sent: Sent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Data,
    All,
}

/// What is known of the model's name in the bytes.
#[derive(Clone, Copy, Debug)]
enum Model {
    /// Nobody has looked.
    Unread,
    /// There is none that could be replaced.
    Absent,
    At(Place),
}

impl CallBody {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self::from(Bytes::new())
    }

    /// A body that arrives while it is sent. Up to `limit` bytes of it are kept so that it can be sent again; 0 keeps
    /// nothing. Each frame counts 64 bytes more than its data, so that empty ones are bounded too.
    pub fn streaming<B>(body: B, limit: usize) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { content: Content::Recorded(Recorded::new(body, limit)), model: Model::Absent }
    }

    /// With these trailers behind the bytes. A streaming body brings its own and stays as it is.
    #[must_use]
    pub fn with_trailers(mut self, trailers: HeaderMap) -> Self {
        if let Content::Whole(whole) = &mut self.content {
            whole.trailers = (!trailers.is_empty()).then(|| Arc::new(trailers));
        }
        self
    }

    /// Whether a clone made now gets everything from the start. For a streaming body: whether nothing that was sent is
    /// lost. One that nobody has begun to read can be sent, whatever its limit.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        match &self.content {
            Content::Whole(_) => true,
            Content::Recorded(recorded) => recorded.is_intact(),
            Content::Packed(packed) => packed.body.is_replayable(),
        }
    }

    /// Whether it will still be replayable once it was sent, as far as can be said before.
    pub(crate) fn fits(&self) -> bool {
        match &self.content {
            Content::Whole(_) => true,
            Content::Recorded(recorded) => recorded.fits(),
            Content::Packed(packed) => packed.body.fits(),
        }
    }

    /// All bytes, where they are there.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Whole(whole) => Some(&whole.data),
            Content::Recorded(_) | Content::Packed(_) => None,
        }
    }

    /// The trailers behind the bytes, where all is there.
    #[must_use]
    pub fn trailers(&self) -> Option<&HeaderMap> {
        match &self.content {
            Content::Whole(whole) => whole.trailers.as_deref(),
            Content::Recorded(_) | Content::Packed(_) => None,
        }
    }

    /// The same body with this model in the place of its own, from the start; `None` where it names none that could be
    /// replaced (see [`rewrite_model`](crate::call::rewrite_model)). A body that did not pass the intake layer is taken
    /// for JSON.
    #[must_use]
    pub fn with_model(&self, name: &str) -> Option<Self> {
        self.with_model_and(name, 0, |_, _| {}).map(|(body, _)| body)
    }

    /// The same, and what `write` is to put behind it, which is told the body's length and needs so much room: in the same
    /// buffer as a small body, so that both are one allocation and one count, of which any part is cloned at no cost.
    pub(super) fn with_model_and(
        &self,
        name: &str,
        room: usize,
        write: impl FnOnce(usize, &mut Vec<u8>),
    ) -> Option<(Self, Bytes)> {
        // The buffer lives as long as anybody keeps a part of it, the URL in a log for example.
        const SMALL: usize = 64 << 10;
        let Content::Whole(whole) = &self.content else { return None };
        let place = match self.model {
            Model::At(place) => place,
            Model::Unread => model::find(&whole.data)?,
            Model::Absent => return None,
        };
        let (data, more) = if whole.data.len() <= SMALL {
            let mut data = model::rewrite_at(&whole.data, place, name, room)?;
            let length = data.len();
            write(length, &mut data);
            let mut data = Bytes::from(data);
            let more = if data.len() > length { data.split_off(length) } else { Bytes::new() };
            (data, more)
        } else {
            let data = model::rewrite_at(&whole.data, place, name, 0)?;
            let mut more = Vec::with_capacity(room);
            write(data.len(), &mut more);
            (Bytes::from(data), Bytes::from(more))
        };
        let content = Content::Whole(Whole { data, trailers: whole.trailers.clone(), sent: Sent::Nothing });
        // The name has another length now: whoever rewrites this one again looks for it anew.
        let model = if matches!(place, Place::Json { .. }) { Model::Unread } else { Model::Absent };
        Some((Self { content, model }, more))
    }

    pub(super) fn packed(packed: Box<Packed>) -> Self {
        Self { content: Content::Packed(packed), model: Model::Absent }
    }

    /// The request that this is all of, if it is one.
    pub(super) fn take_packed(&mut self) -> Option<Box<Packed>> {
        if !matches!(self.content, Content::Packed(_)) {
            return None;
        }
        match std::mem::take(self).content {
            Content::Packed(packed) => Some(packed),
            _ => None,
        }
    }

    /// Whether the model is named more than once, so that readers may disagree on it.
    pub(crate) fn has_repeated_model(&self) -> bool {
        matches!(self.model, Model::At(Place::Json { repeated: true, .. }))
    }

    /// Says where the model's name stands, or that there is none.
    pub(crate) fn with_place(mut self, place: Option<Place>) -> Self {
        self.model = place.map_or(Model::Absent, Model::At);
        self
    }
}

impl Clone for CallBody {
    /// The same body, from its start.
    fn clone(&self) -> Self {
        let content = match &self.content {
            Content::Whole(whole) => Content::Whole(Whole { sent: Sent::Nothing, ..whole.clone() }),
            other => other.clone(),
        };
        Self { content, model: self.model }
    }
}

impl Default for CallBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for CallBody {
    fn from(data: Bytes) -> Self {
        let content = Content::Whole(Whole { data, trailers: None, sent: Sent::Nothing });
        Self { content, model: Model::Unread }
    }
}

macro_rules! from_bytes {
    ($($type:ty),+) => {$(
        impl From<$type> for CallBody {
            fn from(data: $type) -> Self {
                Self::from(Bytes::from(data))
            }
        }
    )+};
}
from_bytes!(Vec<u8>, String, &'static str, &'static [u8]);

impl Body for CallBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.content {
            Content::Whole(whole) => Poll::Ready(whole.next().map(Ok)),
            Content::Recorded(recorded) => recorded.poll_frame(cx),
            Content::Packed(packed) => Pin::new(&mut packed.body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(whole) => whole.is_over(),
            Content::Recorded(recorded) => recorded.is_end_stream(),
            Content::Packed(packed) => packed.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(whole) => match whole.sent {
                Sent::Nothing => SizeHint::with_exact(whole.data.len() as u64),
                Sent::Data | Sent::All => SizeHint::with_exact(0),
            },
            Content::Recorded(recorded) => recorded.size_hint(),
            Content::Packed(packed) => packed.body.size_hint(),
        }
    }
}

impl Whole {
    fn next(&mut self) -> Option<Frame<Bytes>> {
        if self.sent == Sent::Nothing {
            self.sent = Sent::Data;
            if !self.data.is_empty() {
                return Some(Frame::data(self.data.clone()));
            }
        }
        if self.sent == Sent::Data {
            self.sent = Sent::All;
            return self.trailers.as_deref().cloned().map(Frame::trailers);
        }
        None
    }

    fn is_over(&self) -> bool {
        match self.sent {
            Sent::Nothing => self.data.is_empty() && self.trailers.is_none(),
            Sent::Data => self.trailers.is_none(),
            Sent::All => true,
        }
    }
}

impl fmt::Debug for CallBody {
    /// Says how long it is and nothing of what is in it: prompts are nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallBody")
            .field("whole", &self.bytes().is_some())
            .field("length", &self.size_hint().exact())
            .field("replayable", &self.is_replayable())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
