//! The words that exports use for what the crate has as types. They never change.

use std::fmt;

use crate::monitor::{BreakerState, Outcomes, Refusals};
use crate::refusal::RefusalKind;
use crate::verdict::Class;

pub(super) const CLASSES: usize = 10;
pub(super) const KINDS: usize = RefusalKind::ALL.len();

pub(super) const ALL_CLASSES: [(Class, &str); CLASSES] = [
    (Class::Success, "success"),
    (Class::Throttled, "throttled"),
    (Class::Transient, "transient"),
    (Class::Stalled, "stalled"),
    (Class::Exhausted, "exhausted"),
    (Class::Denied, "denied"),
    (Class::Unfit, "unfit"),
    (Class::Invalid, "invalid"),
    (Class::Refused, "refused"),
    (Class::Abandoned, "abandoned"),
];

/// The place of a class in [`ALL_CLASSES`].
pub(super) const fn class_index(class: Class) -> usize {
    match class {
        Class::Success => 0,
        Class::Throttled => 1,
        Class::Transient => 2,
        Class::Stalled => 3,
        Class::Exhausted => 4,
        Class::Denied => 5,
        Class::Unfit => 6,
        Class::Invalid => 7,
        Class::Refused => 8,
        Class::Abandoned => 9,
    }
}

pub(super) const fn class_word(class: Class) -> &'static str {
    ALL_CLASSES[class_index(class)].1
}

pub(super) const ALL_STATES: [(BreakerState, &str); 3] =
    [(BreakerState::Closed, "closed"), (BreakerState::HalfOpen, "half_open"), (BreakerState::Open, "open")];

pub(super) const fn state_word(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "closed",
        BreakerState::HalfOpen => "half_open",
        BreakerState::Open => "open",
    }
}

/// Only what is not zero.
impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.iter().map(|(class, count)| (class_word(class), count));
        f.debug_map().entries(words.filter(|(_, count)| *count > 0)).finish()
    }
}

/// Only what is not zero.
impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.iter().map(|(kind, count)| (kind.as_str(), count));
        f.debug_map().entries(words.filter(|(_, count)| *count > 0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Phase;

    const ALL_KINDS: [(RefusalKind, &str); KINDS] = [
        (RefusalKind::Open, "open"),
        (RefusalKind::Full, "full"),
        (RefusalKind::QueueTimeout, "queue_timeout"),
        (RefusalKind::Deadline, "deadline"),
        (RefusalKind::RateLimited, "rate_limited"),
        (RefusalKind::TooLarge, "too_large"),
        (RefusalKind::BudgetExhausted, "budget_exhausted"),
        (RefusalKind::BudgetContended, "budget_contended"),
        (RefusalKind::Unpriced, "unpriced"),
        (RefusalKind::Unbounded, "unbounded"),
        (RefusalKind::LedgerUnavailable, "ledger_unavailable"),
        (RefusalKind::TooManyKeys, "too_many_keys"),
        (RefusalKind::TimedOut(Phase::Total), "timeout_total"),
        (RefusalKind::TimedOut(Phase::Connect), "timeout_connect"),
        (RefusalKind::TimedOut(Phase::Head), "timeout_head"),
        (RefusalKind::TimedOut(Phase::FirstContent), "timeout_first_content"),
        (RefusalKind::TimedOut(Phase::Idle), "timeout_idle"),
        (RefusalKind::NoTarget, "no_target"),
        (RefusalKind::Custom, "custom"),
    ];

    #[test]
    fn each_word_stands_at_the_place_of_its_type() {
        for (place, (class, word)) in ALL_CLASSES.into_iter().enumerate() {
            assert_eq!((class_index(class), class_word(class)), (place, word));
        }
        for (place, (kind, word)) in ALL_KINDS.into_iter().enumerate() {
            assert_eq!((kind.number(), kind.as_str()), (place, word));
        }
        for (state, word) in ALL_STATES {
            assert_eq!(state_word(state), word);
        }
    }
}
