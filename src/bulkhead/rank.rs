//! How urgent a request is.

use std::fmt;
use std::sync::Arc;

use crate::call::{Priority, Read};

/// How the priority of a request is found. Sealed: [`ByCall`] and a closure are all there are.
pub trait Rank<Req, R>: sealed::Sealed {
    #[doc(hidden)]
    fn rank(&self, reader: &R, request: &Req) -> Priority;
}

/// The priority that the request's [`Call`](crate::call::Call) gives, or the least urgent one. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByCall;

/// The priority that a closure finds.
pub struct RankFn<F>(Arc<F>);

impl<F> RankFn<F> {
    pub(super) fn new(f: F) -> Self {
        Self(Arc::new(f))
    }
}

impl<Req, R: Read<Req>> Rank<Req, R> for ByCall {
    fn rank(&self, reader: &R, request: &Req) -> Priority {
        reader.call(request).and_then(|call| call.priority).unwrap_or_default()
    }
}

impl<Req, R, F: Fn(&Req) -> Priority> Rank<Req, R> for RankFn<F> {
    fn rank(&self, _reader: &R, request: &Req) -> Priority {
        (self.0)(request)
    }
}

impl<F> Clone for RankFn<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F> fmt::Debug for RankFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RankFn")
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ByCall {}
    impl<F> Sealed for super::RankFn<F> {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, Described, Tagged};

    fn asks(level: Option<u8>) -> Tagged<u8> {
        let mut tagged = Tagged { request: 3, call: Call::default() };
        tagged.call.priority = level.and_then(Priority::new);
        tagged
    }

    #[test]
    fn a_request_is_as_urgent_as_its_call_says_and_else_the_least() {
        let rank = |request| Rank::<_, Described>::rank(&ByCall, &Described, &request);
        assert_eq!(Some(rank(asks(Some(5)))), Priority::new(5));
        assert_eq!(rank(asks(None)), Priority::default());
    }

    #[test]
    fn a_closure_overrules_the_call() {
        let by = RankFn::new(|request: &Tagged<u8>| Priority::new(request.request).unwrap_or_default());
        assert_eq!(Some(by.rank(&Described, &asks(Some(5)))), Priority::new(3));
        assert_eq!(format!("{:?}", by.clone()), "RankFn", "what a closure is nobody can show");
    }
}
