//! The handle: how a bucket stands, and what can be changed at run time.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::config_error::ConfigError;
use crate::monitor::{Gauge, Gauges};
use crate::sync::lock;
use crate::token_bucket::bucket::nanos_up;
use crate::token_bucket::gate::{Current, State, TokenBucket};
use crate::token_bucket::quota::Quota;

impl<U, R> TokenBucket<U, R> {
    /// The names of the dimensions, in the order they were given.
    pub fn dimensions(&self) -> impl Iterator<Item = &str> {
        self.state.config.dimensions.iter().map(|dimension| &*dimension.name)
    }

    /// How one dimension stands; `None` if there is none of this name. Reading changes nothing.
    #[must_use]
    pub fn level(&self, dimension: &str) -> Option<Level> {
        let index = self.dimensions().position(|name| name == dimension)?;
        Some(self.level_at(index, self.state.now()))
    }

    pub(super) fn level_at(&self, index: usize, now: u64) -> Level {
        let quota = lock(&self.state.current[index]).quota;
        let meter = self.state.core.bucket.meter(index).expect("each dimension has a meter");
        let (rate, tat) = (meter.rate(), meter.tat());
        Level {
            quota,
            available: rate.level(tat, now),
            debt: rate.debt(tat, now),
            burst: rate.burst,
            unit_every: Duration::from_nanos(nanos_up(rate.interval)),
            full_in: Duration::from_nanos(nanos_up(tat.saturating_sub(now))),
        }
    }

    /// How many calls wait.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.state.core.waiters()
    }

    /// Whether whatever comes is refused: a pause lasts longer than anybody may wait.
    #[must_use]
    #[inline]
    pub fn is_shut(&self) -> bool {
        let core = &self.state.core;
        core.may_be_paused() && {
            let patience = self.state.config.max_wait.map_or(0, |wait| State::<U, R>::after(0, wait));
            core.paused_for(self.state.now()) > patience
        }
    }

    /// How long a pause still lasts.
    #[must_use]
    pub fn paused_for(&self) -> Duration {
        Duration::from_nanos(nanos_up(self.state.core.paused_for(self.state.now())))
    }

    /// After which time a request of these costs (one a dimension, in order) would pass if nobody waited; zero: now.
    /// `None`: never, because it costs more than the bucket holds.
    #[must_use]
    pub fn next_free(&self, costs: &[u64]) -> Option<Duration> {
        let now = self.state.now();
        let core = &self.state.core;
        if core.bucket.too_large(costs).is_some() {
            return None;
        }
        let wait = core.bucket.short(now, costs).map_or(0, |short| short.wait);
        Some(Duration::from_nanos(nanos_up(wait.max(core.paused_for(now)))))
    }

    /// Lets nobody pass for this long from now on; `Duration::MAX`: until [`resume`](Self::resume). A pause is never
    /// shortened by another one. Those who wait then come one by one within a second.
    pub fn pause(&self, wait: Duration) {
        let now = self.state.now();
        let spread = (wait / 4).min(Duration::from_secs(1));
        self.state.core.pause(now, State::<U, R>::after(now, wait), State::<U, R>::after(0, spread));
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.state.core.resume(self.state.now());
    }

    /// Changes one dimension's quota from now on. What is in use stays in use, as far as the new bucket holds it; debt stays
    /// debt; a full bucket stays full; those who wait are served at the new rate, or refused if that is too late.
    ///
    /// # Errors
    ///
    /// If there is no such dimension, or the quota could not have been built.
    pub fn set_quota(&self, dimension: &str, quota: Quota) -> Result<(), ConfigError> {
        let state = &self.state;
        let index = self.dimensions().position(|name| name == dimension);
        let unknown = || ConfigError::new(dimension.to_owned(), "is no dimension of this bucket");
        let (index, current) =
            index.and_then(|index| Some((index, state.current.get(index)?))).ok_or_else(unknown)?;
        let rate = quota.rate(state.config.headroom, state.worth(index)).map_err(|e| e.under(dimension))?;
        {
            let mut current = lock(current);
            *current = Current { quota, rate, label: None };
            if let Some(first) = state.first_labels.get(index) {
                first.outdated.store(true, Ordering::Release);
            }
        }
        state.core.set_rate(state.now(), index, rate);
        Ok(())
    }
}

/// How one dimension of a bucket stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Level {
    /// The quota that was configured.
    pub quota: Quota,
    /// How many units could pass now.
    pub available: u64,
    /// How many units are missing below an empty bucket.
    pub debt: u64,
    /// How many units the bucket holds: fewer than configured while the upstream states a lower limit.
    pub burst: u64,
    /// The time in which one unit flows in, rounded up: longer than configured while the upstream states a lower limit.
    pub unit_every: Duration,
    /// After which time it is full, if nothing is taken.
    pub full_in: Duration,
}

/// What a monitor shows of it.
impl<U: Send + Sync, R: Send + Sync> Gauges for TokenBucket<U, R> {
    fn gauges(&self) -> Vec<Gauge> {
        let now = self.state.now();
        let level = |(index, name): (usize, &str)| {
            let level = self.level_at(index, now);
            Gauge::Level { dimension: name.into(), available: level.available, capacity: level.burst }
        };
        let mut gauges: Vec<_> = self.dimensions().enumerate().map(level).collect();
        gauges.push(Gauge::PausedFor(self.paused_for()));
        gauges.push(Gauge::Queued(u64::try_from(self.waiters()).unwrap_or(u64::MAX)));
        gauges
    }
}

impl<U, R> fmt::Debug for TokenBucket<U, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = self.state.now();
        let mut debug = f.debug_struct("TokenBucket");
        for (index, name) in self.dimensions().enumerate() {
            debug.field(name, &self.level_at(index, now));
        }
        debug.field("waiters", &self.waiters()).finish_non_exhaustive()
    }
}
