//! A refusal's kind, and when to come back, as one word.

use super::{Phase, RefusalKind};

/// The kind in the low 5 bits; above them nanoseconds, up to 18 years, or all ones: no wait is known to help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(u64);

const KIND_BITS: u32 = 5;
const KIND: u64 = (1 << KIND_BITS) - 1;
const NO_WAIT: u64 = u64::MAX >> KIND_BITS;

/// Each kind at the place of its number.
pub(super) const KINDS: [RefusalKind; 19] = [
    RefusalKind::Open,
    RefusalKind::Full,
    RefusalKind::QueueTimeout,
    RefusalKind::Deadline,
    RefusalKind::RateLimited,
    RefusalKind::TooLarge,
    RefusalKind::BudgetExhausted,
    RefusalKind::BudgetContended,
    RefusalKind::Unpriced,
    RefusalKind::Unbounded,
    RefusalKind::LedgerUnavailable,
    RefusalKind::TooManyKeys,
    RefusalKind::NoTarget,
    RefusalKind::Custom,
    RefusalKind::TimedOut(Phase::Total),
    RefusalKind::TimedOut(Phase::Connect),
    RefusalKind::TimedOut(Phase::Head),
    RefusalKind::TimedOut(Phase::FirstContent),
    RefusalKind::TimedOut(Phase::Idle),
];

impl Code {
    #[inline]
    pub(super) const fn of(kind: RefusalKind) -> Self {
        let number = match kind {
            RefusalKind::Open => 0,
            RefusalKind::Full => 1,
            RefusalKind::QueueTimeout => 2,
            RefusalKind::Deadline => 3,
            RefusalKind::RateLimited => 4,
            RefusalKind::TooLarge => 5,
            RefusalKind::BudgetExhausted => 6,
            RefusalKind::BudgetContended => 7,
            RefusalKind::Unpriced => 8,
            RefusalKind::Unbounded => 9,
            RefusalKind::LedgerUnavailable => 10,
            RefusalKind::TooManyKeys => 11,
            RefusalKind::NoTarget => 12,
            RefusalKind::Custom => 13,
            RefusalKind::TimedOut(Phase::Total) => 14,
            RefusalKind::TimedOut(Phase::Connect) => 15,
            RefusalKind::TimedOut(Phase::Head) => 16,
            RefusalKind::TimedOut(Phase::FirstContent) => 17,
            RefusalKind::TimedOut(Phase::Idle) => 18,
        };
        Self((NO_WAIT << KIND_BITS) | number)
    }

    #[inline]
    pub(super) const fn kind(self) -> RefusalKind {
        KINDS[(self.0 & KIND) as usize]
    }

    /// With a wait of so many nanoseconds, or none for `u64::MAX`.
    #[inline]
    pub(super) const fn with_wait(self, nanos: u64) -> Self {
        let wait = match nanos {
            u64::MAX => NO_WAIT,
            NO_WAIT.. => NO_WAIT - 1,
            nanos => nanos,
        };
        Self((wait << KIND_BITS) | (self.0 & KIND))
    }

    #[inline]
    pub(super) const fn wait(self) -> Option<u64> {
        match self.0 >> KIND_BITS {
            NO_WAIT => None,
            nanos => Some(nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_and_a_wait_are_the_same_again() {
        for kind in KINDS {
            let code = Code::of(kind);
            assert_eq!((code.kind(), code.wait()), (kind, None));
            for nanos in [0, 1, 30_000_000_000, NO_WAIT - 1] {
                let code = code.with_wait(nanos);
                assert_eq!((code.kind(), code.wait()), (kind, Some(nanos)));
            }
            assert_eq!(code.with_wait(1).with_wait(u64::MAX), code, "never is no wait");
            assert_eq!(
                code.with_wait(u64::MAX - 1).wait(),
                Some(NO_WAIT - 1),
                "18 years stand for what is longer"
            );
        }
    }
}
