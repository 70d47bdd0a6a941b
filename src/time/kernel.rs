//! The kernel's clocks, read as plain numbers. The coarse ones it sets at each tick, every 1 to 10 ms: reading them is
//! reading memory.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::time::Duration;

    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// Nanoseconds of the kernel's monotonic clock, the one behind [`Instant`](crate::time::Instant).
    #[derive(Clone, Copy, Debug)]
    pub(in crate::time) struct Reading(u64);

    #[allow(clippy::unnecessary_wraps, reason = "not every system has these clocks")]
    impl Reading {
        pub(in crate::time) fn now() -> Self {
            Self(nanos(clock_gettime(ClockId::Monotonic)))
        }

        /// Nanoseconds since.
        #[inline]
        pub(in crate::time) fn elapsed(self) -> Option<u64> {
            Some(nanos(clock_gettime(ClockId::Monotonic)).saturating_sub(self.0))
        }

        /// The same by the coarse clock.
        #[inline]
        pub(in crate::time) fn elapsed_coarse(self) -> Option<u64> {
            Some(nanos(clock_gettime(ClockId::MonotonicCoarse)).saturating_sub(self.0))
        }
    }

    /// The time of day, if it is after 1970.
    #[inline]
    pub(in crate::time) fn since_epoch() -> Duration {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::RealtimeCoarse);
        match (u64::try_from(tv_sec), u32::try_from(tv_nsec)) {
            (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
            _ => Duration::ZERO,
        }
    }

    #[inline]
    fn nanos(time: Timespec) -> u64 {
        let part = |part: i64| u64::try_from(part).unwrap_or(0);
        part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod elsewhere {
    use std::time::Duration;

    /// There are no such clocks.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::time) struct Reading;

    impl Reading {
        pub(in crate::time) fn now() -> Self {
            Self
        }

        pub(in crate::time) fn elapsed(self) -> Option<u64> {
            None
        }

        pub(in crate::time) fn elapsed_coarse(self) -> Option<u64> {
            None
        }
    }

    #[expect(clippy::disallowed_types, reason = "the one place that reads the wall clock")]
    pub(in crate::time) fn since_epoch() -> Duration {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use elsewhere::{Reading, since_epoch};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use linux::{Reading, since_epoch};
