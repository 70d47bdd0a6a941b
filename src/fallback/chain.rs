//! One call on its way through its targets: which one is next, and what became of those before.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Sleep, sleep_until};

use super::health::Standing;
use super::layer::Rules;
use super::mode::Fact;
use super::order::{self, Order, Pace, Set};
use super::routes::{Built, Routes};
use super::served::{self, Attempt, Attempts, Served, Skip};
use super::target::Target;
use super::trigger::Away;
use crate::call::commit::{Bounds, Goal};
use crate::call::{Aim, Call, Commit, Describe, Destination};
use crate::deadline::Deadline;
use crate::monitor::Event;
use crate::refusal::{Phase, Previous, Refusal, RefusalKind};
use crate::time::{self, Instant};
use crate::verdict::{Class, Verdict};

/// One call on its way. `R` is what is kept of a failed response.
pub(super) struct Chain<R> {
    routes: Routes,
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
    /// How long content is waited for.
    patience: Duration,
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
    /// A call that begins, and its route.
    #[inline]
    pub(super) fn new<Req: Describe, C>(routes: Routes, request: &Req, rules: &Rules<C>) -> Option<Self> {
        let call = request.call();
        let model = call.and_then(|call| call.model.as_ref());
        let route = routes.table().find(model.map(AsRef::as_ref))?;
        let most = rules.max_attempts.get();
        let left = call.and_then(|call| call.most_attempts).map_or(most, |outer| outer.get().min(most));
        let patience = rules.hold_time.of(call);
        let mut chain = Self {
            routes,
            route,
            current: 0,
            gone: Set::default(),
            left,
            hops: 0,
            single: false,
            patience,
            started: None,
            until: None,
            cold: None,
        };
        if let Some(overrides) = request.overrides() {
            chain.single = overrides.is_single();
            let targets = &chain.built()?.targets;
            let denied =
                targets.iter().map(|target| !overrides.allows(target.upstream().name(), target.model()));
            chain.gone = Set::of(denied.enumerate().filter(|(_, denied)| *denied).map(|(at, _)| at));
        }
        Some(chain)
    }

    fn built(&self) -> Option<&Built> {
        self.routes.table().routes.get(self.route)
    }

    fn target(&self, at: usize) -> Option<&Arc<Target>> {
        self.built()?.targets.get(at)
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
    fn open(&self) -> Set {
        let count = self.built().map_or(0, |built| built.targets.len());
        if self.left == 0 || (self.single && self.has_asked()) {
            return Set::default();
        }
        Set::first(count).without(self.gone)
    }

    /// Whether the original request is still of use.
    pub(super) fn may_go_on(&self) -> bool {
        !self.open().is_empty() && !self.single
    }

    /// The request for the next target, if there is one.
    pub(super) fn next<Req: Aim + Describe, C>(&mut self, original: &Req, rules: &Rules<C>) -> Option<Req> {
        if self.has_asked() {
            self.cold().deadline = original.deadline();
            if self.out_of_time() {
                return None;
            }
        }
        loop {
            let (at, probe) = self.choose(original, rules)?;
            self.gone.insert(at);
            let table = self.routes.table();
            let target = table.routes.get(self.route)?.targets.get(at)?;
            let mut destination = Destination::new(target.upstream()).secrets(&table.secrets);
            if let Some(model) = target.model() {
                destination = destination.model(model);
            }
            match original.aim(&destination) {
                Ok(mut request) => {
                    self.begin(at);
                    let share = self.share(at);
                    if let Some(call) = request.call_mut() {
                        self.mark(call, share, probe);
                    }
                    self.left -= share;
                    return Some(request);
                }
                Err(misfit) => self.skip(at, Skip::Misfit(misfit)),
            }
        }
    }

    /// The clocks of an attempt at this target.
    fn begin(&mut self, at: usize) {
        self.current = at;
        self.hops += 1;
        (self.started, self.until) = (None, None);
        if let Some(cold) = &mut self.cold {
            cold.timer = None;
        }
        let timeout = self.target(at).and_then(|target| target.timeout());
        let timed = self.built().is_some_and(|built| built.order == Order::Fastest);
        if timed || timeout.is_some() {
            let now = time::now();
            self.started = Some(now);
            self.until = timeout.and_then(|timeout| time::checked_add(now, timeout));
        }
    }

    /// How many attempts this target may have: its own number, else an even share; one is left for each other target.
    fn share(&self, at: usize) -> u32 {
        let others = if self.single { 0 } else { self.open().len() };
        let most = self.left.saturating_sub(others).max(1);
        match self.target(at).and_then(|target| target.attempts()) {
            Some(attempts) => attempts.get().min(most),
            None => self.left.div_ceil(others + 1),
        }
        .min(self.left)
    }

    fn mark(&self, call: &mut Call, share: u32, probe: bool) {
        call.another_target = self.left > share && !self.open().is_empty() && !self.single;
        call.probe = probe;
        call.failed_elsewhere |= self.cold.as_ref().is_some_and(|cold| cold.failed_elsewhere);
        call.most_attempts = std::num::NonZeroU32::new(share);
        // Within another chain, what is no first target there is none here.
        call.hop = Some(call.hop.unwrap_or(1).max(1).saturating_add(self.hops - 1));
    }

    /// The next target, and whether it is asked with a probe.
    fn choose<Req: Describe, C>(&mut self, original: &Req, rules: &Rules<C>) -> Option<(usize, bool)> {
        let fit = self.large_enough(original.call());
        if fit.is_empty() {
            return None;
        }
        if rules.health.is_empty() {
            return self.pick(fit, original, rules).map(|at| (at, false));
        }
        self.choose_healthy(fit, original, rules)
    }

    /// Those whose context holds the request, as far as can be told. An estimate may err: where none is large enough, the
    /// largest is asked rather than none.
    fn large_enough(&mut self, call: Option<&Call>) -> Set {
        let open = self.open();
        let Some(tokens) = call.and_then(|call| call.estimate).map(|estimate| estimate.input_tokens) else {
            return open;
        };
        let context = |at| self.target(at).and_then(|target| target.context());
        let small = Set::of(open.iter().filter(|at| context(*at).is_some_and(|size| size < tokens)));
        let fit = open.without(small);
        if small.is_empty() || (fit.is_empty() && !self.has_asked()) {
            let largest = small.iter().max_by_key(|at| (context(*at), std::cmp::Reverse(*at)));
            return if small.is_empty() { fit } else { Set::of(largest.into_iter()) };
        }
        self.leave_out(small, Skip::Context);
        fit
    }

    #[cold]
    fn choose_healthy<Req: Describe, C>(
        &mut self,
        fit: Set,
        original: &Req,
        rules: &Rules<C>,
    ) -> Option<(usize, bool)> {
        let (mut serving, mut busy, mut out) = (Set::default(), Set::default(), Vec::new());
        for at in fit.iter() {
            let Some(target) = self.target(at) else { continue };
            let standings = rules.health.iter().map(|health| health.standing(target));
            match standings.fold(Standing::Serves, Standing::or) {
                Standing::Serves => serving.insert(at),
                Standing::Busy => busy.insert(at),
                Standing::Out(left) => out.push((left.unwrap_or(Duration::MAX), at)),
            }
        }
        let chosen = if serving.is_empty() { busy } else { serving };
        let Some(at) = self.pick(chosen, original, rules) else {
            let first = out.iter().min().map(|(_, at)| (*at, true)).filter(|_| !self.has_asked());
            if first.is_none() {
                for (_, at) in &out {
                    self.tell(*at, Skip::Out);
                }
            }
            return first;
        };
        for (_, passed) in out.iter().filter(|(_, passed)| *passed < at) {
            self.tell(*passed, Skip::Out);
        }
        if !serving.is_empty() {
            for passed in busy.iter().filter(|passed| *passed < at) {
                self.tell(passed, Skip::Busy);
            }
        }
        Some((at, false))
    }

    /// One of these, in the route's order or the call's own.
    fn pick<Req: Describe, C>(&self, among: Set, original: &Req, rules: &Rules<C>) -> Option<usize> {
        let built = self.built()?;
        let each = among.iter().filter_map(|at| built.targets.get(at).map(|target| (at, target)));
        if let Some(overrides) = original.overrides().filter(|overrides| overrides.orders()) {
            let place = |target: &Target| overrides.place(target.upstream().name(), target.model());
            let first = each.clone().filter_map(|(at, target)| place(target).map(|place| (place, at))).min();
            if let Some((_, at)) = first {
                return Some(at);
            }
        }
        match built.order {
            Order::Listed => among.iter().next(),
            Order::Weighted => {
                order::weighted(each.map(|(at, target)| (at, target.weight())), fastrand::u64(..))
            }
            Order::Cheapest => {
                let price = |target: &Target| rules.price.as_ref()?(target, original.call());
                order::least(each.map(|(at, target)| (at, price(target))))
            }
            Order::Fastest => {
                order::fastest(each.map(|(at, target)| (at, target.pace.get())), fastrand::u64(..))
            }
        }
    }

    /// Notes a failure; says whether another target may be asked after it.
    pub(super) fn failed<C>(&mut self, fact: Fact, rules: &Rules<C>) -> bool {
        let Some(target) = self.target(self.current).cloned() else { return false };
        let verdict = fact.verdict;
        // What a request or one of our own layers is to blame for says nothing of the target's pace.
        let slow = matches!(verdict.class(), Class::Transient | Class::Stalled | Class::Throttled);
        if let Some(started) = self.started.filter(|_| slow) {
            target.pace.observe((time::now() - started).saturating_add(Pace::FAILURE));
        }
        let away = target.settings.triggers.unwrap_or(rules.triggers).away(verdict);
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
                self.leave_out(self.those(same), Skip::Account);
            }
            Some(Away::Larger) => {
                let small =
                    |other: &Target| other.context().is_some_and(|size| Some(size) <= target.context());
                self.leave_out(self.those(small), Skip::Context);
            }
            Some(Away::Anywhere) | None => {}
        }
        away.is_some()
    }

    /// The open targets of which this is true.
    fn those(&self, is: impl Fn(&Target) -> bool) -> Set {
        Set::of(self.open().iter().filter(|at| self.target(*at).is_some_and(|target| is(target))))
    }

    fn leave_out(&mut self, those: Set, why: Skip) {
        for at in those.iter() {
            self.gone.insert(at);
            self.skip(at, why);
        }
    }

    /// Notes once that a target was passed over; it may still be asked later.
    fn tell(&mut self, at: usize, why: Skip) {
        if !self.cold().told.contains(at) {
            self.cold().told.insert(at);
            self.skip(at, why);
        }
    }

    fn skip(&mut self, at: usize, why: Skip) {
        if let Some(target) = self.target(at).cloned() {
            self.cold().attempts.push(Attempt::skipped(target, why));
        }
    }

    /// Tells who listens that another target is asked.
    pub(super) fn tell_hop<C>(&self, rules: &Rules<C>, from: usize) {
        let verdict = self.cold.as_ref().and_then(|cold| cold.last).map(|fact| fact.verdict);
        if let (Some(from), Some(to), Some(verdict)) = (self.target(from), self.target(self.current), verdict)
        {
            let (from, to) = (from.upstream().name(), to.upstream().name());
            rules.observers.raise(|| Event::FellOver { label: &rules.label, from, to, verdict });
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
    pub(super) fn plan<C>(&self, sent: Option<Instant>, rules: &Rules<C>) -> Option<(Goal, Bounds)> {
        let bounds = |bytes, until: Option<Instant>| Bounds {
            bytes,
            until: [until, self.until].into_iter().flatten().min(),
        };
        match self.built()?.commit {
            Commit::Head => None,
            Commit::FirstContent => {
                let sent = sent.or(self.started).unwrap_or_else(time::now);
                let until = time::checked_add(sent, self.patience);
                Some((Goal::FirstContent, bounds(rules.hold_bytes, until)))
            }
            Commit::End => Some((Goal::End, bounds(rules.answer_bytes, None))),
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
    pub(super) fn served(&mut self, early: bool) -> Option<Served> {
        let target = self.target(self.current)?.clone();
        Some(Served { target, attempts: self.attempts(), early })
    }

    /// Learns how fast the target was.
    #[inline]
    pub(super) fn learn(&self) {
        if let (Some(started), Some(target)) = (self.started, self.target(self.current)) {
            target.pace.observe(time::now() - started);
        }
    }

    /// Tells who listens that the chain is exhausted.
    pub(super) fn tell_end<C>(&self, rules: &Rules<C>) {
        rules.observers.raise(|| {
            let cold = self.cold.as_ref();
            let asked = cold.map_or(0, |cold| served::asked(&cold.attempts));
            let verdict = cold.and_then(|cold| cold.last).map(|fact| fact.verdict);
            Event::NoTargetLeft { label: &rules.label, asked, verdict }
        });
    }

    /// The refusal of a chain that is exhausted.
    pub(super) fn refusal<C>(&mut self, rules: &Rules<C>) -> Refusal {
        // A target may be left where the time is not.
        let total = RefusalKind::TimedOut(Phase::Total);
        let kind = if self.out_of_time() { total } else { RefusalKind::NoTarget };
        let refusal = Refusal::new(kind).with_label(rules.label.clone());
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

/// The refusal where there is not even a route.
pub(super) fn no_target<C>(rules: &Rules<C>) -> Refusal {
    Refusal::new(RefusalKind::NoTarget).with_label(rules.label.clone())
}
