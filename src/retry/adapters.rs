//! Policies of tower's retry as ours, and ours as tower's.

use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower::retry::Policy as TowerPolicy;

use super::judge::refused;
use super::policy::{Attempt, Decision, Memory, Policy, Waiting};
use crate::call::Describe;
use crate::deadline::Deadline;
use crate::monitor::StopCause;
use crate::refusal::Failure;
use crate::time::{self, Instant};
use crate::verdict::{Verdict, of_error};

/// A policy of tower's as one of ours: what was written for [`tower::retry`] serves a [`RetryLayer`](super::RetryLayer), which
/// adds what tower's layer does not do: it obeys deadlines and shares of attempts, repeats no refusal of our own layers, and
/// holds no response and no readied service while it waits.
///
/// Each call gets a clone of the policy, as in tower, and its `retry` decides; its `clone_request` is asked on a fresh
/// clone. There is no limit of attempts but the policy's own: see [`attempts`](Self::attempts).
///
/// ```
/// use std::future::{Ready, ready};
/// use seawall::retry::{FromTower, RetryLayer};
///
/// /// Three attempts at once.
/// #[derive(Clone)]
/// struct Twice(u32);
///
/// impl<E> tower::retry::Policy<String, String, E> for Twice {
///     type Future = Ready<()>;
///
///     fn retry(&mut self, _: &mut String, result: &mut Result<String, E>) -> Option<Ready<()>> {
///         self.0 = self.0.checked_sub(1)?;
///         result.is_err().then(|| ready(()))
///     }
///
///     fn clone_request(&mut self, request: &String) -> Option<String> {
///         Some(request.clone())
///     }
/// }
///
/// let layer = RetryLayer::new(FromTower::new(Twice(2)));
/// # let _ = layer;
/// ```
#[derive(Clone, Copy)]
pub struct FromTower<P> {
    policy: P,
    attempts: NonZeroU32,
}

impl<P> FromTower<P> {
    /// Decides as this policy does.
    pub fn new(policy: P) -> Self {
        Self { policy, attempts: NonZeroU32::MAX }
    }

    /// At most this many attempts, the first one included, whatever the policy says.
    #[must_use]
    pub fn attempts(mut self, attempts: NonZeroU32) -> Self {
        self.attempts = attempts;
        self
    }
}

impl<Req, Res, E, P> Policy<Req, Res, E> for FromTower<P>
where
    P: TowerPolicy<Req, Res, E, Future: Send + 'static> + Clone + Send + 'static,
    Req: Describe,
    E: Failure,
{
    fn verdict(&self, result: Result<&Res, &E>) -> Verdict {
        result.map_or_else(of_error, |_| Verdict::SUCCESS)
    }

    fn decide(&self, attempt: &mut Attempt<'_, Req, Res, E>) -> Decision {
        // Taken out for as long as it looks at what the attempt holds.
        let mut policy =
            attempt.state(|| Some(self.policy.clone())).take().unwrap_or_else(|| self.policy.clone());
        let (request, result) = attempt.parts();
        let wait = policy.retry(request, result);
        *attempt.state(|| None) = Some(policy);
        match wait {
            Some(wait) => attempt.again_when(wait),
            None if attempt.result().is_ok() => Decision::Stop(StopCause::Answered),
            None => Decision::Stop(StopCause::Policy),
        }
    }

    fn copy(&self, request: &Req) -> Option<Req> {
        self.policy.clone().clone_request(request)
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

impl<P> fmt::Debug for FromTower<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromTower").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

/// A policy of ours as one of tower's, for [`tower::retry::RetryLayer`] and whatever else takes those.
///
/// It decides, waits and is bounded as in our own layer. What tower's layer does otherwise stays so: the first attempt is sent
/// as the caller made it, so that an idempotency key or an attempt's number stands in the repeated ones only; the failed
/// response is gone before the wait, but the readied service is the caller's own.
///
/// ```
/// use seawall::call::CallBody;
/// use seawall::retry::{IntoTower, RetryPolicy};
/// use tower::ServiceBuilder;
///
/// let service = ServiceBuilder::new()
///     .retry(IntoTower::new(RetryPolicy::llm()))
///     .service_fn(|_: http::Request<CallBody>| async { Ok::<_, seawall::BoxError>(http::Response::new(())) });
/// # let _ = service;
/// ```
pub struct IntoTower<P> {
    policy: Arc<P>,
    number: u32,
    started: Option<Instant>,
    memory: Memory,
}

impl<P> IntoTower<P> {
    /// Decides as this policy does; all calls share it.
    pub fn new(policy: P) -> Self {
        Self::of(Arc::new(policy))
    }

    fn of(policy: Arc<P>) -> Self {
        Self { policy, number: 1, started: None, memory: Memory::default() }
    }
}

/// Each call is given a clone, and begins anew.
impl<P> Clone for IntoTower<P> {
    fn clone(&self) -> Self {
        Self::of(self.policy.clone())
    }
}

impl<Req, Res, E, P> TowerPolicy<Req, Res, E> for IntoTower<P>
where
    P: Policy<Req, Res, E>,
    E: Failure,
{
    type Future = Wait;

    fn retry(&mut self, request: &mut Req, result: &mut Result<Res, E>) -> Option<Wait> {
        let policy = &*self.policy;
        let verdict = policy.verdict(result.as_ref());
        if refused(result).is_some() {
            return None;
        }
        let mut attempt = Attempt::new(self.number, self.started, request, result, verdict, &mut self.memory);
        let Decision::Again { after } = policy.decide(&mut attempt) else { return None };
        let now = time::now();
        let at = time::checked_add(now, after)?;
        if policy.deadline(request).is_some_and(|deadline| deadline.has_passed(at)) {
            return None;
        }
        self.number = self.number.saturating_add(1);
        self.started.get_or_insert(now);
        self.memory.waited = Some(after);
        Some(match self.memory.take_wait() {
            Some(wait) => Wait(wait),
            None => Wait(Box::pin(tokio::time::sleep_until(at))),
        })
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        let policy = &*self.policy;
        let most =
            policy.share(request).map_or(policy.max_attempts(), |most| most.min(policy.max_attempts()));
        if self.number >= most.get() || !policy.may_repeat(request) {
            return None;
        }
        let mut copy = policy.copy(request)?;
        if self.number == 1 {
            policy.begin(&mut copy);
        }
        Some(copy)
    }
}

impl<P> fmt::Debug for IntoTower<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoTower").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The wait before the next attempt of an [`IntoTower`].
#[must_use = "futures do nothing unless polled"]
pub struct Wait(Waiting);

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wait")
    }
}
