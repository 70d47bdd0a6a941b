//! The table of all metrics: the one place that names them. Each export walks it.

use crate::money::Usd;
use crate::monitor::snapshot::{Figures, LayerEvents, Series, Snapshot, float};
use crate::monitor::{BreakerState, Gauge, Latency, Watching, words};

/// What kind of figure a metric is, in Prometheus' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Summary,
}

/// One metric. Its name never changes.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) labels: &'static [&'static str],
    pub(super) read: fn(&Snapshot, Emit<'_>),
}

/// Takes a sample: a suffix of the name, the values of the labels in their order (and, of a summary, the quantile), and
/// the value.
pub(super) type Emit<'a> = &'a mut dyn FnMut(&'static str, &[&str], f64);

const TARGET: &[&str] = &["upstream", "model"];
const OUTCOME: &[&str] = &["outcome"];
const LAYER: &[&str] = &["layer"];
const HANDLE: &[&str] = &["handle"];
const BUDGET: &[&str] = &["budget"];

macro_rules! metric {
    ($kind:ident $name:literal [$($label:tt)*] $help:literal $read:expr) => {
        Metric { name: $name, kind: Kind::$kind, help: $help, labels: metric!(@ $($label)*), read: $read }
    };
    (@ $labels:ident) => { $labels };
    (@ $($label:literal)*) => { &[$($label),*] };
}

pub(super) const METRICS: &[Metric] = &[
    metric!(Gauge "seawall_uptime_seconds" [] "How long the monitor has been there."
        |s, emit| emit("", &[], s.uptime.as_secs_f64())),
    metric!(Gauge "seawall_calls_in_flight" [] "Calls under way."
        |s, emit| emit("", &[], float(s.calls_in_flight))),
    metric!(Counter "seawall_calls_total" [OUTCOME] "Calls that came to their end, as callers saw them."
        |s, emit| outcomes(&[], &s.calls, emit)),
    metric!(Counter "seawall_call_refusals_total" ["kind"] "Calls that ended in a refusal or a timeout of a layer."
        |s, emit| refusals(&[], &s.calls, emit)),
    metric!(Summary "seawall_call_head_seconds" [] "From a call to the head of its response; quantiles of five minutes."
        |s, emit| summary(&[], &s.calls, |f| f.to_head, emit)),
    metric!(Summary "seawall_call_content_seconds" [] "From a call to its first content; quantiles of five minutes."
        |s, emit| summary(&[], &s.calls, |f| f.to_content, emit)),
    metric!(Summary "seawall_call_end_seconds" [] "From a call to its last byte; quantiles of five minutes."
        |s, emit| summary(&[], &s.calls, |f| f.to_end, emit)),
    metric!(Counter "seawall_call_retries_total" [] "Failures that retry layers repeated."
        |s, emit| emit("", &[], float(s.calls.since_start.retries))),
    metric!(Counter "seawall_call_fallbacks_total" [] "Times that fallback layers went on to another target."
        |s, emit| emit("", &[], float(s.calls.since_start.fallbacks))),
    metric!(Gauge "seawall_attempts_in_flight" [] "Attempts under way."
        |s, emit| emit("", &[], float(s.attempts_in_flight))),
    metric!(Counter "seawall_attempts_total" ["upstream" "model" "outcome"] "Attempts that came to their end."
        |s, emit| targets(s, |labels, series| outcomes(labels, series, emit))),
    metric!(Counter "seawall_attempt_refusals_total" ["upstream" "model" "kind"]
        "Attempts that ended in a refusal or a timeout of a layer below."
        |s, emit| targets(s, |labels, series| refusals(labels, series, emit))),
    metric!(Summary "seawall_attempt_head_seconds" [TARGET]
        "From sending an attempt to the head of its response; quantiles of five minutes."
        |s, emit| targets(s, |labels, series| summary(labels, series, |f| f.to_head, emit))),
    metric!(Summary "seawall_attempt_content_seconds" [TARGET]
        "From sending an attempt to its first content; quantiles of five minutes."
        |s, emit| targets(s, |labels, series| summary(labels, series, |f| f.to_content, emit))),
    metric!(Summary "seawall_attempt_end_seconds" [TARGET]
        "From sending an attempt to its last byte; quantiles of five minutes."
        |s, emit| targets(s, |labels, series| summary(labels, series, |f| f.to_end, emit))),
    metric!(Counter "seawall_attempt_tokens_total" ["upstream" "model" "type"]
        "Tokens that upstreams reported; cached ones are a part of the input."
        |s, emit| targets(s, |labels, series| tokens(labels, series, emit))),
    metric!(Counter "seawall_attempt_retries_total" [TARGET] "Attempts beyond the first at the same target."
        |s, emit| each_target(s, |f| float(f.retries), emit)),
    metric!(Counter "seawall_attempt_fallbacks_total" [TARGET] "First attempts at a later target of a chain."
        |s, emit| each_target(s, |f| float(f.fallbacks), emit)),
    metric!(Counter "seawall_charged_attempts_total" [TARGET] "Attempts that a cost guard charged."
        |s, emit| each_target(s, |f| float(f.money.charged), emit)),
    metric!(Counter "seawall_spent_dollars_total" [TARGET] "What attempts cost."
        |s, emit| each_target(s, |f| dollars(f.money.spent), emit)),
    metric!(Counter "seawall_reserved_dollars_total" [TARGET] "What was reserved for the attempts that were charged."
        |s, emit| each_target(s, |f| dollars(f.money.reserved), emit)),
    metric!(Counter "seawall_extra_spent_dollars_total" [TARGET] "What retries and attempts at later targets cost."
        |s, emit| each_target(s, |f| dollars(f.money.extra), emit)),
    metric!(Counter "seawall_layer_refusals_total" ["layer" "kind"] "Refusals that a layer told."
    |s, emit| layers(s, |layer| {
        let told = layer.refusals.iter().filter(|(_, count)| *count > 0);
        told.for_each(|(kind, count)| emit("", &[&layer.name, kind.as_str()], float(count)));
    })),
    metric!(Counter "seawall_layer_would_refuse_total" [LAYER] "What a layer that only observes would have refused."
        |s, emit| each_layer(s, |layer| float(layer.would_refuse), emit)),
    metric!(Counter "seawall_layer_waits_total" [LAYER] "Attempts that a layer admitted after a wait."
        |s, emit| each_layer(s, |layer| float(layer.waits), emit)),
    metric!(Counter "seawall_layer_wait_seconds_total" [LAYER] "How long those attempts waited, together."
        |s, emit| each_layer(s, |layer| layer.waited.as_secs_f64(), emit)),
    metric!(Counter "seawall_layer_abandoned_total" [LAYER] "Callers that left a layer before the end."
        |s, emit| each_layer(s, |layer| float(layer.abandoned), emit)),
    metric!(Counter "seawall_layer_gave_up_total" [LAYER] "Failures that a layer did not repeat."
        |s, emit| each_layer(s, |layer| float(layer.gave_up), emit)),
    metric!(Counter "seawall_layer_no_target_left_total" [LAYER] "Chains in which no target was left."
        |s, emit| each_layer(s, |layer| float(layer.no_target_left), emit)),
    metric!(Counter "seawall_layer_unpriced_total" [LAYER] "Attempts for which a layer knew no price."
        |s, emit| each_layer(s, |layer| float(layer.unpriced), emit)),
    metric!(Counter "seawall_layer_unreserved_total" [LAYER] "Attempts that passed without a reservation."
        |s, emit| each_layer(s, |layer| float(layer.unreserved), emit)),
    metric!(Gauge "seawall_breaker_state" ["breaker" "key" "state"] "1 for the state that a breaker is in, else 0."
        |s, emit| s.breakers.iter().for_each(|b| states(&[&b.name, &b.key], b.state, emit))),
    metric!(Counter "seawall_breaker_trips_total" ["breaker" "key"] "How often a breaker opened."
        |s, emit| s.breakers.iter().for_each(|b| emit("", &[&b.name, &b.key], float(b.trips)))),
    metric!(Counter "seawall_budget_marks_total" [BUDGET] "Marks that spending passed, in all windows."
        |s, emit| s.budgets.iter().for_each(|b| emit("", &[&b.name], float(b.marks)))),
    metric!(Gauge "seawall_budget_mark_percent" [BUDGET] "The last mark that spending passed."
        |s, emit| s.budgets.iter().for_each(|b| emit("", &[&b.name], f64::from(b.percent)))),
    metric!(Gauge "seawall_budget_spent_dollars" [BUDGET] "What was spent when the last mark was passed."
        |s, emit| s.budgets.iter().for_each(|b| emit("", &[&b.name], dollars(b.spent)))),
    metric!(Gauge "seawall_budget_limit_dollars" [BUDGET] "The limit of a budget."
        |s, emit| s.budgets.iter().for_each(|b| emit("", &[&b.name], dollars(b.limit)))),
    metric!(Gauge "seawall_handle_in_flight" [HANDLE] "Calls that run, as a watched handle shows."
        |s, emit| handles(s, |name, gauge| if let Gauge::InFlight(n) = gauge { emit("", &[name], float(*n)) })),
    metric!(Gauge "seawall_handle_limit" [HANDLE] "Calls that may run at once."
        |s, emit| handles(s, |name, gauge| if let Gauge::Limit(n) = gauge { emit("", &[name], float(*n)) })),
    metric!(Gauge "seawall_handle_queued" [HANDLE] "Calls that wait."
        |s, emit| handles(s, |name, gauge| if let Gauge::Queued(n) = gauge { emit("", &[name], float(*n)) })),
    metric!(Gauge "seawall_handle_level" ["handle" "dimension"] "Units that could pass now."
    |s, emit| handles(s, |name, gauge| if let Gauge::Level { dimension, available, .. } = gauge {
        emit("", &[name, dimension], float(*available));
    })),
    metric!(Gauge "seawall_handle_capacity" ["handle" "dimension"] "Units that there are when none is taken."
    |s, emit| handles(s, |name, gauge| if let Gauge::Level { dimension, capacity, .. } = gauge {
        emit("", &[name, dimension], float(*capacity));
    })),
    metric!(Gauge "seawall_handle_pause_seconds" [HANDLE] "How long nobody may pass yet."
    |s, emit| handles(s, |name, gauge| if let Gauge::PausedFor(wait) = gauge {
        emit("", &[name], wait.as_secs_f64());
    })),
    metric!(Gauge "seawall_handle_breaker_state" ["handle" "state"] "1 for the state that a breaker is in, else 0."
        |s, emit| handles(s, |name, gauge| if let Gauge::Breaker(state) = gauge { states(&[name], *state, emit) })),
    metric!(Gauge "seawall_alert" ["rule" "severity" "subject"] "1 for each alert that is on."
    |s, emit| s.alerts.iter().for_each(|alert| {
        emit("", &[alert.rule.word(), alert.severity.word(), &alert.subject], 1.0);
    })),
];

fn dollars(amount: Usd) -> f64 {
    float(amount.as_nanos()) / 1e9
}

/// The labels that there are, and one more.
fn with<'a>(labels: &[&'a str], last: &'a str) -> ([&'a str; 4], usize) {
    let mut all = [""; 4];
    all[..labels.len()].copy_from_slice(labels);
    all[labels.len()] = last;
    (all, labels.len() + 1)
}

fn one_more(labels: &[&str], last: &str, value: f64, emit: Emit<'_>) {
    let (labels, len) = with(labels, last);
    emit("", &labels[..len], value);
}

fn targets(snapshot: &Snapshot, mut tell: impl FnMut(&[&str], &Series)) {
    snapshot.targets.iter().for_each(|target| tell(&[&target.upstream, &target.model], &target.series));
}

fn each_target(snapshot: &Snapshot, read: fn(&Figures) -> f64, emit: Emit<'_>) {
    targets(snapshot, |labels, series| emit("", labels, read(&series.since_start)));
}

fn layers(snapshot: &Snapshot, tell: impl FnMut(&LayerEvents)) {
    snapshot.layers.iter().for_each(tell);
}

/// Of those layers alone that have ever told such a thing: most never do.
fn each_layer(snapshot: &Snapshot, read: fn(&LayerEvents) -> f64, emit: Emit<'_>) {
    let told = snapshot.layers.iter().map(|layer| (layer, read(layer))).filter(|(_, value)| *value > 0.0);
    told.for_each(|(layer, value)| emit("", &[&layer.name], value));
}

fn handles(snapshot: &Snapshot, mut tell: impl FnMut(&str, &Gauge)) {
    for Watching { name, gauges } in &snapshot.watched {
        for gauge in gauges {
            tell(name, gauge);
        }
    }
}

fn outcomes(labels: &[&str], series: &Series, emit: Emit<'_>) {
    for (class, count) in series.since_start.outcomes.iter() {
        one_more(labels, words::class_word(class), float(count), emit);
    }
}

/// Those kinds alone that have occurred: there are many.
fn refusals(labels: &[&str], series: &Series, emit: Emit<'_>) {
    for (kind, count) in series.since_start.refusals.iter().filter(|(_, count)| *count > 0) {
        one_more(labels, kind.as_str(), float(count), emit);
    }
}

fn tokens(labels: &[&str], series: &Series, emit: Emit<'_>) {
    let tokens = series.since_start.tokens;
    for (kind, count) in [("input", tokens.input), ("output", tokens.output), ("cached", tokens.cached)] {
        one_more(labels, kind, float(count), emit);
    }
}

/// Each state, so that the one that was left is set to zero.
fn states(labels: &[&str], state: BreakerState, emit: Emit<'_>) {
    for (known, word) in words::ALL_STATES {
        one_more(labels, word, f64::from(u8::from(known == state)), emit);
    }
}

fn summary(labels: &[&str], series: &Series, which: fn(&Figures) -> Latency, emit: Emit<'_>) {
    let (recent, all) = (which(&series.five_minutes), which(&series.since_start));
    for (quantile, value) in [
        ("0.5", recent.p50),
        ("0.9", recent.p90),
        ("0.95", recent.p95),
        ("0.99", recent.p99),
        ("1", recent.max),
    ] {
        // Of nothing there is no percentile, and zero would be a lie.
        let value = if recent.count == 0 { f64::NAN } else { value.as_secs_f64() };
        one_more(labels, quantile, value, emit);
    }
    emit("_sum", labels, all.sum.as_secs_f64());
    emit("_count", labels, float(all.count));
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
pub(super) mod tests;
