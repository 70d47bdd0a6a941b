//! The proof of an admission, and what it votes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::call::Outcome;
use crate::gate::{End, Follow, Heads, Permit};
use crate::monitor::Event;
use crate::time::{self, Instant};
use crate::verdict::{Class, Classify, Verdict};

use super::gate::Inner;
use super::settings::{Slow, SlowUntil, Vote};
use super::state::{NEVER, Sample, Ticket};

/// The proof that a breaker admitted an attempt. It votes when the attempt is over.
pub struct BreakerPermit<C> {
    inner: Arc<Inner<C>>,
    ticket: Ticket,
    /// When the inner service first let us wait; never, as long as it has not.
    since: u64,
    /// Up to the head, from `since`.
    to_head: u64,
    verdict: Option<Verdict>,
    has_head: bool,
    spared: bool,
}

impl<C> BreakerPermit<C> {
    #[inline]
    pub(super) fn new(inner: Arc<Inner<C>>, ticket: Ticket) -> Self {
        Self { inner, ticket, since: NEVER, to_head: 0, verdict: None, has_head: false, spared: false }
    }

    /// Another target has failed with this request: if this one fails too, that says little about it.
    pub(super) fn spared(mut self) -> Self {
        self.spared = true;
        self
    }

    fn waited(&self, now: u64) -> u64 {
        now.saturating_sub(self.since)
    }

    /// What the attempt has come to.
    fn judge(&self, end: End, outcome: Option<&Outcome>, now: u64) -> Verdict {
        let read = outcome.and_then(Outcome::verdict);
        let read_failure = read.filter(|verdict| !verdict.is_success());
        match end {
            End::Unsent => Verdict::new(Class::Refused),
            End::Failed => self.verdict.unwrap_or(Verdict::new(Class::Transient)),
            End::Complete => match self.verdict {
                Some(verdict) if !verdict.is_success() => verdict,
                seen => read.or(seen).unwrap_or(Verdict::SUCCESS),
            },
            // What breaks after the terminal event of its stream was complete.
            End::Broken => match read {
                Some(verdict) if outcome.is_some_and(Outcome::is_finished) => verdict,
                _ => read_failure.unwrap_or(Verdict::new(Class::Transient)),
            },
            End::Abandoned => match read_failure {
                Some(verdict) => verdict,
                None if self.has_head || self.waited(now) < self.inner.settings.abandoned_counts_after => {
                    Verdict::new(Class::Abandoned)
                }
                None => Verdict::new(Class::Stalled),
            },
        }
    }

    fn is_slow(&self, rule: Slow, outcome: Option<&Outcome>, now: Instant) -> bool {
        let from_sent = outcome.map(|outcome| match rule.until {
            SlowUntil::Head => outcome.to_head(),
            SlowUntil::Content => outcome.to_content().or_else(|| outcome.to_head()),
            SlowUntil::End => outcome.to_end().or(Some(now.saturating_duration_since(outcome.sent()))),
        });
        let took = match (from_sent.flatten(), rule.until) {
            (Some(took), _) => time::nanos(took),
            (None, SlowUntil::Head | SlowUntil::Content) if self.has_head => self.to_head,
            (None, _) => self.waited(self.inner.tick(now)),
        };
        took >= rule.at_least
    }

    fn vote(&self, verdict: &Verdict) -> Vote {
        match self.inner.settings.vote(verdict) {
            Vote::Failure if self.spared => Vote::Neutral,
            vote => vote,
        }
    }
}

impl<C> Permit for BreakerPermit<C> {
    #[inline]
    fn settle(&mut self, end: End, outcome: Option<&Outcome>) {
        // The healthy call has nothing to weigh, and a tick more or less decides only which bucket it is counted in.
        let good = self.verdict.as_ref().is_some_and(Verdict::is_success);
        let plain = end == End::Complete && outcome.is_none() && self.ticket.probe == 0;
        if good
            && plain
            && self.inner.settings.slow.is_none()
            && self.inner.cell.add_success(self.inner.origin.elapsed_coarse(), self.ticket)
        {
            return;
        }
        let clock = time::now();
        self.weigh(end, outcome, clock, self.inner.tick(clock));
    }

    #[inline]
    fn pending(&mut self) {
        if self.since == NEVER {
            self.since = self.inner.now();
        }
    }
}

impl<C> BreakerPermit<C> {
    /// Settles whatever is not plainly good.
    #[inline(never)]
    fn weigh(&self, end: End, outcome: Option<&Outcome>, clock: Instant, now: u64) {
        let inner = &*self.inner;
        let verdict = self.judge(end, outcome, now);
        let vote = self.vote(&verdict);
        let slow = inner.settings.slow.is_some_and(|rule| self.is_slow(rule, outcome, clock));
        let hint = verdict.hint().map_or(0, time::nanos);
        inner.settle(now, self.ticket, Sample { vote, slow, hint });
        if end == End::Abandoned {
            inner.abandoned.fetch_add(1, Ordering::Relaxed);
            inner.shared.observers.raise(|| Event::Abandoned { label: &inner.label });
        }
    }
}

impl<Res, E, C: Classify<Res, E>> Heads<Res, E> for BreakerPermit<C> {
    #[inline]
    fn head(&mut self, head: Result<&Res, &E>) -> Follow {
        // Before the user's code, so that its panic is no vote.
        self.has_head = true;
        let verdict = self.inner.shared.classifier.classify(head);
        self.verdict = Some(verdict);
        if self.inner.settings.slow.is_some_and(|rule| rule.until != SlowUntil::End) && self.since != NEVER {
            self.to_head = self.waited(self.inner.now());
        }
        if verdict.is_success() { Follow::Body } else { Follow::Settle }
    }
}

impl<C> fmt::Debug for BreakerPermit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerPermit")
            .field("breaker", &self.inner.label.name())
            .field("generation", &self.ticket.generation)
            .field("is_probe", &(self.ticket.probe != 0))
            .finish_non_exhaustive()
    }
}
