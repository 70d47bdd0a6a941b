//! The monitor as an observer of the layers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::alert::Alert;
use super::counts::Charge;
use super::gate::Scope;
use super::gauges::Gauge;
use super::monitor::{Inner, Monitor};
use super::snapshot::{Watching, float};
use super::stripes::What;
use super::{Basis, Event, Observer, trace};

/// Hears what the layers decide. Give a clone to each: `.observer(monitor.clone())`.
impl Observer for Monitor {
    fn event(&self, event: &Event<'_>) {
        let (stripe, inner) = (self.mine(Scope::Calls), &*self.inner);
        let at = inner.now();
        match event {
            // The two that may come with every call leave a record; all others are rare.
            Event::Refused { label, refusal } => {
                stripe.record(at, What::Refused(inner.directory.layer(label.name()), refusal.kind()));
            }
            Event::Spent { upstream, model, amount, reserved, extra, basis, .. } => {
                let target = match (inner.directory.target(*upstream, *model), model) {
                    // An upstream that reports what it used has served it.
                    ((_, false), Some(model)) if *basis == Basis::Usage => {
                        inner.directory.proven(*upstream, model)
                    }
                    ((target, _), _) => target,
                };
                let (spent, reserved) = (amount.as_nanos(), reserved.as_nanos());
                stripe.record(at, What::Charged(target, Charge { spent, reserved, extra: *extra }));
            }
            _ => {
                trace::event(event);
                inner.rare(at, event);
            }
        }
    }
}

impl Inner {
    fn rare(&self, at: u64, event: &Event<'_>) {
        let layer = self.directory.layer(event.label().name());
        let mut book = self.book();
        let told = book.layer(layer);
        match event {
            Event::WouldRefuse { .. } => told.would_refuse += 1,
            Event::Waited { wait, .. } => {
                told.waits += 1;
                told.waited = told.waited.saturating_add(*wait);
            }
            Event::Abandoned { .. } => told.abandoned += 1,
            Event::GaveUp { .. } => told.gave_up += 1,
            Event::NoTargetLeft { .. } => told.no_target_left += 1,
            Event::Unpriced { .. } => told.unpriced += 1,
            Event::Unreserved { .. } => told.unreserved += 1,
            Event::Retrying { .. } => book.among_calls(at, |counts| counts.retries += 1),
            Event::FellOver { .. } => book.among_calls(at, |counts| counts.fallbacks += 1),
            Event::BreakerMoved { label, to, .. } => {
                let key = label.key().map_or("", |key| key.as_str());
                let known = book.moved(at, label.name(), key, *to);
                drop(book);
                if known {
                    let edge = self.alerts().moved(Duration::from_nanos(at), label.name(), key, *to);
                    self.tell(edge.as_slice());
                }
            }
            Event::BudgetMark { label, percent, spent, limit } => {
                book.mark(label.name(), *percent, *spent, *limit);
                drop(book);
                let share = 100.0 * float(spent.as_nanos()) / float(limit.as_nanos().max(1));
                let edge = self.alerts().mark(label.name(), *percent, share);
                self.tell(edge.as_slice());
            }
            Event::Refused { .. } | Event::Spent { .. } | Event::Alert { .. } => {}
        }
    }

    /// An attempt at this target was denied.
    #[cold]
    pub(super) fn denied(&self, at: u64, target: u16) {
        let names = self.directory.targets();
        let Some((upstream, model)) = names.get(usize::from(target)) else { return };
        let edge = self.alerts().denied(Duration::from_nanos(at), upstream.as_str(), model.as_str());
        self.tell(edge.as_slice());
    }

    /// Tells of alerts, after all locks are released.
    pub(super) fn tell(&self, edges: &[Alert]) {
        for alert in edges {
            trace::event(&Event::Alert { label: &self.label, alert });
            self.observers.raise(|| Event::Alert { label: &self.label, alert });
            if let Some(on_alert) = &self.on_alert {
                // Called from a call's own path, at times from a drop: its panic is no business of the call.
                let _ = catch_unwind(AssertUnwindSafe(|| on_alert(alert)));
            }
        }
    }

    /// What the watched handles show. Each is asked outside the lock; one that panics shows nothing.
    pub(super) fn gauges(&self) -> Vec<Watching> {
        let ask = |(name, handle): (String, std::sync::Arc<dyn super::Gauges>)| {
            let gauges: Vec<Gauge> = catch_unwind(AssertUnwindSafe(|| handle.gauges())).unwrap_or_default();
            Watching { name, gauges }
        };
        self.watched().into_iter().map(ask).collect()
    }
}
