//! The generic cell rate algorithm in integers; `now` is an argument.
//!
//! A meter is one number: the *theoretical arrival time* (TAT), at which the bucket will be full again. A request of
//! cost `c` moves it by `c` intervals, and may pass if it then lies no further ahead than a whole bucket takes to fill:
//!
//! ```text
//! tat' = max(tat, now) + cost · interval        passes if tat' ≤ now + burst · interval
//! ```
//!
//! Everything is counted in ticks of 1/64 ns since the bucket was made; a `u64` of them lasts nine years. A unit's
//! interval is a whole number of ticks, so that a burst of n is exactly n single units and the reported wait is exact.
//!
//! 1. One compare-and-swap decides and takes. Who loses it decides again.
//! 2. Several dimensions are taken one after the other; if one is short, those before it are given back. Nothing is ever
//!    admitted beyond a bound: a request passes only after all its dimensions were taken. What the race costs is that,
//!    while another is giving back, a request may be told to wait though it need not; it then asks again under the lock
//!    of the queue.
//! 3. A clock that goes backwards gains nothing: the TAT never does.

use smallvec::SmallVec;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::token_bucket::few::Few;

/// Ticks in a nanosecond.
pub(super) const TICKS: u64 = 64;
/// An instant beyond all others.
pub(super) const NEVER: u64 = u64::MAX;

/// Costs in units, one a dimension.
pub(super) type Costs = Few<u64>;

/// The whole nanoseconds that cover these ticks.
pub(super) const fn nanos_up(ticks: u64) -> u64 {
    ticks.div_ceil(TICKS)
}

/// An instant that lies between two that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rough {
    pub(super) earliest: u64,
    pub(super) latest: u64,
}

/// How fast a meter fills and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    /// Ticks in which one unit flows in.
    pub(super) interval: u64,
    /// Units.
    pub(super) burst: u64,
}

impl Rate {
    pub(super) const fn span(self, units: u64) -> u64 {
        self.interval.saturating_mul(units)
    }

    /// Where the TAT goes if `cost` passes now, or how many ticks too early it is.
    #[inline]
    pub(super) fn pass(self, tat: u64, now: u64, cost: u64) -> Result<u64, u64> {
        if cost == 0 {
            // What takes nothing is not held up by the debt of others.
            return Ok(tat);
        }
        let next = tat.max(now).saturating_add(self.span(cost));
        let limit = now.saturating_add(self.span(self.burst));
        if next <= limit { Ok(next) } else { Err(next - limit) }
    }

    /// The same at an instant that is only roughly known, where it is the same at each that it can be.
    #[inline]
    pub(super) fn pass_roughly(self, tat: u64, rough: Rough, cost: u64) -> Option<u64> {
        // A bucket that could be full by then holds as much as it does when that is: there the instant matters.
        if cost > 0 && tat < rough.latest { None } else { self.pass(tat, rough.earliest, cost).ok() }
    }

    /// When `cost` could pass, if nothing else happens.
    pub(super) fn earliest(self, tat: u64, cost: u64) -> u64 {
        tat.saturating_add(self.span(cost)).saturating_sub(self.span(self.burst))
    }

    /// How many units could pass now.
    pub(super) fn level(self, tat: u64, now: u64) -> u64 {
        let limit = now.saturating_add(self.span(self.burst));
        limit.saturating_sub(tat.max(now)) / self.interval
    }

    /// How many units are missing below an empty bucket.
    pub(super) fn debt(self, tat: u64, now: u64) -> u64 {
        tat.saturating_sub(now.saturating_add(self.span(self.burst))).div_ceil(self.interval)
    }

    /// The TAT at the rate `to` that means the same: units in use stay in use, as far as the new bucket holds them; debt
    /// stays debt; a full bucket stays full.
    pub(super) fn rescale(self, to: Self, tat: u64, now: u64) -> u64 {
        let scale = |ticks: u64| {
            let scaled = u128::from(ticks) * u128::from(to.interval) / u128::from(self.interval);
            u64::try_from(scaled).unwrap_or(NEVER)
        };
        let used = tat.saturating_sub(now);
        let (held, debt) = (used.min(self.span(self.burst)), used.saturating_sub(self.span(self.burst)));
        let held = scale(held).min(to.span(to.burst));
        now.saturating_add(held).saturating_add(scale(debt))
    }
}

/// Which dimension is short, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) dimension: usize,
    /// Ticks from now.
    pub(super) wait: u64,
}

impl Short {
    /// No dimension is short: a pause holds everybody up.
    pub(super) const NO_DIMENSION: usize = usize::MAX;
}

/// One dimension.
#[derive(Debug)]
pub(super) struct Meter {
    tat: AtomicU64,
    interval: AtomicU64,
    burst: AtomicU64,
}

impl Meter {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            tat: AtomicU64::new(0),
            interval: AtomicU64::new(rate.interval),
            burst: AtomicU64::new(rate.burst),
        }
    }

    /// The rate now. While it is being changed, a rate between the old one and the new one.
    #[inline]
    pub(super) fn rate(&self) -> Rate {
        Rate { interval: self.interval.load(Ordering::Relaxed), burst: self.burst.load(Ordering::Relaxed) }
    }

    pub(super) fn tat(&self) -> u64 {
        self.tat.load(Ordering::Acquire)
    }

    /// Takes `cost`, or says how many ticks too early it is.
    #[inline]
    pub(super) fn take(&self, now: u64, cost: u64) -> Result<(), u64> {
        if cost == 0 {
            return Ok(());
        }
        let rate = self.rate();
        let mut tat = self.tat.load(Ordering::Acquire);
        loop {
            let next = rate.pass(tat, now, cost)?;
            match self.tat.compare_exchange_weak(tat, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(seen) => tat = seen,
            }
        }
    }

    /// Takes `cost` at an instant that is only roughly known, if an exact one would change nothing.
    #[inline]
    fn take_roughly(&self, rough: Rough, cost: u64) -> bool {
        let rate = self.rate();
        let mut tat = self.tat.load(Ordering::Acquire);
        while let Some(next) = rate.pass_roughly(tat, rough, cost) {
            match self.tat.compare_exchange_weak(tat, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(seen) => tat = seen,
            }
        }
        false
    }

    /// Gives back what was just taken, because another dimension was short.
    fn undo(&self, cost: u64) {
        self.lower(self.rate().span(cost));
    }

    fn lower(&self, ticks: u64) {
        self.update(|tat| tat.saturating_sub(ticks));
    }

    fn update(&self, to: impl Fn(u64) -> u64) {
        let _ = self.tat.fetch_update(Ordering::AcqRel, Ordering::Acquire, |tat| Some(to(tat)));
    }

    /// Gives `units` of a `cost` back that was taken at the instant `since`.
    ///
    /// Where only what is `undrained` counts, no more comes back than what cannot have flowed in again since: then the
    /// bound of the rate holds for what was really used. Whatever else was taken or given back meanwhile, what was taken
    /// at `since` has not flowed in before `since + cost · interval`.
    pub(super) fn give_back(&self, now: u64, since: u64, cost: u64, units: u64, undrained: bool) {
        let rate = self.rate();
        let mut ticks = rate.span(units.min(cost));
        if undrained {
            ticks = ticks.min(since.saturating_add(rate.span(cost)).saturating_sub(now));
        }
        if ticks > 0 {
            self.lower(ticks);
        }
    }

    /// Takes `units` that are used already: the level may go below zero.
    pub(super) fn charge(&self, now: u64, units: u64) {
        let span = self.rate().span(units);
        self.update(|tat| tat.max(now).saturating_add(span));
    }

    /// At the instant `at` no more than `units` were left.
    pub(super) fn cap(&self, at: u64, units: u64) {
        let rate = self.rate();
        let tat = at.saturating_add(rate.span(rate.burst.saturating_sub(units)));
        if self.tat() < tat {
            self.tat.fetch_max(tat, Ordering::AcqRel);
        }
    }

    /// Fills at another rate from now on. Called by one thread at a time; a request that passes meanwhile may be charged
    /// by the one rate or the other.
    pub(super) fn set_rate(&self, now: u64, to: Rate) {
        let from = self.rate();
        self.interval.store(to.interval, Ordering::Relaxed);
        self.burst.store(to.burst, Ordering::Relaxed);
        self.update(|tat| from.rescale(to, tat, now));
    }
}

/// Several dimensions, taken all or none.
///
/// The first two lie beside the reference count that each call touches anyway.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Bucket {
    first: Meter,
    second: Option<Meter>,
    more: Box<[Meter]>,
}

impl Bucket {
    /// At least one rate.
    pub(super) fn new(first: Rate, rates: &[Rate]) -> Self {
        let mut meters = rates.iter().map(|&rate| Meter::new(rate));
        Self { first: Meter::new(first), second: meters.next(), more: meters.collect() }
    }

    pub(super) fn meters(&self) -> impl Iterator<Item = &Meter> {
        std::iter::once(&self.first).chain(&self.second).chain(&self.more)
    }

    pub(super) fn meter(&self, dimension: usize) -> Option<&Meter> {
        self.meters().nth(dimension)
    }

    pub(super) fn rates(&self) -> SmallVec<[Rate; 4]> {
        self.meters().map(Meter::rate).collect()
    }

    /// Takes all costs, or none and says which dimension is short for the longest time.
    #[expect(clippy::inline_always, reason = "so that the costs of usual requests stay in registers")]
    #[inline(always)]
    pub(super) fn take(&self, now: u64, costs: &Costs) -> Result<(), Short> {
        match costs {
            &Few::One([cost]) => self.first.take(now, cost).map_err(|wait| Short { dimension: 0, wait }),
            &Few::Two(costs) => match &self.second {
                Some(second) => self.take_two(second, now, costs),
                None => self.take_many(now, &costs),
            },
            &Few::Three(costs) => self.take_many(now, &costs),
            Few::More(costs) => self.take_many(now, costs),
        }
    }

    /// Takes all costs at an instant that is only roughly known, if an exact one would change nothing. If not, none is
    /// taken, and an exact one has to tell.
    #[expect(clippy::inline_always, reason = "so that the costs of usual requests stay in registers")]
    #[inline(always)]
    pub(super) fn take_roughly(&self, rough: Rough, costs: &Costs) -> bool {
        match (costs, &self.second) {
            (&Few::One([cost]), _) => self.first.take_roughly(rough, cost),
            (&Few::Two([cost, other]), Some(second)) => {
                let passes = second.rate().pass_roughly(second.tat(), rough, other).is_some();
                if !passes || !self.first.take_roughly(rough, cost) {
                    return false;
                }
                let taken = second.take_roughly(rough, other);
                if !taken {
                    self.first.undo(cost);
                }
                taken
            }
            // Rare enough to look at the clock.
            _ => false,
        }
    }

    /// Whether no dimension is full before this, and a rough instant can do for so few.
    #[inline]
    pub(super) fn is_not_full_before(&self, instant: u64) -> bool {
        let later = |meter: &Meter| meter.tat.load(Ordering::Relaxed) >= instant;
        later(&self.first) && self.second.as_ref().is_none_or(later) && self.more.is_empty()
    }

    #[inline(never)]
    fn take_two(&self, second: &Meter, now: u64, costs: [u64; 2]) -> Result<(), Short> {
        let [cost, other] = costs;
        let checked = second.rate().pass(second.tat(), now, other);
        if checked.is_ok() && self.first.take(now, cost).is_ok() {
            let Err(wait) = second.take(now, other) else { return Ok(()) };
            self.first.undo(cost);
            return Err(self.short(now, &costs).unwrap_or(Short { dimension: 1, wait }));
        }
        // Nothing is short any more: asked again, it may pass.
        Err(self.short(now, &costs).unwrap_or(Short { dimension: 0, wait: 1 }))
    }

    #[inline(never)]
    fn take_many(&self, now: u64, costs: &[u64]) -> Result<(), Short> {
        if let Some(short) = self.short(now, costs) {
            return Err(short);
        }
        for (dimension, (meter, &cost)) in self.meters().zip(costs).enumerate() {
            if let Err(wait) = meter.take(now, cost) {
                for (meter, &cost) in self.meters().zip(costs.iter().take(dimension)) {
                    meter.undo(cost);
                }
                return Err(Short { dimension, wait });
            }
        }
        Ok(())
    }

    /// The dimension that is short for the longest time.
    #[inline(never)]
    pub(super) fn short(&self, now: u64, costs: &[u64]) -> Option<Short> {
        let waits = self.meters().zip(costs).enumerate();
        let waits = waits.filter_map(|(dimension, (meter, &cost))| {
            let wait = meter.rate().pass(meter.tat(), now, cost).err()?;
            Some(Short { dimension, wait })
        });
        waits.max_by_key(|short| short.wait)
    }

    /// The first dimension that could not bear its cost even if the bucket were full.
    pub(super) fn too_large(&self, costs: &[u64]) -> Option<usize> {
        self.meters().zip(costs).position(|(meter, &cost)| cost > meter.rate().burst)
    }

    /// Whether it decides as a fresh one would.
    pub(super) fn is_full(&self, now: u64) -> bool {
        self.meters().all(|meter| meter.tat() <= now)
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    /// What a request of several dimensions does when another was quicker at one of them, which no test can time.
    #[test]
    fn what_is_undone_is_back_to_the_tick() {
        let meter = Meter::new(Rate { interval: 7, burst: 10 });
        meter.take(3, 4).unwrap();
        let before = meter.tat();
        meter.take(3, 5).unwrap();
        meter.undo(5);
        assert_eq!(meter.tat(), before);
    }
}
