//! Time counted from a point, read to the nanosecond or, for less, to a tick of the kernel.

use std::time::Duration;

use super::{Instant, checked_add, kernel, nanos, now};

/// A point in time from which nanoseconds are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    instant: Instant,
    /// Not after that instant, so that what is due at an instant is due when it has come, and nearly always less than a
    /// microsecond before it.
    reading: kernel::Reading,
}

impl Origin {
    /// By how much a coarse reading may lag behind, in nanoseconds: twice the longest tick of a kernel, which is 10 ms.
    /// Where a processor is held up for longer it may lag more; so no bound hangs on this.
    pub(crate) const LAG: u64 = 20_000_000;

    /// More than a coarse reading lags behind in any case, in nanoseconds: a kernel whose ticks fail for so long while it
    /// runs threads is out of order, and says so in its log. A bound may hang on this.
    pub(crate) const MOST_LAG: u64 = 1_000_000_000;

    pub(crate) fn new() -> Self {
        close_together(|| {
            let reading = kernel::Reading::now();
            let origin = Self { instant: now(), reading };
            (origin, reading.elapsed())
        })
    }

    /// Nanoseconds from here to that instant.
    #[inline]
    pub(crate) fn to(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.instant))
    }

    /// The instant so many nanoseconds from here, or `None` where that is never.
    pub(crate) fn after(&self, nanos: u64) -> Option<Instant> {
        checked_add(self.instant, Duration::from_nanos(nanos))
    }

    /// Nanoseconds since, by tokio's clock. Where that cannot be paused it is the kernel's, which is read without what makes
    /// an instant of it and a duration of that.
    #[inline]
    pub(crate) fn elapsed(&self) -> u64 {
        let plain = if PAUSABLE { None } else { self.reading.elapsed() };
        plain.unwrap_or_else(|| self.to(now()))
    }

    /// Nanoseconds since, by a clock that takes a third of the time to read, is never ahead of the exact one, and lags
    /// behind it by up to a tick. The exact one where there is no such clock, or where tests can pause tokio's.
    #[inline]
    pub(crate) fn elapsed_coarse(&self) -> u64 {
        self.coarse().unwrap_or_else(|| self.elapsed())
    }

    /// Nanoseconds since: coarse as long as that is clearly before `limit`, else exact.
    #[inline]
    pub(crate) fn elapsed_towards(&self, limit: u64) -> u64 {
        towards(limit, self.coarse(), || self.elapsed())
    }

    /// The coarse clock's reading alone, where there is one and tests cannot pause tokio's.
    #[inline]
    pub(crate) fn coarse(&self) -> Option<u64> {
        if PAUSABLE { None } else { self.reading.elapsed_coarse() }
    }
}

/// What was read within a microsecond, as told beside it, or the last of a few tries: a thread can lose its processor
/// between two readings.
fn close_together<T>(mut read: impl FnMut() -> (T, Option<u64>)) -> T {
    const CLOSE: u64 = 1_000;
    const TRIES: usize = 8;
    let mut last = read();
    for _ in 1..TRIES {
        if last.1.is_none_or(|gap| gap <= CLOSE) {
            break;
        }
        last = read();
    }
    last.0
}

#[inline]
fn towards(limit: u64, coarse: Option<u64>, exact: impl FnOnce() -> u64) -> u64 {
    match coarse {
        Some(coarse) if coarse.saturating_add(Origin::LAG) < limit => coarse,
        _ => exact(),
    }
}

/// Whether tokio is built with a clock that can be paused: then no other may be read beside it. Its feature cannot be
/// seen from here, but the name that comes with it can: where tokio has none, the one of this module is meant.
const PAUSABLE: bool = {
    #[allow(
        unused_imports,
        clippy::wildcard_imports,
        reason = "whether the name is among them is the question"
    )]
    use tokio::time::*;
    is_tokios(pause)
};

/// What tokio's function of this name does not return.
struct Absent;

#[allow(dead_code, reason = "stands for tokio's function where that is missing")]
fn pause() -> Absent {
    Absent
}

trait Answer {
    const TOKIOS: bool;
}

impl Answer for () {
    const TOKIOS: bool = true;
}

impl Answer for Absent {
    const TOKIOS: bool = false;
}

const fn is_tokios<A: Answer>(_: fn() -> A) -> bool {
    A::TOKIOS
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_clocks_are_in_order() {
        for _ in 0..1_000 {
            let origin = Origin::new();
            let before = origin.to(now());
            let coarse = origin.reading.elapsed_coarse().unwrap_or(0);
            let exact = origin.reading.elapsed().unwrap_or(u64::MAX);
            assert!(coarse <= exact, "a coarse reading is never ahead: {coarse} > {exact}");
            assert!(before <= exact, "what was due at an instant is due after it: {before} > {exact}");
        }
    }

    #[test]
    fn two_readings_are_repeated_until_nothing_came_between_them() {
        let taken = |gaps: &[Option<u64>]| {
            let mut gaps = gaps.iter().enumerate();
            close_together(|| gaps.next().map(|(at, &gap)| (at, gap)).expect("no more is read than is told"))
        };
        assert_eq!(taken(&[Some(1_000)]), 0);
        assert_eq!(taken(&[Some(9_000_000), Some(1_001), Some(90)]), 2);
        assert_eq!(taken(&[Some(1_001); 8]), 7, "not for ever");
        assert_eq!(taken(&[None]), 0, "where there is one clock, nothing lies between");
    }

    #[test]
    fn a_coarse_reading_decides_only_what_is_clearly_before_the_limit() {
        let limit = 5 * Origin::LAG;
        let clearly = limit - Origin::LAG - 1;
        assert_eq!(towards(limit, Some(clearly), || panic!("an exact time is not needed")), clearly);
        assert_eq!(towards(limit, Some(clearly + 1), || limit), limit);
        assert_eq!(towards(limit, None, || limit), limit);
        assert_eq!(towards(u64::MAX, Some(u64::MAX - 1), || u64::MAX), u64::MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_is_the_only_one() {
        let origin = Origin::new();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(origin.elapsed_coarse(), 3_000_000_000);
        assert_eq!(origin.elapsed_towards(u64::MAX), 3_000_000_000);
    }
}
