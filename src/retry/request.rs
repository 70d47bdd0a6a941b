//! How the ready-made policy reads a request and copies it.

use std::any::Any;
use std::fmt;

use http::Request;

use crate::call::{Blind, CallBody, Describe, Described, Read, packed};

/// How the ready-made policy reads a request and copies it: [`Described`], [`Blind`] or [`CopyWith`].
#[diagnostic::on_unimplemented(
    message = "retry cannot repeat `{Req}`",
    label = "a request is copied before it is sent",
    note = "implement `Clone` and `seawall::call::Describe` for it; with `.blind()` on the policy's builder `Clone` is enough",
    note = "for a request that is not `Clone`, or only at times, use `.copy_with(|request| ..)`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Repeat<Req> {
    /// What reads its facts.
    type Reader: Read<Req>;

    /// What reads its facts.
    fn reader(&self) -> &Self::Reader;

    /// A copy to be kept while the request is sent; `None` if it cannot be sent again.
    fn copy(&self, request: &Req) -> Option<Req>;

    /// The same, in as little as the request can be made of again.
    #[doc(hidden)]
    #[inline]
    fn keep(&self, request: &Req) -> Option<Req> {
        self.copy(request)
    }

    /// Makes it the request again.
    #[doc(hidden)]
    #[inline]
    fn unpack(&self, kept: &mut Req) {
        let _ = kept;
    }

    /// Whether a copy that was kept still has everything. A body that was recorded while it was first sent may not.
    fn is_whole(&self, kept: &Req) -> bool {
        let _ = kept;
        true
    }
}

macro_rules! by_clone {
    ($reader:ty) => {
        type Reader = $reader;

        fn reader(&self) -> &$reader {
            self
        }

        #[inline]
        fn copy(&self, request: &Req) -> Option<Req> {
            is_replayable(request).then(|| request.clone())
        }

        #[inline]
        fn keep(&self, request: &Req) -> Option<Req> {
            packed::keep(request)
        }

        #[inline]
        fn unpack(&self, kept: &mut Req) {
            packed::unpack(kept);
        }

        fn is_whole(&self, kept: &Req) -> bool {
            is_replayable(kept)
        }
    };
}

impl<Req: Describe + Clone + 'static> Repeat<Req> for Described {
    by_clone!(Described);
}

impl<Req: Clone + 'static> Repeat<Req> for Blind {
    by_clone!(Blind);
}

/// Our own body is the one that can be cloned and yet not be sent again; every other is asked by being cloned.
#[inline]
fn is_replayable<Req: 'static>(request: &Req) -> bool {
    let request: &dyn Any = request;
    request.downcast_ref::<Request<CallBody>>().is_none_or(|request| request.body().is_replayable())
}

/// Copies requests by a closure: see [`RetryPolicyBuilder::copy_with`](super::RetryPolicyBuilder::copy_with).
#[derive(Clone, Copy)]
pub struct CopyWith<R, F> {
    pub(super) reader: R,
    pub(super) copy: F,
}

impl<Req, R, F> Repeat<Req> for CopyWith<R, F>
where
    R: Read<Req>,
    F: Fn(&Req) -> Option<Req>,
{
    type Reader = R;

    fn reader(&self) -> &R {
        &self.reader
    }

    fn copy(&self, request: &Req) -> Option<Req> {
        (self.copy)(request)
    }
}

impl<R, F> fmt::Debug for CopyWith<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CopyWith")
    }
}
