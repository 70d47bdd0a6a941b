//! A body that failed on the caller's side.

use std::error::Error;
use std::fmt;

use crate::refusal::BoxError;

/// The request's own body could not be read while it was sent: no upstream is to blame. It says what the body said.
#[derive(Debug)]
pub(crate) struct BodyFailed(Cause);

/// All of it. An error of *any* lifetime can be searched for it only through `source()`, which is `'static`.
#[derive(Debug)]
struct Cause(BoxError);

impl BodyFailed {
    pub(super) fn boxed(error: impl Into<BoxError>) -> BoxError {
        Box::new(Self(Cause(error.into())))
    }

    /// Whether an error is one, or stems from one.
    pub(crate) fn is_in(error: &(dyn Error + '_)) -> bool {
        let mut link = error.source();
        while let Some(error) = link {
            if error.is::<Self>() || error.is::<Cause>() {
                return true;
            }
            link = error.source();
        }
        false
    }
}

impl fmt::Display for BodyFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for BodyFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
