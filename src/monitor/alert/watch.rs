//! Which alerts are on: each is told once when it goes on and once when it goes off.

use std::time::Duration;

use super::rules::{Finding, denied, out_of};
use super::{Alert, Rule, Rules, Severity};
use crate::monitor::BreakerState;
use crate::monitor::snapshot::Snapshot;

/// The rules, and the alerts that are on.
#[derive(Debug)]
pub(in crate::monitor) struct Alerts {
    rules: Rules,
    on: Vec<On>,
}

#[derive(Debug)]
struct On {
    alert: Alert,
    /// Since when all is well.
    well_since: Option<Duration>,
}

impl Alerts {
    pub(in crate::monitor) fn new(rules: Rules) -> Self {
        Self { rules, on: Vec::new() }
    }

    /// The alerts that are on.
    pub(in crate::monitor) fn firing(&self) -> Vec<Alert> {
        self.on.iter().map(|on| on.alert.clone()).collect()
    }

    /// What a snapshot changes.
    pub(in crate::monitor) fn evaluate(&mut self, snapshot: &Snapshot) -> Vec<Alert> {
        let findings = self.rules.check(snapshot);
        findings.into_iter().filter_map(|finding| self.take(snapshot.uptime, finding)).collect()
    }

    /// An attempt at this target was denied.
    pub(in crate::monitor) fn denied(&mut self, now: Duration, upstream: &str, model: &str) -> Option<Alert> {
        if !self.rules.tells_denied() {
            return None;
        }
        self.take(now, denied(upstream, model, 1))
    }

    /// A breaker moved.
    pub(in crate::monitor) fn moved(
        &mut self,
        now: Duration,
        name: &str,
        key: &str,
        to: BreakerState,
    ) -> Option<Alert> {
        if !self.rules.tells_out() {
            return None;
        }
        self.take(now, out_of(name, key, to))
    }

    /// Spending passed a mark. It was told once by the guard already, so nothing is remembered.
    pub(in crate::monitor) fn mark(&self, name: &str, percent: u8, share: f64) -> Option<Alert> {
        self.rules.tells_marks().then(|| Alert {
            rule: Rule::BudgetMark,
            severity: if percent >= 100 { Severity::Critical } else { Severity::Warning },
            subject: name.into(),
            on: true,
            value: share,
            limit: f64::from(percent),
        })
    }

    fn take(&mut self, now: Duration, finding: Finding) -> Option<Alert> {
        let same = |on: &On| {
            let Alert { rule, severity, subject, .. } = &on.alert;
            (*rule, *severity, subject) == (finding.rule, finding.severity, &finding.subject)
        };
        let Some(at) = self.on.iter().position(same) else {
            return finding.bad.then(|| self.go_on(finding));
        };
        let on = &mut self.on[at];
        (on.alert.value, on.alert.limit) = (finding.value, finding.limit);
        if !finding.well {
            on.well_since = None;
            return None;
        }
        let since = *on.well_since.get_or_insert(now);
        if now.saturating_sub(since) < self.rules.holds() {
            return None;
        }
        let On { alert, .. } = self.on.remove(at);
        Some(Alert { on: false, ..alert })
    }

    fn go_on(&mut self, finding: Finding) -> Alert {
        let Finding { rule, severity, subject, value, limit, .. } = finding;
        let alert = Alert { rule, severity, subject, on: true, value, limit };
        self.on.push(On { alert: alert.clone(), well_since: None });
        alert
    }
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
