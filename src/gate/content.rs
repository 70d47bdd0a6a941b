//! What a wrapped body carries: the inner body, or the text of a refusal.

use bytes::Bytes;
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The inner body, or a text of our own, so that the inner type need not be constructible.
    #[project = ContentProj]
    pub(crate) enum Content<B> {
        Inner { #[pin] body: B },
        Text { text: Option<Bytes> },
    }
}

impl<B> Content<B> {
    /// A text; an empty one is over at once.
    pub(crate) fn text(text: Bytes) -> Self {
        Self::Text { text: Some(text).filter(|text| !text.is_empty()) }
    }

    /// Nothing more.
    pub(crate) fn over() -> Self {
        Self::Text { text: None }
    }
}

impl<B: Body> Content<B> {
    pub(crate) fn is_end_stream(&self) -> bool {
        match self {
            Self::Inner { body } => body.is_end_stream(),
            Self::Text { text } => text.is_none(),
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Inner { body } => body.size_hint(),
            Self::Text { text } => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
        }
    }
}
