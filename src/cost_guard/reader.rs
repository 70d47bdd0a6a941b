//! Whose money a request spends.

use std::fmt;

use http::{HeaderName, Request};

use crate::call::{Blind, Call, Describe, Described, Key, Read};
use crate::deadline::Deadline;

/// Reads from a request what a cost guard must know. Sealed: [`TenantBy`] and [`TenantHeader`] are there for what the
/// request does not say itself.
pub trait Reads<Req>: sealed::Sealed {
    /// What it asks for.
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call>;
    /// Whose it is, where the [`Call`] does not say it.
    fn tenant(&self, request: &Req) -> Option<Key>;
    /// By when it must be over.
    fn deadline(&self, request: &Req) -> Option<Deadline>;
}

impl<Req: Describe> Reads<Req> for Described {
    #[inline]
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        request.call()
    }

    #[inline]
    fn tenant(&self, _request: &Req) -> Option<Key> {
        None
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        request.deadline()
    }
}

impl<Req> Reads<Req> for Blind {
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        Read::call(self, request)
    }

    fn tenant(&self, _request: &Req) -> Option<Key> {
        None
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        Read::deadline(self, request)
    }
}

/// The tenant is found by a closure, and wins over the one in the [`Call`].
///
/// It must be a *verified* identity: what any caller can set is a way to spend somebody else's budget.
///
/// ```
/// use seawall::cost_guard::{Budget, BudgetKey, CostGuardLayer, PriceTable, Usd, Window};
///
/// /// Put into the request by an authentication above.
/// #[derive(Clone)]
/// struct Account(String);
///
/// let layer = CostGuardLayer::builder()
///     .prices(PriceTable::new())
///     .budget(Budget::new(Usd::dollars(5), Window::DAY).by(BudgetKey::Tenant))
///     .tenant_by(|request: &http::Request<String>| Some(request.extensions().get::<Account>()?.0.as_str().into()))
///     .build()?;
/// # let _ = layer;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy)]
pub struct TenantBy<R, F> {
    pub(super) reader: R,
    pub(super) tenant: F,
}

impl<Req, R, F> Reads<Req> for TenantBy<R, F>
where
    R: Reads<Req>,
    F: Fn(&Req) -> Option<Key>,
{
    fn call<'r>(&self, request: &'r Req) -> Option<&'r Call> {
        self.reader.call(request)
    }

    fn tenant(&self, request: &Req) -> Option<Key> {
        (self.tenant)(request)
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        self.reader.deadline(request)
    }
}

impl<R: fmt::Debug, F> fmt::Debug for TenantBy<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantBy").field("reader", &self.reader).finish_non_exhaustive()
    }
}

/// The tenant stands in a header that an authentication before has set, or checked.
#[derive(Clone, Debug)]
pub struct TenantHeader<R> {
    pub(super) reader: R,
    pub(super) header: HeaderName,
}

impl<B, R: Reads<Request<B>>> Reads<Request<B>> for TenantHeader<R> {
    fn call<'r>(&self, request: &'r Request<B>) -> Option<&'r Call> {
        self.reader.call(request)
    }

    fn tenant(&self, request: &Request<B>) -> Option<Key> {
        request.headers().get(&self.header)?.to_str().ok().map(Key::from)
    }

    fn deadline(&self, request: &Request<B>) -> Option<Deadline> {
        self.reader.deadline(request)
    }
}

mod sealed {
    use super::{Blind, Described, TenantBy, TenantHeader};

    pub trait Sealed {}
    impl Sealed for Described {}
    impl Sealed for Blind {}
    impl<R, F> Sealed for TenantBy<R, F> {}
    impl<R> Sealed for TenantHeader<R> {}
}
