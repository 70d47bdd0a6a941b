//! What becomes of a result: the one place where retry decides, tells and gives up.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use tower_service::Service;

use super::policy::{Attempt, Decision, Memory, Policy, Waiting};
use crate::monitor::{Event, Observers, StopCause};
use crate::refusal::{Failure, Label, Previous, Refusal};
use crate::time::{self, Instant};
use crate::verdict::{Class, Verdict};

/// A policy, and who hears of what it decides. One a layer.
pub struct Rules<P> {
    pub(super) policy: P,
    pub(super) label: Arc<Label>,
    pub(super) observers: Observers,
}

/// One call on its way through its attempts.
pub struct Run<Req> {
    /// The request to send next; `None` if no attempt can follow.
    kept: Option<Req>,
    /// Why none can.
    spent: StopCause,
    number: u32,
    /// When the call was first found to take time.
    started: Option<Instant>,
    memory: Memory,
    /// The last failure of the upstream itself.
    failed: Option<Failed>,
}

/// What comes after a result.
pub enum Next {
    /// The caller gets it.
    Done,
    /// Another attempt. The result goes first, and with it what it holds.
    Again(When),
}

/// When the next attempt is made.
pub enum When {
    Now,
    At(Instant),
    Ready(Waiting),
}

impl<P> fmt::Debug for Rules<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("label", &self.label).finish_non_exhaustive()
    }
}

impl<Req> fmt::Debug for Run<Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("number", &self.number).finish_non_exhaustive()
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Done) { "Done" } else { "Again" })
    }
}

impl fmt::Debug for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("Now"),
            Self::At(at) => f.debug_tuple("At").field(at).finish(),
            Self::Ready(_) => f.write_str("Ready"),
        }
    }
}

impl<Req> Run<Req> {
    /// The inner service took its time.
    #[inline]
    pub(super) fn pending(&mut self) {
        if self.started.is_none() {
            self.started = Some(time::now());
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

/// What the retry service asks of the inner service, and of its policy for it.
///
/// Implemented for every [`Policy`] over the service's requests, responses and errors. It exists because each further bound
/// that names the inner service would double the compiler's work with every layer of a stack: this is the only one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no retry policy for `{Req}` over `{S}`",
    note = "the error type must tell a refusal: below the layer `.map_err(seawall::BoxError::from)`, or see `seawall::Failure`",
    note = "the response must be judged: `RetryPolicy::builder().classify(..)` for your own type",
    note = "the request must be cloned: implement `Clone`, or give the policy `.copy_with(..)`",
    note = "see `seawall::docs::compiler_messages`"
)]
pub trait PolicyFor<S, Req>: Sized {
    /// What the inner service answers.
    type Response;
    /// How it fails.
    type Error;
    /// Both.
    type Output;
    /// The inner service's future.
    type Future: Future<Output = Self::Output>;

    #[doc(hidden)]
    fn poll_ready(inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>>;
    #[doc(hidden)]
    fn call(inner: &mut S, request: Req) -> Self::Future;
    #[doc(hidden)]
    fn begin(rules: &Rules<Self>, request: &mut Req) -> Run<Req>;
    #[doc(hidden)]
    fn next(rules: &Rules<Self>, run: &mut Run<Req>) -> Option<Req>;
    #[doc(hidden)]
    fn verdict(rules: &Rules<Self>, output: &Self::Output) -> Verdict;
    /// Whether the caller gets what this was said of as it is, and nothing more is to be done about it.
    #[doc(hidden)]
    fn is_answer(rules: &Rules<Self>, run: &mut Run<Req>, verdict: Verdict) -> bool;
    /// Decides about a result that is no answer yet. It may put another in its place: a refusal with the failure before it.
    #[doc(hidden)]
    fn judge(rules: &Rules<Self>, run: &mut Run<Req>, verdict: Verdict, output: &mut Self::Output) -> Next;
    #[doc(hidden)]
    fn answer(output: Self::Output) -> Result<Self::Response, Self::Error>;
}

impl<P, S, Req> PolicyFor<S, Req> for P
where
    S: Service<Req>,
    P: JudgesFor<S, Req>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Output = Result<S::Response, S::Error>;
    type Future = S::Future;

    #[inline]
    fn poll_ready(inner: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        inner.poll_ready(cx)
    }

    #[inline]
    fn call(inner: &mut S, request: Req) -> S::Future {
        inner.call(request)
    }

    #[inline]
    fn begin(rules: &Rules<P>, request: &mut Req) -> Run<Req> {
        P::begin_for(rules, request)
    }

    fn next(rules: &Rules<P>, run: &mut Run<Req>) -> Option<Req> {
        P::next_for(rules, run)
    }

    #[inline]
    fn verdict(rules: &Rules<P>, output: &Self::Output) -> Verdict {
        P::verdict_for(rules, output)
    }

    #[inline]
    fn is_answer(rules: &Rules<P>, run: &mut Run<Req>, verdict: Verdict) -> bool {
        P::is_answer_for(rules, run, verdict)
    }

    #[inline]
    fn judge(rules: &Rules<P>, run: &mut Run<Req>, verdict: Verdict, output: &mut Self::Output) -> Next {
        P::judge_for(rules, run, verdict, output)
    }

    #[inline]
    fn answer(output: Self::Output) -> Self::Output {
        output
    }
}

/// What a policy does with the results of a service.
///
/// It has no associated types: the clause of its impl that names the inner service's response *and* error is then looked
/// at once a layer. As a clause of [`PolicyFor`]'s impl it would be looked at, twice over, by each look at an associated type.
pub trait JudgesFor<S: Service<Req>, Req>: Sized {
    #[doc(hidden)]
    fn begin_for(rules: &Rules<Self>, request: &mut Req) -> Run<Req>;
    #[doc(hidden)]
    fn next_for(rules: &Rules<Self>, run: &mut Run<Req>) -> Option<Req>;
    #[doc(hidden)]
    fn verdict_for(rules: &Rules<Self>, output: &Result<S::Response, S::Error>) -> Verdict;
    #[doc(hidden)]
    fn is_answer_for(rules: &Rules<Self>, run: &mut Run<Req>, verdict: Verdict) -> bool;
    #[doc(hidden)]
    fn judge_for(
        rules: &Rules<Self>,
        run: &mut Run<Req>,
        verdict: Verdict,
        output: &mut Result<S::Response, S::Error>,
    ) -> Next;
}

impl<P, S, Req> JudgesFor<S, Req> for P
where
    S: Service<Req>,
    P: Judges<Req, S::Response, S::Error>,
{
    #[inline]
    fn begin_for(rules: &Rules<P>, request: &mut Req) -> Run<Req> {
        P::begin_run(rules, request)
    }

    fn next_for(rules: &Rules<P>, run: &mut Run<Req>) -> Option<Req> {
        P::next_request(rules, run)
    }

    #[inline]
    fn verdict_for(rules: &Rules<P>, output: &Result<S::Response, S::Error>) -> Verdict {
        P::verdict_of(rules, output)
    }

    #[inline]
    fn is_answer_for(rules: &Rules<P>, run: &mut Run<Req>, verdict: Verdict) -> bool {
        P::is_answer_of(rules, run, verdict)
    }

    fn judge_for(
        rules: &Rules<P>,
        run: &mut Run<Req>,
        verdict: Verdict,
        output: &mut Result<S::Response, S::Error>,
    ) -> Next {
        P::judge_output(rules, run, verdict, output)
    }
}

/// The same over the response and error types alone.
pub trait Judges<Req, Res, E>: Sized {
    #[doc(hidden)]
    fn begin_run(rules: &Rules<Self>, request: &mut Req) -> Run<Req>;
    #[doc(hidden)]
    fn next_request(rules: &Rules<Self>, run: &mut Run<Req>) -> Option<Req>;
    #[doc(hidden)]
    fn verdict_of(rules: &Rules<Self>, output: &Result<Res, E>) -> Verdict;
    #[doc(hidden)]
    fn is_answer_of(rules: &Rules<Self>, run: &mut Run<Req>, verdict: Verdict) -> bool;
    #[doc(hidden)]
    fn judge_output(
        rules: &Rules<Self>,
        run: &mut Run<Req>,
        verdict: Verdict,
        output: &mut Result<Res, E>,
    ) -> Next;
}

impl<P, Req, Res, E> Judges<Req, Res, E> for P
where
    P: Policy<Req, Res, E>,
    E: Failure + From<Refusal>,
{
    #[inline]
    fn begin_run(rules: &Rules<P>, request: &mut Req) -> Run<Req> {
        let policy = &rules.policy;
        policy.begin(request);
        let mut run = Run {
            kept: None,
            spent: StopCause::NotReplayable,
            number: 1,
            started: None,
            memory: Memory::default(),
            failed: None,
        };
        if most_attempts(policy, request) == 1 {
            run.spent = StopCause::Attempts;
        } else if policy.may_repeat(request) {
            run.kept = policy.keep(request);
        } else {
            run.spent = StopCause::OptedOut;
        }
        run
    }

    /// What is sent now; a copy stays behind only if another attempt may follow this one.
    fn next_request(rules: &Rules<P>, run: &mut Run<Req>) -> Option<Req> {
        let mut request = run.kept.take()?;
        rules.policy.unpack(&mut request);
        run.number = run.number.saturating_add(1);
        if run.number < most_attempts(&rules.policy, &request) {
            run.kept = rules.policy.keep(&request);
            run.spent = StopCause::NotReplayable;
        } else {
            run.spent = StopCause::Attempts;
        }
        Some(request)
    }

    #[inline]
    fn verdict_of(rules: &Rules<P>, output: &Result<Res, E>) -> Verdict {
        rules.policy.verdict(output.as_ref())
    }

    #[inline]
    fn is_answer_of(rules: &Rules<P>, run: &mut Run<Req>, verdict: Verdict) -> bool {
        // After a failure even what passes for a success may be a refusal, which is to carry it.
        let is_first = verdict.is_success() && run.failed.is_none();
        let is_answer = is_first && (run.kept.is_none() || rules.policy.ends_with_success());
        if is_answer {
            // What was kept of the body is free from here on.
            run.kept = None;
        }
        is_answer
    }

    fn judge_output(
        rules: &Rules<P>,
        run: &mut Run<Req>,
        verdict: Verdict,
        output: &mut Result<Res, E>,
    ) -> Next {
        let Some(request) = &mut run.kept else {
            give_up(rules, run, run.spent, verdict, output);
            return Next::Done;
        };
        if !verdict.is_success() {
            rules.policy.unpack(request);
        }
        let cause = if refused(output).is_some() {
            // Whatever the policy might say: it would refuse again.
            StopCause::Refused
        } else {
            let mut attempt =
                Attempt::new(run.number, run.started, request, output, verdict, &mut run.memory);
            match rules.policy.decide(&mut attempt) {
                Decision::Stop(StopCause::Answered) => {
                    // What was kept of the body is free from here on.
                    run.kept = None;
                    return Next::Done;
                }
                Decision::Stop(cause) => cause,
                Decision::Again { after } => match again(rules, run, verdict, output, after) {
                    Ok(when) => return Next::Again(when),
                    Err(cause) => cause,
                },
            }
        };
        give_up(rules, run, cause, verdict, output);
        Next::Done
    }
}

/// When the next attempt is made, unless there is a reason that none is, whatever the policy says.
fn again<P, Req, Res, E>(
    rules: &Rules<P>,
    run: &mut Run<Req>,
    verdict: Verdict,
    output: &Result<Res, E>,
    after: Duration,
) -> Result<When, StopCause>
where
    P: Policy<Req, Res, E>,
{
    let now = time::now();
    // A wait too long for the clock is no wait but the end.
    let at = time::checked_add(now, after).ok_or(StopCause::Impatient)?;
    let deadline = run.kept.as_ref().and_then(|request| rules.policy.deadline(request));
    if deadline.is_some_and(|deadline| deadline.has_passed(at)) {
        return Err(StopCause::Deadline);
    }
    let status = output.as_ref().ok().and_then(|response| rules.policy.status(response));
    run.failed = Some(Failed { verdict, status });
    run.memory.waited = Some(after);
    run.started.get_or_insert(now);
    rules.observers.raise(|| Event::Retrying { label: &rules.label, attempt: run.number, after, verdict });
    Ok(match run.memory.take_wait() {
        Some(wait) => When::Ready(wait),
        None if after.is_zero() => When::Now,
        None => When::At(at),
    })
}

/// The most attempts that this call may make.
#[inline]
fn most_attempts<P, Req, Res, E>(policy: &P, request: &Req) -> u32
where
    P: Policy<Req, Res, E>,
{
    let most = policy.max_attempts();
    policy.share(request).map_or(most, |share| most.min(share)).get()
}

/// The end of a call that failed: its own last outcome, and if that is a refusal of ours, with the failure before it.
#[cold]
fn give_up<P, Req, Res, E>(
    rules: &Rules<P>,
    run: &mut Run<Req>,
    cause: StopCause,
    verdict: Verdict,
    output: &mut Result<Res, E>,
) where
    E: Failure + From<Refusal>,
{
    run.kept = None;
    let refusal = refused(output);
    let cause = if refusal.is_some() { StopCause::Refused } else { cause };
    if !verdict.is_success() {
        rules.observers.raise(|| Event::GaveUp { label: &rules.label, attempt: run.number, cause, verdict });
    }
    if let (Some(refusal), Some(failed)) = (refusal, run.failed.take())
        && refusal.previous().is_none()
    {
        *output = Err(refusal.with_previous(failed.previous()).into());
    }
}

/// The refusal of our own layers that the output is. A timeout of the attempt is none: it was sent.
#[inline]
pub(super) fn refused<Res, E: Failure>(output: &Result<Res, E>) -> Option<Refusal> {
    let refusal = output.as_ref().err()?.refusal()?;
    (refusal.verdict().class() == Class::Refused).then_some(refusal)
}

/// A failure of the upstream that a later refusal carries.
#[derive(Clone, Copy, Debug)]
struct Failed {
    verdict: Verdict,
    status: Option<StatusCode>,
}

impl Failed {
    fn previous(self) -> Previous {
        let previous = Previous::new(self.verdict).with_error(Arc::new(self));
        match self.status {
            Some(status) => previous.with_status(status),
            None => previous,
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "the attempt before was answered with {status}"),
            None => write!(f, "the attempt before failed: {:?}", self.verdict.class()),
        }
    }
}

impl Error for Failed {}
