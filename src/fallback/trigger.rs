//! After which failures another target is asked, and which one may help: pure.

use std::fmt;

use crate::verdict::{Class, Reason, Scope, Verdict};

/// After which failures the next target is asked.
///
/// By default after those that another target may not have: throttled, transient, stalled, exhausted, unfit, and refusals
/// of our own layers. Not after `Denied` and `Invalid`: a credential that is not accepted is a fault to be seen, and a bad
/// request stays bad. What the provider believes its caller gave up stays given up.
///
/// ```
/// use seawall::Class;
/// use seawall::fallback::Triggers;
///
/// // Another credential may be accepted; one that is at its limit is waited for.
/// let triggers = Triggers::default().on(Class::Denied).not_on(Class::Throttled);
/// # let _ = triggers;
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Triggers {
    classes: u16,
    policy: bool,
}

/// Where to go after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    /// Any other target.
    Anywhere,
    /// Another upstream: the account is at fault.
    OtherUpstream,
    /// A target with a larger context than this one's, or of unknown size.
    Larger,
}

const DEFAULT: [Class; 6] =
    [Class::Throttled, Class::Transient, Class::Stalled, Class::Exhausted, Class::Unfit, Class::Refused];

impl Triggers {
    /// None: the first target decides.
    pub const fn none() -> Self {
        Self { classes: 0, policy: false }
    }

    /// After this class too. `Class::Success` and `Class::Abandoned` are never a reason.
    pub fn on(mut self, class: Class) -> Self {
        self.classes |= bit(class);
        self
    }

    /// Not after this class.
    pub fn not_on(mut self, class: Class) -> Self {
        self.classes &= !bit(class);
        self
    }

    /// After a request that a content policy or safety filter stopped too: another provider may judge otherwise.
    pub const fn on_policy(mut self) -> Self {
        self.policy = true;
        self
    }

    /// Where to go after this failure; `None` if nowhere.
    pub(super) fn away(self, verdict: Verdict) -> Option<Away> {
        let class = verdict.class();
        let policy = self.policy && class == Class::Invalid && verdict.reason() == Reason::Policy;
        if !policy && self.classes & bit(class) == 0 {
            return None;
        }
        Some(match (class, verdict.scope(), verdict.reason()) {
            (Class::Unfit, _, Reason::Context) => Away::Larger,
            (Class::Exhausted | Class::Denied, Scope::Account, _) => Away::OtherUpstream,
            _ => Away::Anywhere,
        })
    }
}

const fn bit(class: Class) -> u16 {
    match class {
        Class::Throttled => 1,
        Class::Transient => 1 << 1,
        Class::Stalled => 1 << 2,
        Class::Exhausted => 1 << 3,
        Class::Denied => 1 << 4,
        Class::Unfit => 1 << 5,
        Class::Invalid => 1 << 6,
        Class::Refused => 1 << 7,
        Class::Success | Class::Abandoned => 0,
    }
}

impl Default for Triggers {
    fn default() -> Self {
        DEFAULT.into_iter().fold(Self::none(), Self::on)
    }
}

impl fmt::Debug for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rare = [Class::Denied, Class::Invalid];
        let all = DEFAULT.into_iter().chain(rare).filter(|class| self.classes & bit(*class) != 0);
        f.debug_set().entries(all).entries(self.policy.then_some("Policy")).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_the_table_of_classes_decides() {
        let away = |class| Triggers::default().away(Verdict::new(class));
        for class in [Class::Throttled, Class::Transient, Class::Stalled, Class::Unfit, Class::Refused] {
            assert_eq!(away(class), Some(Away::Anywhere), "{class:?}");
        }
        assert_eq!(away(Class::Exhausted), Some(Away::OtherUpstream));
        for class in [Class::Success, Class::Denied, Class::Invalid, Class::Abandoned] {
            assert_eq!(away(class), None, "{class:?}");
        }
    }

    #[test]
    fn a_spent_quota_of_a_model_leaves_the_account_usable() {
        let verdict = Verdict::new(Class::Exhausted).with_scope(Scope::Model);
        assert_eq!(Triggers::default().away(verdict), Some(Away::Anywhere));
    }

    #[test]
    fn too_long_a_context_wants_a_larger_one() {
        let verdict = Verdict::new(Class::Unfit).with_reason(Reason::Context);
        assert_eq!(Triggers::default().away(verdict), Some(Away::Larger));
    }

    #[test]
    fn what_is_opted_in_counts_and_nothing_beside_it() {
        let policy = Verdict::new(Class::Invalid).with_reason(Reason::Policy);
        let triggers = Triggers::default().on_policy();
        assert_eq!(triggers.away(policy), Some(Away::Anywhere));
        assert_eq!(triggers.away(Verdict::new(Class::Invalid)), None, "a bad request stays bad");
        let denied = Triggers::none().on(Class::Denied);
        assert_eq!(denied.away(Verdict::new(Class::Denied)), Some(Away::OtherUpstream));
        assert_eq!(denied.away(Verdict::new(Class::Transient)), None);
        assert_eq!(Triggers::default().not_on(Class::Throttled).away(Verdict::new(Class::Throttled)), None);
        assert_eq!(Triggers::none().on(Class::Abandoned), Triggers::none());
    }
}
