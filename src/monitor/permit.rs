//! The permit of a monitor: it sees one call, or one attempt, to its end.

use std::fmt;
use std::sync::Arc;

use super::counts::{Done, NONE};
use super::gate::Scope;
use super::look::Look;
use super::monitor::{Monitor, Stripe};
use super::stripes::What;
use super::trace::Trace;
use super::words::class_index;
use crate::call::{Call, Key, Outcome, Usage};
use crate::gate::{End, Follow, Heads, Permit};
use crate::refusal::RefusalKind;
use crate::time;
use crate::verdict::Class;

const NEVER: u64 = u64::MAX;

/// A call, or an attempt, that a monitor sees to its end.
pub struct Watched<L> {
    stripe: Arc<Stripe>,
    look: L,
    scope: Scope,
    target: u16,
    retry: bool,
    fallback: bool,
    began: u64,
    head: u64,
    /// What the head said, once it is there.
    class: Option<Class>,
    /// Whether a body followed.
    followed: bool,
    refused: Option<RefusalKind>,
    /// What an own type said it used, for there may be no outcome.
    used: [u32; 3],
    /// The names of a target that has no place of its own yet.
    unproven: Option<Box<(Option<Key>, Key)>>,
    trace: Trace,
}

impl<L> Watched<L> {
    #[inline]
    pub(super) fn begin(monitor: &Monitor, scope: Scope, call: Option<&Call>, look: L) -> Self {
        let stripe = monitor.mine(scope).clone();
        let began = stripe.inner.now();
        let (mut target, mut unproven) = (super::directory::OTHERS, None);
        let (mut retry, mut fallback) = (false, false);
        if scope == Scope::Attempts {
            let model = call.and_then(|call| call.model.as_ref());
            let upstream = call.and_then(|call| call.upstream.as_ref());
            let (number, own) = stripe.inner.directory.target(upstream, model);
            target = number;
            if !own && let Some(model) = model {
                unproven = Some(Box::new((upstream.cloned(), model.clone())));
            }
            retry = call.and_then(|call| call.attempt).is_some_and(|attempt| attempt > 1);
            fallback = !retry && call.and_then(|call| call.hop).is_some_and(|hop| hop > 1);
        }
        Self {
            stripe,
            look,
            scope,
            target,
            retry,
            fallback,
            began,
            head: NEVER,
            class: None,
            followed: false,
            refused: None,
            used: [0; 3],
            unproven,
            trace: Trace::begin(scope, call),
        }
    }

    /// How it ended.
    fn class(&self, end: End, outcome: Option<&Outcome>) -> Class {
        match (self.class, end) {
            // A failing head decides: what becomes of its body changes nothing.
            (Some(class), _) if class != Class::Success => class,
            (_, End::Abandoned | End::Unsent) => Class::Abandoned,
            (None, _) => Class::Transient,
            (Some(head), end) => {
                let late = outcome.and_then(Outcome::verdict).map(|verdict| verdict.class());
                match (late, end) {
                    (Some(class), _) if class != Class::Success => class,
                    // An answer that was complete stays one, though its body broke after it.
                    (late, End::Broken) if late.is_none() || !outcome.is_some_and(Outcome::is_finished) => {
                        Class::Transient
                    }
                    _ => head,
                }
            }
        }
    }

    /// From the beginning, or from sending, to head, content and end.
    #[inline]
    fn times(&self, now: u64, ended: bool, outcome: Option<&Outcome>) -> [u32; 3] {
        let head = if self.head == NEVER { NONE } else { micros(self.head.saturating_sub(self.began)) };
        let end_if = |end: u64| if ended { micros(end) } else { NONE };
        let Some(outcome) = outcome else { return [head, NONE, end_if(now.saturating_sub(self.began))] };
        apart(&self.times_by(outcome, head, now, end_if))
    }

    fn times_by(&self, outcome: &Outcome, head: u32, now: u64, end_if: impl Fn(u64) -> u32) -> [u32; 3] {
        let sent = self.stripe.inner.nanos(outcome.sent());
        let content = outcome.to_content().map(time::nanos);
        if self.scope == Scope::Attempts {
            // The upstream's own time, without waits in queues above it.
            let told = |mark: Option<u64>| mark.map_or(NONE, micros);
            let end = outcome.to_end().map_or(now.saturating_sub(sent), time::nanos);
            return [told(outcome.to_head().map(time::nanos)), told(content), end_if(end)];
        }
        let content =
            content.map_or(NONE, |mark| micros(sent.saturating_add(mark).saturating_sub(self.began)));
        [head, content, end_if(now.saturating_sub(self.began))]
    }

    #[inline]
    fn used(&self, outcome: Option<&Outcome>) -> [u32; 3] {
        let Some(outcome) = outcome else { return apart(&self.used) };
        tokens(&outcome.usage())
    }
}

/// The same numbers, read one by one: read together soon after they were written one by one, they would be waited for.
#[inline]
fn apart(&[first, second, third]: &[u32; 3]) -> [u32; 3] {
    [first, second, third]
}

/// Nanoseconds as microseconds, rounded down; the longest that can be told is 71 minutes.
#[inline]
fn micros(nanos: u64) -> u32 {
    u32::try_from(nanos / 1000).unwrap_or(NONE).min(NONE - 1)
}

/// Input, output, cached. No single answer uses more than can be said; what claims to is not believed.
#[inline]
fn tokens(usage: &Usage) -> [u32; 3] {
    let said = |tokens: Option<u64>| tokens.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(0);
    [usage.input, usage.output, usage.cached].map(said)
}

impl<L> Permit for Watched<L> {
    #[inline]
    fn settle(&mut self, end: End, outcome: Option<&Outcome>) {
        let inner = &self.stripe.inner;
        let class = self.class(end, outcome);
        // A response without a body ended at its head.
        let now = if self.head == NEVER || self.followed { inner.now() } else { self.head };
        let ended = self.head != NEVER && matches!(end, End::Complete | End::Broken);
        let done = Done {
            class: u8::try_from(class_index(class)).expect("there are ten classes"),
            refused: self.refused,
            times: self.times(now, ended, outcome),
            tokens: self.used(outcome),
            retry: self.retry,
            fallback: self.fallback,
        };
        self.trace.end(class, self.refused, done.tokens);
        let mut target = self.target;
        if class == Class::Success
            && let Some(names) = &self.unproven
        {
            target = inner.directory.proven(names.0.as_ref(), &names.1);
        }
        let what = match self.scope {
            Scope::Calls => What::Call(done),
            Scope::Attempts => What::Attempt(target, done),
        };
        self.stripe.record(now, what);
        if class == Class::Denied && self.scope == Scope::Attempts {
            inner.denied(now, target);
        }
    }

    #[inline]
    fn scope<T>(&self, run: impl FnOnce() -> T) -> T {
        self.trace.within(run)
    }

    fn followed(&mut self) {
        self.followed = true;
    }
}

impl<Res, E, L: Look<Res, E>> Heads<Res, E> for Watched<L> {
    #[inline]
    fn head(&mut self, head: Result<&Res, &E>) -> Follow {
        let seen = self.look.look(head);
        self.class = Some(seen.verdict.class());
        self.refused = seen.refused;
        if head.is_err() {
            return Follow::Settle;
        }
        self.head = self.stripe.inner.now();
        if let Some(usage) = &seen.usage {
            self.used = tokens(usage);
        }
        Follow::Body
    }
}

impl<L> fmt::Debug for Watched<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("scope", &self.scope)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}
