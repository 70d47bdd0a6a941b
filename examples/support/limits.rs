//! How much the provider takes in a minute.

use std::collections::VecDeque;
use std::time::Duration;

use seawall::time::Instant;

use super::headers::Style;

/// How much is taken in a minute (or another time), how that is counted, and how it is told.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(super) requests: Option<u64>,
    pub(super) tokens: Option<u64>,
    pub(super) per: Duration,
    pub(super) window: Window,
    pub(super) style: Style,
}

/// How a limit is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Window {
    /// No more than the limit in any such time.
    Sliding,
    /// A bucket that holds the limit and fills all the time.
    #[default]
    Continuous,
}

impl Limits {
    /// So many requests and tokens a minute, as a bucket, told as OpenAI does. Zero requests or tokens: without that limit.
    pub(crate) fn per_minute(requests: u64, tokens: u64) -> Self {
        Self::per(Duration::from_secs(60), requests, tokens)
    }

    pub(crate) fn per(per: Duration, requests: u64, tokens: u64) -> Self {
        let some = |limit| (limit > 0).then_some(limit);
        Self {
            requests: some(requests),
            tokens: some(tokens),
            per,
            window: Window::default(),
            style: Style::default(),
        }
    }

    pub(crate) fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    pub(crate) fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Requests,
    Tokens,
}

/// Where a limit stands: what is left of it, and in what time all of it is there again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) unit: Unit,
    pub(super) limit: u64,
    pub(super) left: u64,
    pub(super) reset: Duration,
}

/// A limit that a request does not pass. Without a wait it never will.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub(super) at: Reading,
    pub(super) asked: u64,
    pub(super) wait: Option<Duration>,
}

/// The limits, and how far they are used.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) limits: Limits,
    gauges: Vec<Gauge>,
}

impl Meter {
    pub(super) fn new(limits: Limits) -> Self {
        let gauge = |unit, limit: Option<u64>| limit.map(|limit| Gauge::new(unit, limit, &limits));
        let gauges = [gauge(Unit::Requests, limits.requests), gauge(Unit::Tokens, limits.tokens)];
        Self { gauges: gauges.into_iter().flatten().collect(), limits }
    }

    /// Takes one request of so many tokens, from all limits or from none.
    pub(super) fn take(&mut self, tokens: u64, now: Instant) -> Result<(), Over> {
        let cost = |unit| if unit == Unit::Requests { 1 } else { tokens };
        for gauge in &mut self.gauges {
            let asked = cost(gauge.unit);
            let wait = (asked <= gauge.limit).then(|| gauge.wait(asked, now));
            if wait != Some(Duration::ZERO) {
                return Err(Over { at: gauge.read(now), asked, wait });
            }
        }
        for gauge in &mut self.gauges {
            gauge.take(cost(gauge.unit), now);
        }
        Ok(())
    }

    pub(super) fn read(&self, now: Instant) -> Vec<Reading> {
        self.gauges.iter().map(|gauge| gauge.read(now)).collect()
    }
}

#[derive(Debug)]
struct Gauge {
    unit: Unit,
    limit: u64,
    per: Duration,
    used: Used,
}

#[derive(Debug)]
enum Used {
    Sliding(VecDeque<(Instant, u64)>),
    /// When all of it will be there again.
    Continuous(Option<Instant>),
}

impl Gauge {
    fn new(unit: Unit, limit: u64, limits: &Limits) -> Self {
        let used = match limits.window {
            Window::Sliding => Used::Sliding(VecDeque::new()),
            Window::Continuous => Used::Continuous(None),
        };
        Self { unit, limit, per: limits.per, used }
    }

    /// How long this much takes to flow back.
    fn refill(&self, amount: u64) -> Duration {
        let nanos = self.per.as_nanos() * u128::from(amount);
        Duration::from_nanos(u64::try_from(nanos.div_ceil(u128::from(self.limit))).unwrap_or(u64::MAX))
    }

    fn used(&self, now: Instant) -> u64 {
        match &self.used {
            Used::Sliding(taken) => {
                taken.iter().filter(|(at, _)| *at + self.per > now).map(|(_, amount)| amount).sum()
            }
            Used::Continuous(_) => {
                let used = self.reset(now).as_nanos() * u128::from(self.limit);
                u64::try_from(used.div_ceil(self.per.as_nanos().max(1))).unwrap_or(u64::MAX)
            }
        }
    }

    fn reset(&self, now: Instant) -> Duration {
        match &self.used {
            Used::Sliding(taken) => {
                taken.back().map_or(Duration::ZERO, |(at, _)| (*at + self.per).saturating_duration_since(now))
            }
            Used::Continuous(full) => full.map_or(Duration::ZERO, |full| full.saturating_duration_since(now)),
        }
    }

    /// How long until this much passes.
    fn wait(&self, asked: u64, now: Instant) -> Duration {
        match &self.used {
            Used::Continuous(_) => (self.reset(now) + self.refill(asked)).saturating_sub(self.per),
            Used::Sliding(taken) => {
                let mut over = (self.used(now) + asked).saturating_sub(self.limit);
                for (at, amount) in taken.iter().filter(|(at, _)| *at + self.per > now) {
                    if over == 0 {
                        break;
                    }
                    over = over.saturating_sub(*amount);
                    if over == 0 {
                        return (*at + self.per).saturating_duration_since(now);
                    }
                }
                Duration::ZERO
            }
        }
    }

    fn take(&mut self, amount: u64, now: Instant) {
        let full = now + self.reset(now) + self.refill(amount);
        match &mut self.used {
            Used::Continuous(at) => *at = Some(full),
            Used::Sliding(taken) => {
                while taken.front().is_some_and(|(at, _)| *at + self.per <= now) {
                    taken.pop_front();
                }
                taken.push_back((now, amount));
            }
        }
    }

    fn read(&self, now: Instant) -> Reading {
        let left = self.limit.saturating_sub(self.used(now));
        Reading { unit: self.unit, limit: self.limit, left, reset: self.reset(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_bucket_refills_all_the_time_and_a_window_slides() {
        let start = seawall::time::now();
        for (window, wait) in [(Window::Continuous, 6), (Window::Sliding, 30)] {
            let mut meter = Meter::new(Limits::per_minute(10, 0).window(window));
            for half in [start, start + 30 * SECOND] {
                for _ in 0..5 {
                    assert!(meter.take(1, half).is_ok(), "{window:?}");
                }
            }
            // The bucket has half of its content again after half a minute; the window nothing.
            let now = start + 30 * SECOND;
            let mut taken = 0;
            while meter.take(1, now).is_ok() {
                taken += 1;
            }
            assert_eq!(taken, if window == Window::Continuous { 5 } else { 0 });
            let over = meter.take(1, now).unwrap_err();
            assert_eq!((over.wait, over.at.left), (Some(wait * SECOND), 0));
            assert!(meter.take(1, now + wait * SECOND - Duration::from_nanos(1)).is_err());
            assert!(meter.take(1, now + wait * SECOND).is_ok(), "the wait is exact");
        }
    }

    #[test]
    fn tokens_and_requests_are_taken_both_or_none() {
        let now = seawall::time::now();
        let mut meter = Meter::new(Limits::per_minute(3, 100));
        assert!(meter.take(100, now).is_ok());
        let over = meter.take(50, now).unwrap_err();
        assert_eq!((over.at.unit, over.asked, over.wait), (Unit::Tokens, 50, Some(30 * SECOND)));
        assert_eq!(meter.take(101, now).unwrap_err().wait, None, "no wait helps");
        assert_eq!(meter.read(now)[0].left, 2, "what was refused took no request");
        assert_eq!(meter.read(now + 30 * SECOND)[1].left, 50);
    }
}
