//! What a response says of itself.

use std::sync::Arc;

use http::Response;

use crate::call::Outcome;

/// A response that can hand out the [`Outcome`] which somebody writes while it arrives.
///
/// Implemented for [`http::Response`], whose outcome is an extension. For an own type the empty implementation is enough.
pub trait Answer {
    /// The facts of this attempt, filled in until the response ends.
    fn outcome(&self) -> Option<&Arc<Outcome>> {
        None
    }
}

impl<B> Answer for Response<B> {
    fn outcome(&self) -> Option<&Arc<Outcome>> {
        self.extensions().get()
    }
}
