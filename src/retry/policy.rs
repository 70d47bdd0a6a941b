//! What a policy sees of an attempt, and what it may say.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::call::Describe;
use crate::deadline::Deadline;
use crate::monitor::StopCause;
use crate::refusal::Failure;
use crate::time::{self, Instant};
use crate::verdict::{Verdict, of_error};

/// Decides whether an attempt is repeated, and when.
///
/// [`RetryPolicy`](super::RetryPolicy) is the ready-made one; [`from_fn`] makes one of a closure. A policy has no timer: it
/// says how long to wait, and the layer waits. One policy serves all calls at once, so its methods take `&self`; what it must
/// remember of one call it finds in the [`Attempt`]. It is object-safe: `Arc<dyn Policy<Req, Res, E> + Send + Sync>` is a
/// policy.
///
/// Whatever a policy says, the layer makes no more than [`max_attempts`](Self::max_attempts) and its
/// [`share`](Self::share) of attempts, none past the [`deadline`](Self::deadline), and none after a refusal of our own layers, which would refuse again. Between two attempts
/// without a wait the task yields once.
pub trait Policy<Req, Res, E> {
    /// What a result means.
    fn verdict(&self, result: Result<&Res, &E>) -> Verdict;

    /// Whether to go on after this attempt. Asked also after a good answer, so that one can wait for a state to change.
    fn decide(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Decision;

    /// Whether a success needs no decision: by a policy that always stops there.
    #[doc(hidden)]
    #[inline]
    fn ends_with_success(&self) -> bool {
        false
    }

    /// A copy to be kept while the request is sent; `None` if it cannot be sent again, and then there is one attempt.
    ///
    /// Asked once before each attempt that another may follow, and never before one that none can follow.
    fn copy(&self, request: &Req) -> Option<Req>;

    /// The same, in as little as the request can be made of again: by a policy that does not look at the request of an
    /// attempt that succeeded.
    #[doc(hidden)]
    #[inline]
    fn keep(&self, request: &Req) -> Option<Req> {
        self.copy(request)
    }

    /// Makes what was kept the request again.
    #[doc(hidden)]
    #[inline]
    fn unpack(&self, kept: &mut Req) {
        let _ = kept;
    }

    /// The most attempts, the first one included.
    fn max_attempts(&self) -> NonZeroU32 {
        DEFAULT_ATTEMPTS
    }

    /// The most attempts that are left for this call by whoever made it: a fallback above gives each of its targets a share
    /// ([`Call::most_attempts`](crate::call::Call::most_attempts)). The layer makes no more, whatever else is allowed.
    fn share(&self, request: &Req) -> Option<NonZeroU32> {
        let _ = request;
        None
    }

    /// A call begins: the place to count it, and to put into the request what all attempts shall carry.
    fn begin(&self, request: &mut Req) {
        let _ = request;
    }

    /// Whether this call allows more than one attempt.
    fn may_repeat(&self, request: &Req) -> bool {
        let _ = request;
        true
    }

    /// By when the whole call must be over.
    fn deadline(&self, request: &Req) -> Option<Deadline> {
        let _ = request;
        None
    }

    /// The HTTP status of a response, where it has one: for what is told of a failure later.
    fn status(&self, response: &Res) -> Option<StatusCode> {
        let _ = response;
        None
    }
}

/// Three, as most clients have it.
pub(super) const DEFAULT_ATTEMPTS: NonZeroU32 = NonZeroU32::new(3).expect("three is not zero");

/// What a policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The caller gets this result.
    Stop(StopCause),
    /// Another attempt, so long from now.
    Again {
        /// The wait. Nothing is held meanwhile.
        after: Duration,
    },
}

/// An attempt that is over, as a policy sees it.
pub struct Attempt<'a, Req, Res, E> {
    number: u32,
    started: Option<Instant>,
    request: &'a mut Req,
    pub(super) result: &'a mut Result<Res, E>,
    verdict: Verdict,
    pub(super) memory: &'a mut Memory,
}

/// What is remembered from attempt to attempt of one call.
#[derive(Default)]
pub(super) struct Memory {
    /// The last wait.
    pub(super) waited: Option<Duration>,
    /// Whether it was repeated at once, free of charge, because nothing had been processed.
    pub(super) was_free: bool,
    /// What few policies need.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    state: Option<Box<dyn Any + Send>>,
    wait: Option<Waiting>,
}

/// A wait that is no length of time.
pub(super) type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Memory {
    /// The wait that the policy asked for, if it asked for such a one.
    #[inline]
    pub(super) fn take_wait(&mut self) -> Option<Waiting> {
        self.rare.as_mut()?.wait.take()
    }
}

impl<'a, Req, Res, E> Attempt<'a, Req, Res, E> {
    pub(super) fn new(
        number: u32,
        started: Option<Instant>,
        request: &'a mut Req,
        result: &'a mut Result<Res, E>,
        verdict: Verdict,
        memory: &'a mut Memory,
    ) -> Self {
        Self { number, started, request, result, verdict, memory }
    }

    /// Which attempt it was, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// When the call began: when its future was first polled and had no answer at once. A call all of whose attempts were
    /// answered at once begins now.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started.unwrap_or_else(time::now)
    }

    /// The request that would be sent next.
    #[must_use]
    pub fn request(&self) -> &Req {
        self.request
    }

    /// The same, to be changed for the next attempt.
    pub fn request_mut(&mut self) -> &mut Req {
        self.request
    }

    /// How it ended.
    ///
    /// # Errors
    ///
    /// The inner service's.
    pub fn result(&self) -> Result<&Res, &E> {
        self.result.as_ref()
    }

    /// The request that would be sent next, and how this attempt ended.
    #[cfg(feature = "tower")]
    pub(super) fn parts(&mut self) -> (&mut Req, &mut Result<Res, E>) {
        (self.request, self.result)
    }

    /// What that means.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// How long the call waited before this attempt; `None` before the first.
    #[must_use]
    pub fn waited(&self) -> Option<Duration> {
        self.memory.waited
    }

    /// What the policy remembers of this call, from attempt to attempt: its own value, made when it is first asked for.
    pub fn state<T: Send + 'static>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        let slot = &mut self.memory.rare.get_or_insert_default().state;
        if !slot.as_ref().is_some_and(|state| state.is::<T>()) {
            *slot = Some(Box::new(make()));
        }
        let state = slot.as_mut().and_then(|state| state.downcast_mut());
        state.expect("a value of this type was there, or has just been put there")
    }

    /// Another attempt when this future is ready: for a policy that waits for something else than time. The deadline of the
    /// call does not end such a wait; a timeout above the layer does.
    pub fn again_when(&mut self, ready: impl Future<Output = ()> + Send + 'static) -> Decision {
        self.memory.rare.get_or_insert_default().wait = Some(Box::pin(ready));
        Decision::Again { after: Duration::ZERO }
    }
}

impl<Req: Describe, Res, E> Attempt<'_, Req, Res, E> {
    /// Whether another target is left to be asked if this one fails.
    #[must_use]
    pub fn another_target(&self) -> bool {
        self.request.call().is_some_and(|call| call.another_target)
    }
}

impl<Req, Res, E> fmt::Debug for Attempt<'_, Req, Res, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("number", &self.number)
            .field("verdict", &self.verdict)
            .finish_non_exhaustive()
    }
}

impl<Req, Res, E, P> Policy<Req, Res, E> for Arc<P>
where
    P: Policy<Req, Res, E> + ?Sized,
{
    fn verdict(&self, result: Result<&Res, &E>) -> Verdict {
        (**self).verdict(result)
    }

    fn decide(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Decision {
        (**self).decide(attempt)
    }

    fn ends_with_success(&self) -> bool {
        (**self).ends_with_success()
    }

    fn copy(&self, request: &Req) -> Option<Req> {
        (**self).copy(request)
    }

    fn keep(&self, request: &Req) -> Option<Req> {
        (**self).keep(request)
    }

    fn unpack(&self, kept: &mut Req) {
        (**self).unpack(kept);
    }

    fn max_attempts(&self) -> NonZeroU32 {
        (**self).max_attempts()
    }

    fn share(&self, request: &Req) -> Option<NonZeroU32> {
        (**self).share(request)
    }

    fn begin(&self, request: &mut Req) {
        (**self).begin(request);
    }

    fn may_repeat(&self, request: &Req) -> bool {
        (**self).may_repeat(request)
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        (**self).deadline(request)
    }

    fn status(&self, response: &Res) -> Option<StatusCode> {
        (**self).status(response)
    }
}

/// A policy from a closure, for requests that can be cloned: it sees every result, good ones too.
///
/// At most three attempts; see [`FromFn::attempts`].
///
/// ```
/// use std::time::Duration;
/// use seawall::BoxError;
/// use seawall::monitor::StopCause;
/// use seawall::retry::{self, Attempt, Decision, RetryLayer};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let policy = retry::from_fn(|attempt: &mut Attempt<'_, String, u32, BoxError>| match attempt.result() {
///     Ok(0) => Decision::Again { after: Duration::from_secs(1) },
///     _ => Decision::Stop(StopCause::Policy),
/// });
/// let mut answers = vec![7, 0, 0];
/// let service = ServiceBuilder::new()
///     .layer(RetryLayer::new(policy))
///     .service(tower::service_fn({
///         let answers = std::sync::Arc::new(std::sync::Mutex::new(answers));
///         move |_: String| {
///             let answer = answers.lock().unwrap().pop().unwrap();
///             async move { Ok::<_, BoxError>(answer) }
///         }
///     }));
/// assert_eq!(service.oneshot("ready?".to_owned()).await.unwrap(), 7);
/// # }
/// ```
pub fn from_fn<F, Req, Res, E>(decide: F) -> FromFn<F>
where
    F: Fn(&mut Attempt<'_, Req, Res, E>) -> Decision,
{
    FromFn { decide, attempts: DEFAULT_ATTEMPTS }
}

/// See [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F> {
    decide: F,
    attempts: NonZeroU32,
}

impl<F> FromFn<F> {
    /// At most this many attempts, the first one included.
    #[must_use]
    pub fn attempts(mut self, attempts: NonZeroU32) -> Self {
        self.attempts = attempts;
        self
    }
}

impl<F, Req, Res, E> Policy<Req, Res, E> for FromFn<F>
where
    F: Fn(&mut Attempt<'_, Req, Res, E>) -> Decision,
    Req: Describe + Clone,
    E: Failure,
{
    fn verdict(&self, result: Result<&Res, &E>) -> Verdict {
        result.map_or_else(of_error, |_| Verdict::SUCCESS)
    }

    fn decide(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Decision {
        (self.decide)(attempt)
    }

    fn copy(&self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }

    fn max_attempts(&self) -> NonZeroU32 {
        self.attempts
    }

    fn share(&self, request: &Req) -> Option<NonZeroU32> {
        request.call().and_then(|call| call.most_attempts)
    }

    fn may_repeat(&self, request: &Req) -> bool {
        request.may_repeat()
    }

    fn deadline(&self, request: &Req) -> Option<Deadline> {
        request.deadline()
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

/// It is object-safe.
const _: fn(&dyn Policy<(), (), ()>) = |_| {};
