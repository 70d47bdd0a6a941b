//! One call on its way through its targets: which one is next, and what became of those before.

mod choose;
mod first;

pub(super) use first::First;

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep_until};

use super::mode::Fact;
use super::order::{Order, Pace, Set};
use super::routes::Built;
use super::served::{self, Attempt, Attempts, Served, Skip};
use super::service::Course;
use super::target::Target;
use super::trigger::Away;
use crate::call::commit::{Bounds, Goal};
use crate::call::{Aim, Call, Commit, Describe, Destination, Misfit};
use crate::deadline::Deadline;
use crate::monitor::Event;
use crate::refusal::{Phase, Previous, Refusal, RefusalKind};
use crate::time::{self, Instant};
use crate::timeout::tokens_of;
use crate::verdict::{Class, Verdict};

/// One call on its way. `R` is what is kept of a failed response.
pub(super) struct Chain<R> {
    route: usize,
    current: usize,
    /// Asked, or not to be asked any more.
    gone: Set,
    /// How many attempts the chain may still make, those of the layers below included.
    left: u32,
    /// How many targets were asked.
    hops: u32,
    /// Only one target may be asked.
    single: bool,
    /// What the call amounts to: how long content is waited for.
    tokens: u64,
    started: Option<Instant>,
    until: Option<Instant>,
    /// What only a call has that did not go well at once.
    cold: Option<Box<Cold<R>>>,
}

struct Cold<R> {
    attempts: Vec<Attempt>,
    told: Set,
    kept: Option<(R, Verdict)>,
    last: Option<Fact>,
    retry_after: Option<Duration>,
    failed_elsewhere: bool,
    deadline: Option<Deadline>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<R> Default for Cold<R> {
    fn default() -> Self {
        Self {
            attempts: Vec::new(),
            told: Set::default(),
            kept: None,
            last: None,
            retry_after: None,
            failed_elsewhere: false,
            deadline: None,
            timer: None,
        }
    }
}

impl<R> Chain<R> {
    /// A call of this route that begins.
    pub(super) fn new<Req: Describe, C>(route: usize, request: &Req, course: &Course<C>) -> Option<Self> {
        let call = request.call();
        let most = course.rules.max_attempts.get();
        let left = call.and_then(|call| call.most_attempts).map_or(most, |outer| outer.get().min(most));
        let mut chain = Self {
            route,
            current: 0,
            gone: Set::default(),
            left,
            hops: 0,
            single: false,
            tokens: tokens_of(call),
            started: None,
            until: None,
            cold: None,
        };
        if let Some(overrides) = request.overrides() {
            chain.single = overrides.is_single();
            let targets = &chain.built(course)?.targets;
            let denied =
                targets.iter().map(|target| !overrides.allows(target.upstream().name(), target.model()));
            chain.gone = Set::of(denied.enumerate().filter(|(_, denied)| *denied).map(|(at, _)| at));
        }
        Some(chain)
    }

    /// One that asks nobody.
    pub(super) fn over() -> Self {
        Self {
            route: usize::MAX,
            current: 0,
            gone: Set::default(),
            left: 0,
            hops: 0,
            single: false,
            tokens: 0,
            started: None,
            until: None,
            cold: None,
        }
    }

    fn built<'c, C>(&self, course: &'c Course<C>) -> Option<&'c Built> {
        course.routes.table().routes.get(self.route)
    }

    fn target<'c, C>(&self, course: &'c Course<C>, at: usize) -> Option<&'c Arc<Target>> {
        self.built(course)?.targets.get(at)
    }

    fn cold(&mut self) -> &mut Cold<R> {
        self.cold.get_or_insert_default()
    }

    /// Whether a target has been asked.
    fn has_asked(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.last.is_some())
    }

    /// As far as a call that did not go well at once knows.
    fn out_of_time(&self) -> bool {
        let deadline = self.cold.as_ref().and_then(|cold| cold.deadline);
        deadline.is_some_and(|deadline| deadline.has_passed(time::now()))
    }

    /// The targets that may still be asked.
    fn open<C>(&self, course: &Course<C>) -> Set {
        if self.left == 0 || (self.single && self.has_asked()) {
            return Set::default();
        }
        self.built(course).map_or(Set::default(), |built| built.all.without(self.gone))
    }

    /// Whether the original request is still of use.
    pub(super) fn may_go_on<C>(&self, course: &Course<C>) -> bool {
        !self.single && !self.open(course).is_empty()
    }

    /// Aims the request itself at the first target, and gives what is to be kept of it if another one may follow.
    pub(super) fn first<Req: Aim + Describe, C>(
        &mut self,
        request: &mut Req,
        course: &Course<C>,
    ) -> Result<Option<Req>, NoTarget> {
        let (original, mark) = self.aim(request, course, Req::aim_away).ok_or(NoTarget)?;
        if let Some(call) = request.call_mut() {
            mark.write(call);
        }
        Ok(original)
    }

    /// The request for the next target, if there is one.
    pub(super) fn next<Req: Aim + Describe, C>(
        &mut self,
        original: &mut Req,
        course: &Course<C>,
    ) -> Option<Req> {
        original.unpack();
        self.cold().deadline = original.deadline();
        if self.out_of_time() {
            return None;
        }
        let (mut request, mark) = self.aim(original, course, |original, at, _| original.aim(at))?;
        if let Some(call) = request.call_mut() {
            mark.write(call);
        }
        Some(request)
    }

    /// Finds a target at which the request can be aimed.
    fn aim<Req: Describe, C, T>(
        &mut self,
        request: &mut Req,
        course: &Course<C>,
        aim: impl Fn(&mut Req, &Destination<'_>, bool) -> Result<T, Misfit>,
    ) -> Option<(T, Mark)> {
        loop {
            let (at, probe) = self.choose(request, course)?;
            self.gone.insert(at);
            let others = if self.single { 0 } else { self.open(course).len() };
            let table = course.routes.table();
            let target = table.routes.get(self.route)?.targets.get(at)?;
            let share = share(self.left, target, others);
            let another_target = others > 0 && self.left > share;
            let destination =
                Destination { upstream: target.upstream(), model: target.model(), secrets: &table.secrets };
            match aim(request, &destination, another_target) {
                Ok(aimed) => {
                    self.begin(course, at);
                    self.left -= share;
                    let failed_elsewhere = self.cold.as_ref().is_some_and(|cold| cold.failed_elsewhere);
                    let hops = self.hops;
                    return Some((aimed, Mark { another_target, probe, failed_elsewhere, share, hops }));
                }
                Err(misfit) => self.skip(course, at, Skip::Misfit(misfit)),
            }
        }
    }

    /// The clocks of an attempt at this target.
    fn begin<C>(&mut self, course: &Course<C>, at: usize) {
        self.current = at;
        self.hops += 1;
        (self.started, self.until) = (None, None);
        if let Some(cold) = &mut self.cold {
            cold.timer = None;
        }
        if self.built(course).is_some_and(|built| built.timed) {
            self.begin_timed(course, at);
        }
    }

    fn begin_timed<C>(&mut self, course: &Course<C>, at: usize) {
        let timeout = self.target(course, at).and_then(|target| target.timeout());
        if timeout.is_some() || self.built(course).is_some_and(|built| built.order == Order::Fastest) {
            let now = time::now();
            self.started = Some(now);
            self.until = timeout.and_then(|timeout| time::checked_add(now, timeout));
        }
    }

    /// Notes a failure; says whether another target may be asked after it.
    pub(super) fn failed<C>(&mut self, fact: Fact, course: &Course<C>) -> bool {
        let Some(target) = self.target(course, self.current).cloned() else { return false };
        let verdict = fact.verdict;
        // What a request or one of our own layers is to blame for says nothing of the target's pace.
        let slow = matches!(verdict.class(), Class::Transient | Class::Stalled | Class::Throttled);
        if let Some(started) = self.started.filter(|_| slow) {
            target.pace.observe((time::now() - started).saturating_add(Pace::FAILURE));
        }
        let away = target.settings.triggers.unwrap_or(course.rules.triggers).away(verdict);
        let cold = self.cold();
        cold.last = Some(fact);
        // An answer that says no more than that something went wrong may be the request's own doing.
        let told_nothing = fact.answered && fact.status.is_none_or(|status| status == 500);
        cold.failed_elsewhere |= told_nothing && verdict.class() == Class::Transient;
        cold.retry_after = match (cold.retry_after, verdict.hint()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        cold.attempts.push(Attempt::failed(target.clone(), fact));
        match away {
            Some(Away::OtherUpstream) => {
                let same = |other: &Target| other.upstream().name() == target.upstream().name();
                self.leave_out(course, self.those(course, same), Skip::Account);
            }
            Some(Away::Larger) => {
                let small =
                    |other: &Target| other.context().is_some_and(|size| Some(size) <= target.context());
                self.leave_out(course, self.those(course, small), Skip::Context);
            }
            Some(Away::Anywhere) | None => {}
        }
        away.is_some()
    }

    /// The open targets of which this is true.
    fn those<C>(&self, course: &Course<C>, is: impl Fn(&Target) -> bool) -> Set {
        Set::of(
            self.open(course).iter().filter(|at| self.target(course, *at).is_some_and(|target| is(target))),
        )
    }

    fn leave_out<C>(&mut self, course: &Course<C>, those: Set, why: Skip) {
        for at in those.iter() {
            self.gone.insert(at);
            self.skip(course, at, why);
        }
    }

    /// Notes once that a target was passed over; it may still be asked later.
    fn tell<C>(&mut self, course: &Course<C>, at: usize, why: Skip) {
        if !self.cold().told.contains(at) {
            self.cold().told.insert(at);
            self.skip(course, at, why);
        }
    }

    fn skip<C>(&mut self, course: &Course<C>, at: usize, why: Skip) {
        if let Some(target) = self.target(course, at).cloned() {
            self.cold().attempts.push(Attempt::skipped(target, why));
        }
    }

    /// Tells who listens that another target is asked.
    pub(super) fn tell_hop<C>(&self, course: &Course<C>, from: usize) {
        let verdict = self.cold.as_ref().and_then(|cold| cold.last).map(|fact| fact.verdict);
        if let (Some(from), Some(to), Some(verdict)) =
            (self.target(course, from), self.target(course, self.current), verdict)
        {
            let (from, to) = (from.upstream().name(), to.upstream().name());
            course.rules.observers.raise(|| Event::FellOver {
                label: &course.rules.label,
                from,
                to,
                verdict,
            });
        }
    }

    /// The place of the target that is asked.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Whether the target has had its time.
    #[inline]
    pub(super) fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(until) = self.until else { return false };
        let timer = self.cold().timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        timer.as_mut().poll(cx).is_ready()
    }

    /// How far a good response is held back. `sent` is when it was asked for.
    pub(super) fn plan<C>(&self, sent: Option<Instant>, course: &Course<C>) -> Option<(Goal, Bounds)> {
        let bounds = |bytes, until: Option<Instant>| Bounds {
            bytes,
            until: [until, self.until].into_iter().flatten().min(),
        };
        match self.built(course)?.commit {
            Commit::Head => None,
            Commit::FirstContent => {
                let sent = sent.or(self.started).unwrap_or_else(time::now);
                let until = time::checked_add(sent, course.rules.hold_time.of_tokens(self.tokens));
                Some((Goal::FirstContent, bounds(course.rules.hold_bytes, until)))
            }
            Commit::End => Some((Goal::End, bounds(course.rules.answer_bytes, None))),
        }
    }

    /// How a failed response is kept for the caller.
    pub(super) fn plan_to_keep() -> (Goal, Bounds) {
        // As much as is read of an error anywhere here; providers send it with the head.
        const BYTES: usize = 64 * 1024;
        const TIME: Duration = Duration::from_secs(1);
        (Goal::Keep, Bounds { bytes: BYTES, until: time::checked_add(time::now(), TIME) })
    }

    /// Keeps this failed response; one that says what is wrong with the request stays.
    pub(super) fn keep(&mut self, response: R) {
        let cold = self.cold();
        let verdict = cold.last.map_or(Verdict::new(Class::Transient), |fact| fact.verdict);
        if !cold.kept.as_ref().is_some_and(|(_, kept)| kept.class() == Class::Invalid) {
            cold.kept = Some((response, verdict));
        }
    }

    /// The response that was kept, if there is one.
    pub(super) fn kept(&mut self) -> Option<R> {
        self.cold.as_mut()?.kept.take().map(|(response, _)| response)
    }

    /// The kept response that says what is wrong with the request, unless the last one said so too.
    pub(super) fn kept_invalid(&mut self) -> Option<R> {
        let cold = self.cold.as_mut()?;
        let last = cold.last.map(|fact| fact.verdict.class());
        let wins = last != Some(Class::Invalid)
            && cold.kept.as_ref().is_some_and(|(_, kept)| kept.class() == Class::Invalid);
        if wins { self.kept() } else { None }
    }

    /// Whether only one target was ever looked at: then its own failure says it all.
    pub(super) fn is_transparent(&self) -> bool {
        self.cold.as_ref().is_none_or(|cold| cold.attempts.len() == 1 && cold.last.is_some())
    }

    pub(super) fn attempts(&mut self) -> Attempts {
        Attempts(self.cold.as_mut().map(|cold| std::mem::take(&mut cold.attempts)).unwrap_or_default())
    }

    /// What a served response says of itself. `to_content` is how long it took, where somebody measured.
    pub(super) fn served<C>(&mut self, course: &Course<C>, early: bool) -> Option<Served> {
        let target = self.target(course, self.current)?.clone();
        Some(Served { target, attempts: self.attempts(), early })
    }

    /// Learns how fast the target was.
    #[inline]
    pub(super) fn learn<C>(&self, course: &Course<C>) {
        if let (Some(started), Some(target)) = (self.started, self.target(course, self.current)) {
            target.pace.observe(time::now() - started);
        }
    }

    /// Tells who listens that the chain is exhausted.
    pub(super) fn tell_end<C>(&self, course: &Course<C>) {
        course.rules.observers.raise(|| {
            let cold = self.cold.as_ref();
            let asked = cold.map_or(0, |cold| served::asked(&cold.attempts));
            let verdict = cold.and_then(|cold| cold.last).map(|fact| fact.verdict);
            Event::NoTargetLeft { label: &course.rules.label, asked, verdict }
        });
    }

    /// The refusal of a chain that is exhausted.
    pub(super) fn refusal<C>(&mut self, course: &Course<C>) -> Refusal {
        // A target may be left where the time is not.
        let total = RefusalKind::TimedOut(Phase::Total);
        let kind = if self.out_of_time() { total } else { RefusalKind::NoTarget };
        let refusal = Refusal::new(kind).with_label(course.rules.label.clone());
        let Some(cold) = self.cold.as_mut() else { return refusal };
        let retry_after = cold.retry_after;
        let attempts = Attempts(std::mem::take(&mut cold.attempts));
        let last = attempts.telling();
        let verdict = last.and_then(Attempt::verdict);
        let mut previous = Previous::new(verdict.unwrap_or(Verdict::new(Class::Refused)));
        if let Some(status) = last.and_then(Attempt::status) {
            previous = previous.with_status(status);
        }
        let refusal = refusal.with_previous(previous.with_error(Arc::new(attempts)));
        match retry_after {
            Some(wait) => refusal.with_retry_after(wait),
            None => refusal,
        }
    }
}

/// How many of the attempts that are left this target may have: its own number, else an even share; one is left for each
/// other target.
fn share(left: u32, target: &Target, others: u32) -> u32 {
    let most = left.saturating_sub(others).max(1);
    match target.attempts() {
        Some(attempts) => attempts.get().min(most),
        None => left.div_ceil(others + 1),
    }
    .min(left)
}

/// None of a route's targets may be asked.
pub(super) struct NoTarget;

/// What the layers below are told of an attempt.
struct Mark {
    another_target: bool,
    probe: bool,
    failed_elsewhere: bool,
    share: u32,
    /// How many targets were asked, this one included.
    hops: u32,
}

impl Mark {
    fn write(self, call: &mut Call) {
        call.another_target = self.another_target;
        call.probe = self.probe;
        call.failed_elsewhere |= self.failed_elsewhere;
        call.most_attempts = NonZeroU32::new(self.share);
        // Within another chain, what is no first target there is none here.
        call.hop = Some(call.hop.unwrap_or(1).max(1).saturating_add(self.hops - 1));
    }
}

/// The refusal where there is not even a route.
pub(super) fn no_target<C>(course: &Course<C>) -> Refusal {
    Refusal::new(RefusalKind::NoTarget).with_label(course.rules.label.clone())
}
