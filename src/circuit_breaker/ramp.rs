//! How calls come back after closing. Pure.

use super::state::NEVER;

/// The share of calls admitted after closing: one in ten at first, all after ten steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    begin: u64,
    time: u64,
    /// Tenths saved up for the next call.
    saved: u64,
}

impl Ramp {
    const STEPS: u64 = 10;

    /// From now on. The first call passes.
    pub(super) fn new(begin: u64, time: u64) -> Self {
        Self { begin, time, saved: Self::STEPS - 1 }
    }

    pub(super) fn is_over(&self, now: u64) -> bool {
        self.time != NEVER && now.saturating_sub(self.begin) >= self.time
    }

    /// Admits as many tenths of the calls as steps are done, evenly: the call is refused until the next step, or not.
    pub(super) fn refuses(&mut self, now: u64) -> Option<u64> {
        let step_time = (self.time / Self::STEPS).max(1);
        let step = (now.saturating_sub(self.begin) / step_time).min(Self::STEPS - 1);
        self.saved += step + 1;
        if self.saved >= Self::STEPS {
            self.saved -= Self::STEPS;
            return None;
        }
        let next = self.begin.saturating_add((step + 1).saturating_mul(step_time));
        Some(next.saturating_sub(now).max(1))
    }
}
