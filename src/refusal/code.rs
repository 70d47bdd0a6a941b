//! A refusal's kind, and when to come back, as one word.

use super::{Phase, RefusalKind};

/// The kind in the low 5 bits; above them nanoseconds, up to 18 years, or all ones: no wait is known to help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(u64);

const KIND_BITS: u32 = 5;
const KIND: u64 = (1 << KIND_BITS) - 1;
const NO_WAIT: u64 = u64::MAX >> KIND_BITS;

impl RefusalKind {
    /// Each kind at the place of its number.
    pub(crate) const ALL: [Self; 19] = [
        Self::Open,
        Self::Full,
        Self::QueueTimeout,
        Self::Deadline,
        Self::RateLimited,
        Self::TooLarge,
        Self::BudgetExhausted,
        Self::BudgetContended,
        Self::Unpriced,
        Self::Unbounded,
        Self::LedgerUnavailable,
        Self::TooManyKeys,
        Self::TimedOut(Phase::Total),
        Self::TimedOut(Phase::Connect),
        Self::TimedOut(Phase::Head),
        Self::TimedOut(Phase::FirstContent),
        Self::TimedOut(Phase::Idle),
        Self::NoTarget,
        Self::Custom,
    ];

    /// A number that tells it from all others, so that it can be a place in a table.
    #[inline]
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Open => 0,
            Self::Full => 1,
            Self::QueueTimeout => 2,
            Self::Deadline => 3,
            Self::RateLimited => 4,
            Self::TooLarge => 5,
            Self::BudgetExhausted => 6,
            Self::BudgetContended => 7,
            Self::Unpriced => 8,
            Self::Unbounded => 9,
            Self::LedgerUnavailable => 10,
            Self::TooManyKeys => 11,
            Self::TimedOut(Phase::Total) => 12,
            Self::TimedOut(Phase::Connect) => 13,
            Self::TimedOut(Phase::Head) => 14,
            Self::TimedOut(Phase::FirstContent) => 15,
            Self::TimedOut(Phase::Idle) => 16,
            Self::NoTarget => 17,
            Self::Custom => 18,
        }
    }
}

impl Code {
    #[inline]
    pub(super) const fn of(kind: RefusalKind) -> Self {
        Self((NO_WAIT << KIND_BITS) | kind.number() as u64)
    }

    #[inline]
    pub(super) const fn kind(self) -> RefusalKind {
        RefusalKind::ALL[(self.0 & KIND) as usize]
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
        for (number, kind) in RefusalKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.number(), number);
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
