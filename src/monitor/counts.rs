//! What is counted in an interval.

use super::words;
use crate::refusal::RefusalKind;

/// How one call or attempt ended. Times are microseconds; [`NONE`] is none. Small: it is copied on every call's path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) class: u8,
    pub(super) refused: Option<RefusalKind>,
    /// To the head, to the first content, to the end.
    pub(super) times: [u32; 3],
    /// Input, output, cached.
    pub(super) tokens: [u32; 3],
    pub(super) retry: bool,
    pub(super) fallback: bool,
}

pub(super) const NONE: u32 = u32::MAX;

/// What a cost guard told of one attempt, in nano-dollars.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) spent: u64,
    pub(super) reserved: u64,
    pub(super) extra: bool,
}

/// The counters of one interval. Their sum over intervals is that of a longer one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) outcomes: [u64; words::CLASSES],
    pub(super) refusals: [u64; words::KINDS],
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cached: u64,
    pub(super) retries: u64,
    pub(super) fallbacks: u64,
    pub(super) trips: u64,
    pub(super) charged: u64,
    pub(super) spent: u64,
    pub(super) reserved: u64,
    pub(super) extra: u64,
}

impl Counts {
    #[inline]
    pub(super) fn done(&mut self, done: &Done) {
        self.outcomes[usize::from(done.class)] += 1;
        if let Some(kind) = done.refused {
            self.refusals[kind.number()] += 1;
        }
        let [input, output, cached] = done.tokens.map(u64::from);
        self.input = self.input.saturating_add(input);
        self.output = self.output.saturating_add(output);
        self.cached = self.cached.saturating_add(cached);
        self.retries += u64::from(done.retry);
        self.fallbacks += u64::from(done.fallback);
    }

    pub(super) fn charge(&mut self, charge: Charge) {
        // What was sent and cost nothing was not charged.
        self.charged += u64::from(charge.spent > 0);
        self.spent = self.spent.saturating_add(charge.spent);
        self.reserved = self.reserved.saturating_add(charge.reserved);
        if charge.extra {
            self.extra = self.extra.saturating_add(charge.spent);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (sum, count) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += count;
        }
        for (sum, count) in self.refusals.iter_mut().zip(other.refusals) {
            *sum += count;
        }
        let sums = [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cached, other.cached),
            (&mut self.retries, other.retries),
            (&mut self.fallbacks, other.fallbacks),
            (&mut self.trips, other.trips),
            (&mut self.charged, other.charged),
            (&mut self.spent, other.spent),
            (&mut self.reserved, other.reserved),
            (&mut self.extra, other.extra),
        ];
        for (sum, count) in sums {
            *sum = sum.saturating_add(count);
        }
    }
}
