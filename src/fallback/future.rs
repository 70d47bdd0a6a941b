//! A call on its way through its targets.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::chain::Chain;
use super::mode::{Ends, Fact, Holds, Taken};
use super::service::{Course, Shared};
use crate::call::commit::Held;
use crate::call::{Aim, Describe};
use crate::gate::Running;
use crate::refusal::{Phase, Refusal, RefusalKind};
use crate::verdict::{Class, Verdict};

pin_project! {
    /// The response of a [`Fallback`](super::Fallback). Dropping it at any point ends the call: the attempt under way, also
    /// while its first frames are looked at, and every one that could have followed.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, C, M, Req>
    where
        M: Ends<S, Req, C>,
    {
        // Declared, and so dropped, before the rest.
        #[pin]
        state: State<S, Req, M::Future, M::Held>,
        run: Run<Req, M::Response>,
        note: M::Note,
        mode: M,
        shared: Arc<Shared<S, C>>,
    }
}

/// What is known of the call.
struct Run<Req, R> {
    chain: Chain<R>,
    /// The request as it came, while another target may get it.
    original: Option<Req>,
}

pin_project! {
    // Its drop is so small that it is inlined: the states that few calls see lie behind one variant.
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<S, Req, F, H> {
        // The inner service is at work, or has answered.
        Calling { #[pin] running: Running<F> },
        Other { other: Other<S, Req, H> },
        Done,
    }
}

/// The states of a call that was not answered at once by its first target.
enum Other<S, Req, H> {
    /// A good head, whose body may still fail.
    Holding {
        held: H,
    },
    /// A failed response is read to its end, so that it holds nothing elsewhere.
    Keeping {
        held: H,
        next: Req,
    },
    Readying {
        inner: S,
        next: Req,
    },
    Refused {
        refusal: Refusal,
    },
}

impl<S, Req, F, H> From<Other<S, Req, H>> for State<S, Req, F, H> {
    fn from(other: Other<S, Req, H>) -> Self {
        Self::Other { other }
    }
}

impl<S, Req, F, H> State<S, Req, F, H> {
    /// One of the others, which is over then.
    fn leave(self: Pin<&mut Self>) -> Option<Other<S, Req, H>> {
        match self.project_replace(Self::Done) {
            StateOwned::Other { other } => Some(other),
            StateOwned::Calling { .. } | StateOwned::Done => None,
        }
    }
}

/// What comes after a failure.
enum Next<Req> {
    /// Another target gets this.
    Ask(Req),
    /// The failure is passed on as it is.
    Stop,
    /// No other target is left.
    Exhausted,
}

impl<Req: Aim + Describe, R> Run<Req, R> {
    /// Notes a failure and finds what comes next.
    fn failed<C>(&mut self, fact: Fact, course: &Course<C>) -> Next<Req> {
        let chain = &mut self.chain;
        if !chain.failed(fact, course) {
            return Next::Stop;
        }
        let from = chain.current();
        let next = self.original.as_mut().and_then(|original| chain.next(original, course));
        let Some(next) = next else {
            chain.tell_end(course);
            return Next::Exhausted;
        };
        chain.tell_hop(course, from);
        if !chain.may_go_on(course) {
            self.original = None;
        }
        Next::Ask(next)
    }
}

impl<S, C, M, Req> ResponseFuture<S, C, M, Req>
where
    M: Ends<S, Req, C>,
{
    #[inline]
    pub(super) fn calling(
        (mode, note): (M, M::Note),
        shared: Arc<Shared<S, C>>,
        chain: Chain<M::Response>,
        original: Option<Req>,
        future: M::Future,
    ) -> Self {
        let run = Run { chain, original };
        Self { state: State::Calling { running: Running::Inner { future } }, run, note, mode, shared }
    }

    pub(super) fn refused((mode, note): (M, M::Note), shared: Arc<Shared<S, C>>, refusal: Refusal) -> Self {
        let run = Run { chain: Chain::over(), original: None };
        Self { state: Other::Refused { refusal }.into(), run, note, mode, shared }
    }
}

/// What one step came to: the answer, or that there is more to do.
type Step<M, S, Req, C> = Option<Result<<M as Ends<S, Req, C>>::Response, <M as Ends<S, Req, C>>::Error>>;

impl<S, C, M, Req> Future for ResponseFuture<S, C, M, Req>
where
    S: Clone,
    Req: Aim + Describe,
    M: Ends<S, Req, C> + Copy,
{
    type Output = Result<M::Response, M::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        // ## Calling => (Calling | Other | Done)
        let StateProj::Calling { mut running } = this.state.as_mut().project() else {
            return self.poll_others(cx);
        };
        let Poll::Ready(output) = running.as_mut().poll(cx) else { return self.poll_late(cx) };
        // The inner future goes before what it answered is looked at.
        running.end();
        let course = &this.shared.course;
        let verdict = M::judge(&course.rules.classifier, &output);
        if !verdict.is_success() {
            return self.failed_or_next(verdict, output, cx);
        }
        let answer = match M::take(output, |sent| this.run.chain.plan(sent, course)) {
            Taken::Response(mut response) => {
                self.as_mut().serve(&mut response, false);
                Ok(response)
            }
            Taken::Error(error) => Err(error),
            Taken::Held(held) => {
                this.state.set(Other::Holding { held }.into());
                return self.poll_others(cx);
            }
        };
        // What was kept of the request's body is free from here on.
        self.project().run.original = None;
        Poll::Ready(answer)
    }
}

impl<S, C, M, Req> ResponseFuture<S, C, M, Req>
where
    S: Clone,
    Req: Aim + Describe,
    M: Ends<S, Req, C> + Copy,
{
    /// The target has not answered yet.
    #[inline]
    fn poll_late(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<M::Response, M::Error>> {
        let mut this = self.as_mut().project();
        if !this.run.chain.is_late(cx) {
            return Poll::Pending;
        }
        // What is too late is dropped at once.
        this.state.set(State::Done);
        let step = self.as_mut().late();
        self.go_on(step, cx)
    }

    /// The target has answered, badly.
    #[cold]
    fn failed_or_next(
        mut self: Pin<&mut Self>,
        verdict: Verdict,
        output: M::Output,
        cx: &mut Context<'_>,
    ) -> Poll<Result<M::Response, M::Error>> {
        let step = self.as_mut().failed(M::fact(verdict, &output), output);
        self.go_on(step, cx)
    }

    /// The states of a call that was not answered at once by its first target.
    #[inline(never)]
    fn poll_others(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<M::Response, M::Error>> {
        self.go_on(None, cx)
    }

    /// After this step.
    fn go_on(
        mut self: Pin<&mut Self>,
        mut step: Step<M, S, Req, C>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<M::Response, M::Error>> {
        loop {
            let mut this = self.as_mut().project();
            if let Some(answer) = step {
                this.state.set(State::Done);
                this.run.original = None;
                return Poll::Ready(answer);
            }
            // As deep as there are targets, at most.
            if let StateProj::Calling { .. } = this.state.as_mut().project() {
                return self.poll(cx);
            }
            step = ready!(self.as_mut().step(cx));
        }
    }

    /// The target has had its time.
    #[cold]
    fn late(mut self: Pin<&mut Self>) -> Step<M, S, Req, C> {
        let mut this = self.as_mut().project();
        let fact = Fact {
            verdict: Verdict::new(Class::Stalled),
            status: None,
            refused: None,
            answered: false,
            hollow: false,
        };
        match this.run.failed(fact, &this.shared.course) {
            Next::Ask(next) => {
                this.state.set(Other::Readying { inner: this.shared.fresh(), next }.into());
                None
            }
            Next::Exhausted if !this.run.chain.is_transparent() => Some(self.without_answer()),
            Next::Stop | Next::Exhausted => {
                let label = this.shared.course.rules.label.clone();
                let refusal = Refusal::new(RefusalKind::TimedOut(Phase::Total)).with_label(label);
                Some(M::refuse(*this.note, refusal))
            }
        }
    }

    /// An attempt has failed before anything of it could be passed on.
    #[cold]
    fn failed(mut self: Pin<&mut Self>, fact: Fact, output: M::Output) -> Step<M, S, Req, C> {
        let mut this = self.as_mut().project();
        let course = &this.shared.course;
        match this.run.failed(fact, course) {
            Next::Ask(next) if fact.hollow => {
                drop(output);
                this.state.set(Other::Readying { inner: this.shared.fresh(), next }.into());
                None
            }
            Next::Exhausted if fact.hollow && !this.run.chain.is_transparent() => {
                drop(output);
                Some(self.without_answer())
            }
            Next::Ask(next) => {
                match M::take(output, |_| Some(Chain::<M::Response>::plan_to_keep())) {
                    Taken::Held(held) => this.state.set(Other::Keeping { held, next }.into()),
                    taken => {
                        if let Taken::Response(response) = taken {
                            this.run.chain.keep(response);
                        }
                        this.state.set(Other::Readying { inner: this.shared.fresh(), next }.into());
                    }
                }
                None
            }
            Next::Stop => Some(match M::take(output, |_| None) {
                Taken::Response(mut response) => {
                    let chain = &mut this.run.chain;
                    this.mode.exhausted(&mut response, || chain.attempts());
                    Ok(response)
                }
                Taken::Error(error) => Err(error),
                Taken::Held(held) => Ok(held.into_response()),
            }),
            Next::Exhausted => {
                let chain = &mut this.run.chain;
                let mut response = match M::take(output, |_| None) {
                    Taken::Response(response) => chain.kept_invalid().unwrap_or(response),
                    Taken::Held(held) => held.into_response(),
                    Taken::Error(error) if chain.is_transparent() => return Some(Err(error)),
                    Taken::Error(_) => return Some(self.without_answer()),
                };
                this.mode.exhausted(&mut response, || chain.attempts());
                Some(Ok(response))
            }
        }
    }

    fn step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step<M, S, Req, C>> {
        let mut this = self.as_mut().project();
        let StateProj::Other { other } = this.state.as_mut().project() else {
            panic!("`ResponseFuture` polled after it was done")
        };
        Poll::Ready(match other {
            // ## Holding => (Holding | Readying | Done): the body, or a timer, registers the waker.
            Other::Holding { held } => {
                let held = ready!(held.poll(cx));
                self.held(held)
            }
            // ## Keeping => Readying: the body, or a timer, registers the waker.
            Other::Keeping { held, .. } => {
                ready!(held.poll(cx));
                let Some(Other::Keeping { held, next }) = this.state.as_mut().leave() else {
                    unreachable!("the state was Keeping a line ago");
                };
                // One that is too long or too slow to be kept whole is dropped.
                if held.is_whole() {
                    this.run.chain.keep(held.into_response());
                }
                this.state.set(Other::Readying { inner: this.shared.fresh(), next }.into());
                None
            }
            // ## Readying => (Calling | Readying | Done): the inner service, or a timer, registers the waker.
            Other::Readying { inner, .. } => match this.mode.poll_ready(inner, cx) {
                Poll::Pending if this.run.chain.is_late(cx) => {
                    this.state.set(State::Done);
                    self.late()
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => Some(this.run.chain.kept().ok_or(error)),
                Poll::Ready(Ok(())) => {
                    let Some(Other::Readying { mut inner, next }) = this.state.as_mut().leave() else {
                        unreachable!("the state was Readying a line ago");
                    };
                    let future = this.mode.call(&mut inner, next);
                    this.state.set(State::Calling { running: Running::Inner { future } });
                    None
                }
            },
            // ## Refused => Done
            Other::Refused { .. } => {
                let Some(Other::Refused { refusal }) = this.state.as_mut().leave() else {
                    unreachable!("the state was Refused a line ago");
                };
                Some(M::refuse(*this.note, refusal))
            }
        })
    }

    /// Enough of a good response is there, or it has failed after all.
    fn held(mut self: Pin<&mut Self>, held: Held) -> Step<M, S, Req, C> {
        let verdict = match held {
            Held::Reached | Held::Full => return self.commit(held == Held::Full),
            // Nobody is left who could do better.
            Held::Late if self.run.original.is_none() => return self.commit(false),
            Held::Late => Verdict::new(Class::Stalled),
            Held::Failed(verdict) => verdict,
        };
        let mut this = self.as_mut().project();
        let course = &this.shared.course;
        // No status: that of the head was good, and says nothing of the failure.
        let next = this
            .run
            .failed(Fact { verdict, status: None, refused: None, answered: true, hollow: true }, course);
        match next {
            Next::Ask(next) => {
                // The failed response goes, with all that it holds, before anything of the next attempt is reserved.
                this.state.set(State::Done);
                this.state.set(Other::Readying { inner: this.shared.fresh(), next }.into());
                None
            }
            Next::Stop | Next::Exhausted if held == Held::Late => self.commit(false),
            Next::Exhausted if !this.run.chain.is_transparent() => {
                this.state.set(State::Done);
                Some(self.without_answer())
            }
            Next::Stop | Next::Exhausted => {
                let mut response = self.as_mut().take_held()?;
                let this = self.project();
                let chain = &mut this.run.chain;
                this.mode.exhausted(&mut response, || chain.attempts());
                Some(Ok(response))
            }
        }
    }

    /// The end of a chain whose last failure is no answer: one that was kept, or a refusal.
    fn without_answer(self: Pin<&mut Self>) -> Result<M::Response, M::Error> {
        let this = self.project();
        let chain = &mut this.run.chain;
        match chain.kept() {
            Some(mut response) => {
                this.mode.exhausted(&mut response, || chain.attempts());
                Ok(response)
            }
            None => M::refuse(*this.note, chain.refusal(&this.shared.course)),
        }
    }

    /// The response as far as it is held, and the rest as it comes.
    fn take_held(self: Pin<&mut Self>) -> Option<M::Response> {
        match self.project().state.leave() {
            Some(Other::Holding { held }) => Some(held.into_response()),
            _ => None,
        }
    }

    fn commit(mut self: Pin<&mut Self>, early: bool) -> Step<M, S, Req, C> {
        let mut response = self.as_mut().take_held()?;
        self.serve(&mut response, early);
        Some(Ok(response))
    }

    /// A response that nothing replaces any more.
    #[inline]
    fn serve(self: Pin<&mut Self>, response: &mut M::Response, early: bool) {
        let this = self.project();
        let (chain, course) = (&mut this.run.chain, &this.shared.course);
        chain.learn(course);
        let served = || chain.served(course, early).expect("a call that was sent has a target");
        this.mode.serve(response, served, course.rules.headers);
    }
}

impl<S, C, M, Req> fmt::Debug for ResponseFuture<S, C, M, Req>
where
    M: Ends<S, Req, C>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { running: Running::Over } | State::Done => "done",
            State::Calling { .. } => "calling",
            State::Other { other: Other::Holding { .. } } => "holding",
            State::Other { other: Other::Keeping { .. } } => "keeping",
            State::Other { other: Other::Readying { .. } } => "readying",
            State::Other { other: Other::Refused { .. } } => "refused",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
