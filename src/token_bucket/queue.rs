//! Who waits, in which order, and until when; `now` is an argument.
//!
//! Places are tickets, served first come, first served: nobody passes a heavy request that waits. Whoever is awake grants
//! all that is due, in order and in their name, so that a waiter whose task is never polled holds up nobody. When each
//! waiter will be served is known from the costs before it, so that a wait which cannot fit is refused at once: on
//! joining, and again when a debt, a pause or a lower rate moves everyone back.
//!
//! Wake-ups: a waiter sleeps until its own time. What moves times *forward* (a refund, a place given up, a grant before
//! it) wakes the first in line, which sleeps anew until its new time, and wakes the next when it is served. What moves
//! them back wakes only those who are refused.

use std::collections::BTreeMap;
use std::task::Waker;

use smallvec::SmallVec;

use crate::token_bucket::bucket::{Bucket, Costs, Meter, NEVER, Rate, Short};

/// Wakers to be woken, or just dropped, once the lock is free: both may run foreign code.
#[derive(Default)]
pub(super) struct Wakers {
    pub(super) wake: SmallVec<[Waker; 2]>,
    pub(super) discard: SmallVec<[Waker; 1]>,
}

/// A place in the line.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) costs: Costs,
    /// Served later than this it is refused.
    pub(super) latest: u64,
    /// Its share of the spread after a pause, in 2⁻³² of the widest gap.
    pub(super) jitter: u32,
    /// When it is served, as far as is known.
    at: u64,
    waker: Option<Waker>,
}

impl Waiter {
    pub(super) fn new(costs: Costs, latest: u64, jitter: u32) -> Self {
        Self { costs, latest, jitter, at: NEVER, waker: None }
    }
}

/// How a wait ended, or how long it goes on.
#[derive(Debug)]
pub(super) enum Polled {
    /// What was taken, and when.
    Granted(u64, Costs),
    Refused(Short),
    /// Ask again at this instant, or when woken.
    Pending(u64),
}

/// What became of a newcomer.
#[derive(Debug)]
pub(super) enum Joined {
    Granted(Costs),
    /// It would be served too late, by this much from now.
    Refused(Short),
    /// It has a place, and is served at this instant.
    Waits {
        ticket: u64,
        at: u64,
    },
}

/// How those who waited for the end of a pause are let go: one by one, with random gaps.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// The end of the pause, or the last grant after it.
    last: u64,
    /// From here on nobody is held back.
    until: u64,
    /// The widest gap; 0 until the first is let go, for as long as the number of waiters is not known.
    gap: u64,
}

/// Where the bucket will stand when those planned so far are through.
#[derive(Clone, Debug)]
struct Plan {
    tats: SmallVec<[u64; 4]>,
    rates: SmallVec<[Rate; 4]>,
    now: u64,
    at: u64,
    gap: u64,
    spread_until: u64,
}

impl Plan {
    /// When the next in line is served, and which dimension it waits for.
    fn step(&mut self, waiter: &Waiter) -> (u64, usize) {
        let mut dimension = Short::NO_DIMENSION;
        if self.at < self.spread_until {
            self.at = self.at.saturating_add(share(self.gap, waiter.jitter)).min(self.spread_until);
        }
        self.at = self.at.max(self.now);
        for (index, (rate, &cost)) in self.rates.iter().zip(&*waiter.costs).enumerate() {
            let earliest = self.tats.get(index).map_or(0, |&tat| rate.earliest(tat, cost));
            if cost > 0 && earliest > self.at {
                self.at = earliest;
                dimension = index;
            }
        }
        for ((rate, tat), &cost) in self.rates.iter().zip(&mut self.tats).zip(&*waiter.costs) {
            if cost > 0 {
                *tat = (*tat).max(self.at).saturating_add(rate.span(cost));
            }
        }
        (self.at, dimension)
    }
}

/// The line.
#[derive(Debug, Default)]
pub(super) struct Queue {
    next_ticket: u64,
    line: BTreeMap<u64, Waiter>,
    /// Those who are through, until they have fetched the answer.
    done: BTreeMap<u64, Result<(u64, Costs), Short>>,
    /// The plan to the end of the line, while it holds.
    tail: Option<Plan>,
    spread: Option<Spread>,
    /// Nobody is served before.
    paused: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether nobody has a place or an answer to fetch.
    pub(super) fn is_idle(&self) -> bool {
        self.line.is_empty() && self.done.is_empty()
    }

    /// Serves a newcomer at once if nobody is before it, and else gives it a place, unless it would be too late. An error
    /// says that there are `bound` waiters already, and when it would have been served.
    pub(super) fn join(
        &mut self,
        bucket: &Bucket,
        now: u64,
        waiter: Waiter,
        bound: usize,
        wakers: &mut Wakers,
    ) -> Result<Joined, Short> {
        self.serve(bucket, now, wakers);
        let is_free = self.line.is_empty() && self.paused <= now;
        if is_free && bucket.take(now, &waiter.costs).is_ok() {
            return Ok(Joined::Granted(waiter.costs));
        }
        let mut plan = match self.tail.take() {
            Some(plan) if !self.line.is_empty() => plan,
            _ => self.plan(bucket, now, wakers),
        };
        let before = plan.clone();
        let (at, dimension) = plan.step(&waiter);
        let short = Short { dimension, wait: at.saturating_sub(now) };
        if at > waiter.latest || self.line.len() >= bound {
            self.tail = Some(before);
            return if at > waiter.latest { Ok(Joined::Refused(short)) } else { Err(short) };
        }
        self.tail = Some(plan);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.line.insert(ticket, Waiter { at, ..waiter });
        if self.spread.is_some_and(|spread| spread.gap == 0) {
            // The more there are, the smaller are the gaps: those before it move forward.
            self.tail = None;
            self.wake_first(wakers);
        }
        Ok(Joined::Waits { ticket, at })
    }

    /// Asks after a place. `waker` is kept for as long as it is pending.
    pub(super) fn poll(
        &mut self,
        bucket: &Bucket,
        now: u64,
        ticket: u64,
        waker: Waker,
        wakers: &mut Wakers,
    ) -> Polled {
        self.serve(bucket, now, wakers);
        let is_first = self.line.first_key_value().is_some_and(|(&first, _)| first == ticket);
        let is_late = self.line.get(&ticket).is_some_and(|waiter| waiter.at <= now);
        if is_first || is_late {
            // A timer that was set for an earlier plan, or a time that has moved.
            let plan = self.plan(bucket, now, wakers);
            self.tail = Some(plan);
        }
        match self.done.remove(&ticket) {
            Some(Ok((since, costs))) => return Polled::Granted(since, costs),
            Some(Err(short)) => return Polled::Refused(short),
            None => {}
        }
        let Some(waiter) = self.line.get_mut(&ticket) else {
            unreachable!("a ticket is in the line or done until it is fetched or given up");
        };
        wakers.discard.extend(waiter.waker.replace(waker));
        Polled::Pending(waiter.at)
    }

    /// Gives a place up. What was granted meanwhile is handed out, to be given back.
    pub(super) fn leave(
        &mut self,
        bucket: &Bucket,
        now: u64,
        ticket: u64,
        wakers: &mut Wakers,
    ) -> Option<(u64, Costs)> {
        if let Some(waiter) = self.line.remove(&ticket) {
            wakers.discard.extend(waiter.waker);
            self.moved_up(bucket, now, wakers);
            return None;
        }
        self.done.remove(&ticket)?.ok()
    }

    /// Times have moved forward: something was given back, or a place given up.
    pub(super) fn moved_up(&mut self, bucket: &Bucket, now: u64, wakers: &mut Wakers) {
        self.tail = None;
        self.serve(bucket, now, wakers);
        self.wake_first(wakers);
    }

    /// Times have moved back: whoever can no longer be served in time hears it now.
    pub(super) fn moved_back(&mut self, bucket: &Bucket, now: u64, wakers: &mut Wakers) {
        let plan = self.plan(bucket, now, wakers);
        self.tail = Some(plan);
    }

    /// Serves nobody before `until`; those who wait then come one by one within `spread`.
    pub(super) fn pause(&mut self, bucket: &Bucket, now: u64, until: u64, spread: u64, wakers: &mut Wakers) {
        if until <= self.paused {
            return;
        }
        self.paused = until;
        self.spread = Some(Spread { last: until, until: until.saturating_add(spread), gap: 0 });
        self.moved_back(bucket, now, wakers);
    }

    /// Ends a pause early.
    pub(super) fn resume(&mut self, bucket: &Bucket, now: u64, wakers: &mut Wakers) {
        (self.paused, self.spread) = (0, None);
        self.moved_up(bucket, now, wakers);
    }

    /// Grants all that is due, in order.
    fn serve(&mut self, bucket: &Bucket, now: u64, wakers: &mut Wakers) {
        let mut served = false;
        while let Some((_, waiter)) = self.line.first_key_value() {
            if now < self.free_at(now, waiter) {
                break;
            }
            // Served later than planned, a meter that has run full meanwhile stands elsewhere than planned.
            let as_planned = self.spread.is_none()
                && bucket.meters().zip(&*waiter.costs).all(|(meter, &cost)| cost == 0 || meter.tat() >= now);
            if bucket.take(now, &waiter.costs).is_err() {
                break;
            }
            let Some((ticket, waiter)) = self.line.pop_first() else { break };
            if let Some(spread) = &mut self.spread {
                spread.gap = spread.widest(self.line.len() + 1);
                spread.last = now;
            }
            self.done.insert(ticket, Ok((now, waiter.costs)));
            wakers.wake.extend(waiter.waker);
            served = true;
            if !as_planned {
                self.tail = None;
            }
        }
        if self.spread.is_some_and(|spread| now >= spread.until) {
            self.spread = None;
        }
        if served {
            self.wake_first(wakers);
        }
    }

    /// Before when the first in line is not served, whatever the bucket holds.
    fn free_at(&self, now: u64, first: &Waiter) -> u64 {
        let Some(spread) = &self.spread else { return self.paused };
        if now >= spread.until {
            return self.paused;
        }
        let gap = share(spread.widest(self.line.len()), first.jitter);
        spread.last.saturating_add(gap).min(spread.until).max(self.paused)
    }

    /// Goes through the line: says to each when it is served, and refuses who would be too late.
    fn plan(&mut self, bucket: &Bucket, now: u64, wakers: &mut Wakers) -> Plan {
        let tats = bucket.meters().map(Meter::tat).collect();
        let mut plan =
            Plan { tats, rates: bucket.rates(), now, at: now.max(self.paused), gap: 0, spread_until: 0 };
        if let Some(spread) = self.spread.filter(|spread| now < spread.until) {
            plan.at = spread.last;
            plan.gap = spread.widest(self.line.len());
            plan.spread_until = spread.until;
        }
        let mut late = SmallVec::<[(u64, Short); 2]>::new();
        for (&ticket, waiter) in &mut self.line {
            let before = plan.clone();
            let (at, dimension) = plan.step(waiter);
            if at > waiter.latest {
                late.push((ticket, Short { dimension, wait: at.saturating_sub(now) }));
                plan = before;
            }
            waiter.at = at;
        }
        for (ticket, short) in late {
            if let Some(waiter) = self.line.remove(&ticket) {
                self.done.insert(ticket, Err(short));
                wakers.wake.extend(waiter.waker);
            }
        }
        plan.at = plan.at.max(now);
        plan
    }

    fn wake_first(&mut self, wakers: &mut Wakers) {
        if let Some(mut first) = self.line.first_entry() {
            wakers.wake.extend(first.get_mut().waker.take());
        }
    }
}

impl Spread {
    /// The widest gap: its mean spreads the waiters there were when the first was let go over what the spread lasts.
    fn widest(&self, waiters: usize) -> u64 {
        if self.gap > 0 {
            return self.gap;
        }
        let lasts = self.until.saturating_sub(self.last);
        lasts.saturating_mul(2) / u64::try_from(waiters.max(1)).unwrap_or(u64::MAX)
    }
}

/// `jitter` 2⁻³² parts of a gap.
fn share(gap: u64, jitter: u32) -> u64 {
    u64::try_from((u128::from(gap) * u128::from(jitter)) >> 32).unwrap_or(NEVER)
}
