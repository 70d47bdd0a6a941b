//! What the gates share: one trait, one service, one future and one body wrapper.
//!
//! A *gate* decides whether an attempt may pass now, later or not, and learns what became of it. The circuit breaker, the token
//! bucket, the bulkhead and the cost guard are gates, and so are the monitor's layers; so can be yours. A gate only decides:
//! readiness, waiting, clones, cancellation, panics and the end of the body are the business of [`Gated`], once for all gates.
//!
//! # A gate of your own
//!
//! ```
//! use std::future::Ready;
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use std::sync::Arc;
//! use seawall::gate::{Admission, Gate, GateLayer};
//! use seawall::{BoxError, Refusal, RefusalKind};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! /// Admits calls only while the shop is open.
//! #[derive(Clone)]
//! struct BusinessHours(Arc<AtomicBool>);
//!
//! impl<Req> Gate<Req> for BusinessHours {
//!     type Permit = ();
//!     type Wait = Ready<Result<(), Refusal>>;
//!
//!     fn admit(&self, _request: &mut Req) -> Admission<(), Self::Wait> {
//!         match self.0.load(Ordering::Relaxed) {
//!             true => Admission::Now(()),
//!             false => Admission::Refused(Refusal::new(RefusalKind::Custom)),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let open = Arc::new(AtomicBool::new(false));
//! let shop = ServiceBuilder::new()
//!     .layer(GateLayer::from_gate(BusinessHours(open.clone())).at_head())
//!     .service_fn(|order: String| async move { Ok::<_, BoxError>(format!("{order}, here you are")) });
//!
//! assert!(shop.clone().oneshot("tea".to_owned()).await.is_err());
//! open.store(true, Ordering::Relaxed);
//! assert_eq!(shop.oneshot("tea".to_owned()).await.unwrap(), "tea, here you are");
//! # }
//! ```
//!
//! # Where a response ends
//!
//! | mode | chosen by | the permit ends | a refusal becomes | it needs |
//! |---|---|---|---|---|
//! | [`BodyEnd`] | default | at the end of the body | an error | `http::Response<B>`, or a response that implements [`WithBody`] |
//! | [`Head`] | `.at_head()` | when the response is there | an error | any response |
//! | [`Respond`] | `.respond()` | at the end of the body | a response | `http::Request` and `http::Response`, any error type |
//!
//! # One state, or many
//!
//! | | states |
//! |---|---|
//! | a gate by itself | one, shared by all services that its layer makes, and by its clones |
//! | [`Keyed`], by `.keyed(…)` on a builder | one for each upstream, model, tenant, or whatever a closure finds; made when a key comes, at most [10 000](Keyed::DEFAULT_BOUND), all with the same settings |
//! | [`Assigned`] | one for each key that is named beforehand, each with settings of its own; other keys pass |
//!
//! # What it costs
//!
//! A call that is admitted at once adds what the gate itself does: no allocation, no clone of the inner service. A call that is
//! not readies a fresh clone after its wait, so that it holds nothing meanwhile. [`Keyed`] takes the lock of one part of its
//! table for a look-up.
//!
//! # Events
//!
//! [`Gated`] raises none: a gate tells its own observers.
//!
//! # Cancellation
//!
//! Dropping a future or a body at any point returns what was taken: the permit is made before the inner future is,
//! outlives it, and settles exactly once, with an [`End`] that says how.

mod assigned;
mod body;
mod content;
mod future;
mod held;
mod keyed;
mod layer;
mod mode;
mod service;

use std::future::Future;

pub use assigned::{Assigned, AssignedPermit, AssignedWait};
pub use body::{GateBody, WithBody};
pub(crate) use content::{Content, ContentProj};
pub use future::ResponseFuture;
pub(crate) use future::Running;
pub use held::Held;
pub use keyed::{ByModel, ByTenant, ByUpstream, KeyFn, Keyed, Keys, PerKey};
pub use layer::GateLayer;
pub(crate) use layer::gate_layer;
pub(crate) use mode::asks_inner;
pub use mode::{BodyEnd, Errs, ErrsFor, FromText, Head, Mode, Respond, RespondNote, RespondsFor};
pub use service::Gated;

use crate::call::Outcome;
use crate::refusal::Refusal;

/// Decides whether an attempt may pass.
///
/// A gate is a handle: its clones share one state. It is asked from [`Service::call`](tower_service::Service::call),
/// never from `poll_ready`.
pub trait Gate<Req> {
    /// The proof that an attempt may pass, held until it is over.
    type Permit: Permit;
    /// The wait for a permit that is not free yet. Dropping it gives up the place.
    type Wait: Future<Output = Result<Self::Permit, Refusal>>;

    /// Whether the gate refuses whatever comes. `poll_ready` then does not ask the inner service, so that a busy one cannot
    /// hide the refusal.
    fn shut(&self) -> bool {
        false
    }

    /// Whether this attempt may pass. What is admitted `Now` was taken in the same atomic step.
    fn admit(&self, request: &mut Req) -> Admission<Self::Permit, Self::Wait>;
}

/// A gate's answer.
#[derive(Debug)]
pub enum Admission<P, W> {
    /// It may pass now.
    Now(P),
    /// It may pass later: when this future says so, or not even then.
    Later(W),
    /// It may not pass.
    Refused(Refusal),
}

/// How an admitted attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// The response came to its end.
    Complete,
    /// There was no response: the inner service failed or panicked.
    Failed,
    /// The body failed on its way.
    Broken,
    /// The caller dropped the call, or the body before its end.
    Abandoned,
    /// The inner service was never called: its readiness failed, or the caller left before.
    Unsent,
}

/// The proof that an attempt was admitted.
///
/// It is settled exactly once, also when the call is cancelled or panics. It has no type parameters for requests and
/// responses, so that a body can carry it; what it wants to know of the response's head it learns through [`Heads`].
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use seawall::call::Outcome;
/// use seawall::gate::{End, Follow, Heads, Permit};
///
/// /// Counts what is under way.
/// struct Counted(Arc<AtomicUsize>);
///
/// impl Permit for Counted {
///     fn settle(&mut self, end: End, _: Option<&Outcome>) {
///         self.0.fetch_sub(1, Ordering::Relaxed);
///         println!("it ended: {end:?}");
///     }
/// }
///
/// // What the head says is of no matter: it goes on to the end of the body.
/// impl<Res, E> Heads<Res, E> for Counted {
///     fn head(&mut self, _: Result<&Res, &E>) -> Follow {
///         Follow::Body
///     }
/// }
/// ```
pub trait Permit: Sized {
    /// The attempt is over. `outcome` is what was read of the response, where somebody reads it.
    ///
    /// Called once; the permit is dropped after it. It may run inside a drop: it must not block, and should not panic.
    fn settle(&mut self, end: End, outcome: Option<&Outcome>);

    /// The attempt did not answer at once. Called at least once before an answer that took any time, so that a permit
    /// which wants to know when it began need not read the clock for one that took none.
    fn pending(&mut self) {}

    /// Runs the inner service's code, at the call and at each poll of its future and body: for a permit that has a span, say.
    fn scope<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }

    /// The response has a body, and the permit is held to its end. Where this is not called, the attempt was over at its
    /// head.
    fn followed(&mut self) {}
}

/// Looks at the head of the response.
pub trait Heads<Res, E>: Permit {
    /// The response is there, or the inner service failed. Says whether the permit goes on to the end of the body.
    fn head(&mut self, head: Result<&Res, &E>) -> Follow;
}

/// Whether a permit has seen enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Follow {
    /// The head decides: settle now.
    Settle,
    /// Hold on to the end of the body. Where the mode ends at the head, that is now.
    Body,
}

/// The permit of a gate that needs none back.
impl Permit for () {
    #[inline]
    fn settle(&mut self, _end: End, _outcome: Option<&Outcome>) {}
}

impl<Res, E> Heads<Res, E> for () {
    #[inline]
    fn head(&mut self, _head: Result<&Res, &E>) -> Follow {
        Follow::Settle
    }
}
