//! What the monitor reads of a response's head.

use std::fmt;

use crate::call::{Answer, Usage};
use crate::refusal::{Failure, RefusalKind};
use crate::verdict::{Classify, Verdict, of_error};

/// Reads what the head of a response says. Sealed: [`ByAnswer`] asks the response itself, [`ByClass`] a classifier.
pub trait Look<Res, E>: Clone + sealed::Sealed {
    #[doc(hidden)]
    fn look(&self, head: Result<&Res, &E>) -> Seen;
}

/// What the head of a response said.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Seen {
    pub(super) verdict: Verdict,
    pub(super) refused: Option<RefusalKind>,
    pub(super) usage: Option<Usage>,
}

impl Seen {
    fn of_error<E: Failure>(error: &E) -> Self {
        let refused = error.refusal().map(|refusal| refusal.kind());
        Self { verdict: of_error(error), refused, usage: None }
    }
}

/// The response says itself what became of the call: over HTTP by its [`Outcome`](crate::call::Outcome), its status or the refusal in its
/// extensions; an own type by its [`Answer`]. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByAnswer;

/// A classifier says it.
#[derive(Clone, Copy)]
pub struct ByClass<C>(pub(super) C);

impl<Res: Answer, E: Failure> Look<Res, E> for ByAnswer {
    #[inline]
    fn look(&self, head: Result<&Res, &E>) -> Seen {
        match head {
            Ok(response) => match response.refusal() {
                Some(refusal) => {
                    Seen { verdict: refusal.verdict(), refused: Some(refusal.kind()), usage: None }
                }
                None => Seen {
                    verdict: response.verdict().unwrap_or(Verdict::SUCCESS),
                    refused: None,
                    usage: response.usage(),
                },
            },
            Err(error) => Seen::of_error(error),
        }
    }
}

impl<Res, E: Failure, C: Classify<Res, E> + Clone> Look<Res, E> for ByClass<C> {
    #[inline]
    fn look(&self, head: Result<&Res, &E>) -> Seen {
        let refused = head.err().and_then(Failure::refusal).map(|refusal| refusal.kind());
        Seen { verdict: self.0.classify(head), refused, usage: None }
    }
}

impl<C> fmt::Debug for ByClass<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByClass")
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ByAnswer {}
    impl<C> Sealed for super::ByClass<C> {}
}
