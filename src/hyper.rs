//! What the errors of a client over hyper prove.
//!
//! A failure can prove that the request was not processed, and then every method may be sent again: a connection that was
//! never made, a request that was still in the queue of a connection which closed, an HTTP/2 stream that was refused or stands
//! above the last one of a GOAWAY. Such proofs lie deep in the chain of sources, in types of hyper, hyper-util and h2.
//! [`HyperErrors`] looks there, and leaves everything else to another classifier:
//!
//! ```
//! use seawall::hyper::HyperErrors;
//! use seawall::retry::{RetryLayer, RetryPolicy};
//!
//! let policy = RetryPolicy::builder().classify(HyperErrors::new()).build()?;
//! # let _ = RetryLayer::new(policy);
//! # Ok::<(), seawall::ConfigError>(())
//! ```
//!
//! The retry layer follows [`Unprocessed`](Reach::Unprocessed) once, at once and free of charge, and
//! [`Unsent`](Reach::Unsent) after its usual wait. Give the same classifier to the token bucket and the circuit breaker: what
//! was not processed uses no tokens.
//!
//! Below HTTP/2 nothing more can be proven. "Connection closed before message completed" says that the server closed while an
//! answer was due: also on a connection that had been idle it may have read the request before. hyper-util itself sends a
//! request again that had not been written when its connection closed.

use std::error::Error;

use http::{Response, StatusCode};

use crate::provider::HeadClassifier;
use crate::refusal::{BoxError, Fault};
use crate::verdict::{Class, Classify, Reach, Verdict};

/// How far a request got that failed with this error.
#[must_use]
pub fn reach(error: &(dyn Error + 'static)) -> Reach {
    let mut link = Some(error);
    while let Some(error) = link {
        if let Some(proof) = of_link(error) {
            return proof;
        }
        link = error.source();
    }
    Reach::Unknown
}

fn of_link(error: &(dyn Error + 'static)) -> Option<Reach> {
    use hyper_util::client::legacy;

    if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect) {
        return Some(Reach::Unsent);
    }
    // hyper says so of requests that its connection had not taken up.
    if error.downcast_ref::<::hyper::Error>().is_some_and(::hyper::Error::is_canceled) {
        return Some(Reach::Unsent);
    }
    let error = error.downcast_ref::<h2::Error>()?;
    let refused = error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    // Streams up to the last one of a GOAWAY go on, and end otherwise.
    let above_the_last = error.is_go_away() && error.is_remote();
    Some(if refused || above_the_last { Reach::Unprocessed } else { Reach::Unknown })
}

/// A classifier that knows what hyper's errors prove, and asks another one about everything else.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperErrors<C = HeadClassifier> {
    then: C,
}

impl HyperErrors {
    /// Over [`HeadClassifier`], as the retry layer has it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<C> HyperErrors<C> {
    /// Over this classifier.
    pub fn over(then: C) -> Self {
        Self { then }
    }
}

impl<B, E, C> Classify<Response<B>, E> for HyperErrors<C>
where
    C: Classify<Response<B>, E>,
    E: Chain,
{
    #[inline]
    fn classify(&self, result: Result<&Response<B>, &E>) -> Verdict {
        let verdict = self.then.classify(result);
        match result {
            Err(error) if verdict.class() == Class::Transient && verdict.reach() == Reach::Unknown => {
                verdict.with_reach(error.chain().map_or(Reach::Unknown, reach))
            }
            _ => verdict,
        }
    }

    fn status(&self, response: &Response<B>) -> Option<StatusCode> {
        self.then.status(response)
    }
}

/// An error whose chain of sources can be looked at: [`BoxError`], or a [`Fault`] of an error. Sealed.
pub trait Chain: sealed::Sealed {
    #[doc(hidden)]
    fn chain(&self) -> Option<&(dyn Error + 'static)>;
}

impl Chain for BoxError {
    fn chain(&self) -> Option<&(dyn Error + 'static)> {
        Some(&**self)
    }
}

impl<E: Error + 'static> Chain for Fault<E> {
    fn chain(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Inner(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::refusal::BoxError {}
    impl<E> Sealed for crate::refusal::Fault<E> {}
}
