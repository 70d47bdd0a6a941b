//! Errors that can say whether they are a refusal of ours.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;

use super::{Refusal, find};
use crate::call::BodyFailed;
use crate::verdict::Reach;

/// An error in which a refusal can be found again.
///
/// A refusal of a layer below is no failure of the upstream: it must not open a breaker, and must not be retried at the
/// same target. So every layer asks the inner error. Implemented for boxed errors, for [`Fault`] and for [`Infallible`].
///
/// For an own error type:
///
/// ```
/// use seawall::{Failure, Refusal};
///
/// enum MyError {
///     Refused(Refusal),
///     Broken(std::io::Error),
/// }
///
/// impl From<Refusal> for MyError {
///     fn from(refusal: Refusal) -> Self {
///         Self::Refused(refusal)
///     }
/// }
///
/// impl Failure for MyError {
///     fn refusal(&self) -> Option<Refusal> {
///         match self {
///             Self::Refused(refusal) => Some(refusal.clone()),
///             Self::Broken(_) => None,
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry a refusal",
    label = "no refusal can be found in this error type",
    note = "below the layer, wrap the inner error: `.map_err(seawall::Fault::Inner)` keeps its type, \
            `.map_err(seawall::BoxError::from)` boxes it",
    note = "for your own error type implement `seawall::Failure` and `From<seawall::Refusal>`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait Failure {
    /// The refusal that this error is, or holds.
    fn refusal(&self) -> Option<Refusal>;

    /// How far the attempt got before it failed so, where that can be proven: a connection that was never made has sent
    /// nothing.
    fn reach(&self) -> Reach {
        self.refusal().map_or(Reach::Unknown, |refusal| refusal.verdict().reach())
    }

    /// Whether the request's own body failed while it was sent: its caller is to blame, and no upstream.
    fn is_of_the_request(&self) -> bool {
        false
    }
}

impl Failure for Box<dyn Error + Send + Sync + '_> {
    fn refusal(&self) -> Option<Refusal> {
        find(&**self)
    }

    fn reach(&self) -> Reach {
        match self.refusal() {
            Some(refusal) => refusal.verdict().reach(),
            None if never_connected(&**self) => Reach::Unsent,
            None => Reach::Unknown,
        }
    }

    fn is_of_the_request(&self) -> bool {
        BodyFailed::is_in(&**self)
    }
}

/// Whether the system said, somewhere below the error, that there was no connection.
fn never_connected(error: &(dyn Error + '_)) -> bool {
    use io::ErrorKind::{
        AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable,
    };
    let mut link = error.source();
    while let Some(error) = link {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(
            kind,
            Some(ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable)
        ) {
            return true;
        }
        link = error.source();
    }
    false
}

impl Failure for Infallible {
    fn refusal(&self) -> Option<Refusal> {
        match *self {}
    }
}

impl Failure for Refusal {
    fn refusal(&self) -> Option<Refusal> {
        Some(self.clone())
    }
}

/// Either a refusal of ours or the inner service's own error: for services whose error type comes from another crate.
///
/// ```
/// use seawall::{Fault, bulkhead::BulkheadLayer};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # fn main() {
/// let service = ServiceBuilder::new()
///     .layer(BulkheadLayer::new(8).at_head())
///     .map_err(Fault::Inner)
///     .service_fn(|_: String| async { Err::<(), _>(std::fmt::Error) });
/// # let _ = service.oneshot(String::new());
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Fault<E> {
    /// One of our layers refused.
    Refused(Refusal),
    /// The inner service failed.
    Inner(E),
}

impl<E> Fault<E> {
    /// The inner service's error, if it is one.
    pub fn into_inner(self) -> Option<E> {
        match self {
            Self::Inner(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}

impl<E> From<Refusal> for Fault<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E> Failure for Fault<E> {
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal.clone()),
            Self::Inner(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Fault<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for Fault<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(refusal) => refusal.source(),
            Self::Inner(error) => error.source(),
        }
    }
}
