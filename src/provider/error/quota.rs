//! Google's details of a used-up quota.

use std::time::Duration;

use serde_json::Value;

use super::Said;
use crate::provider::hint::date;
use crate::verdict::{Class, Reason, Scope, Verdict};

/// What the quotas mean that an error lists; none if it is no such error.
pub(super) fn verdict(said: &Said<'_>, now: Duration) -> Option<Verdict> {
    let violations = || {
        let failures = said.details().filter(|(kind, _)| *kind == "QuotaFailure");
        failures.filter_map(|(_, detail)| detail.get("violations")?.as_array()).flatten()
    };
    if violations().next().is_none() {
        // Nothing of one's own is used up: the capacity that all share is.
        let shared = said.is_google() && said.details().next().is_none();
        return (shared && said.has("status", "RESOURCE_EXHAUSTED")).then(|| {
            Verdict::new(Class::Throttled).with_scope(Scope::Upstream).with_reason(Reason::Capacity)
        });
    }
    let ids = violations().filter_map(|violation| violation.get("quotaId")?.as_str());
    if violations().any(is_zero) || says_zero(said.message()) {
        return Some(Verdict::new(Class::Unfit).with_reason(Reason::Model));
    }
    Some(of_ids(ids, now))
}

/// The quota of a day decides over one of a minute: the wait that is told beside it is that of the minute.
pub(crate) fn of_ids<'a>(ids: impl Iterator<Item = &'a str>, now: Duration) -> Verdict {
    let (mut by_day, mut by_model) = (false, false);
    for id in ids {
        by_day |= id.contains("PerDay");
        by_model |= id.contains("PerModel");
    }
    if by_day {
        let exhausted = Verdict::new(Class::Exhausted).with_scope(Scope::Model);
        return exhausted.with_hint(date::to_pacific_midnight(now));
    }
    Verdict::new(Class::Throttled).with_scope(if by_model { Scope::Model } else { Scope::Account })
}

fn is_zero(violation: &Value) -> bool {
    match violation.get("quotaValue") {
        Some(Value::String(text)) => text == "0",
        Some(value) => value.as_u64() == Some(0),
        None => false,
    }
}

/// A value of zero is left out of the details, but the sentence has it: the model is not in this plan.
fn says_zero(message: &str) -> bool {
    let rest = message.split_once(", limit: 0").map(|(_, rest)| rest);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
}
