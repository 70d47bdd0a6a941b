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

/// Ticks in a nanosecond.
pub(super) const TICKS: u64 = 64;
/// An instant beyond all others.
pub(super) const NEVER: u64 = u64::MAX;

/// Costs in units, one a dimension.
pub(super) type Costs = SmallVec<[u64; 4]>;
/// What was taken, one a dimension.
pub(super) type Charges = SmallVec<[Charge; 4]>;

/// The whole nanoseconds that cover these ticks.
pub(super) const fn nanos_up(ticks: u64) -> u64 {
    ticks.div_ceil(TICKS)
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
        let next = tat.max(now).saturating_add(self.span(cost));
        let limit = now.saturating_add(self.span(self.burst));
        if next <= limit { Ok(next) } else { Err(next - limit) }
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

/// What was taken of one dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charge {
    /// Units.
    pub(super) cost: u64,
    /// The TAT after it, plus what had been given back by then.
    pub(super) until: u64,
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
    /// Ticks given back so far.
    returned: AtomicU64,
}

impl Meter {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            tat: AtomicU64::new(0),
            interval: AtomicU64::new(rate.interval),
            burst: AtomicU64::new(rate.burst),
            returned: AtomicU64::new(0),
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

    #[inline]
    pub(super) fn take(&self, now: u64, cost: u64) -> Result<Charge, u64> {
        if cost == 0 {
            // What takes nothing is not held up by the debt of others.
            return Ok(Charge::default());
        }
        let rate = self.rate();
        let mut tat = self.tat.load(Ordering::Acquire);
        loop {
            let next = rate.pass(tat, now, cost)?;
            match self.tat.compare_exchange_weak(tat, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let until = next.saturating_add(self.returned.load(Ordering::Relaxed));
                    return Ok(Charge { cost, until });
                }
                Err(seen) => tat = seen,
            }
        }
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

    /// Gives `units` of a charge back.
    ///
    /// Where only what has `undrained` counts, no more comes back than what has not flowed in again since: then it is, at
    /// every instant, as if the units had never been taken, and the bound of the rate holds for what was really used.
    pub(super) fn give_back(&self, now: u64, charge: Charge, units: u64, undrained: bool) {
        let mut ticks = self.rate().span(units.min(charge.cost));
        if undrained {
            // What others gave back since has moved this charge forward.
            let place = charge.until.saturating_sub(self.returned.load(Ordering::Acquire));
            ticks = ticks.min(place.saturating_sub(now));
            self.returned.fetch_add(ticks, Ordering::AcqRel);
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

    /// Takes all costs, or none and says which dimension is short for how long.
    #[inline]
    pub(super) fn take(&self, now: u64, costs: &[u64]) -> Result<Charges, Short> {
        let mut charges = Charges::new();
        if let (None, &[cost]) = (&self.second, costs) {
            let taken = self.first.take(now, cost).map_err(|wait| Short { dimension: 0, wait })?;
            charges.push(taken);
            return Ok(charges);
        }
        if let Some(short) = self.short(now, costs) {
            return Err(short);
        }
        for (dimension, (meter, &cost)) in self.meters().zip(costs).enumerate() {
            match meter.take(now, cost) {
                Ok(charge) => charges.push(charge),
                Err(wait) => {
                    for (meter, charge) in self.meters().zip(&charges) {
                        meter.undo(charge.cost);
                    }
                    return Err(Short { dimension, wait });
                }
            }
        }
        Ok(charges)
    }

    /// The dimension that is short for the longest time.
    pub(super) fn short(&self, now: u64, costs: &[u64]) -> Option<Short> {
        let waits = self.meters().zip(costs).enumerate();
        let waits = waits.filter(|(_, (_, cost))| **cost > 0).filter_map(|(dimension, (meter, &cost))| {
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
