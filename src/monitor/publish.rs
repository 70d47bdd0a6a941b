//! The figures for the `metrics` crate.

use std::collections::HashMap;
use std::fmt;

use metrics::{Counter, Gauge, Key, KeyName, Label, Level, Metadata, with_recorder};

use super::Snapshot;
use super::table::{Kind, METRICS, Metric};

/// Hands the figures of snapshots to the recorder of the [`metrics`](https://docs.rs/metrics) crate, under the names in the
/// [module's table](super).
///
/// Call [`publish`](Self::publish) again and again, say every ten seconds. Handles are made once for each metric and its
/// labels; no call of a service ever builds a label. What the crate has no type for is a gauge: sums in seconds and
/// dollars, and the quantiles of summaries, which have the label `quantile`. A gauge that is no longer told is set to zero.
///
/// ```
/// use seawall::monitor::{Monitor, Publisher};
///
/// let (monitor, mut publisher) = (Monitor::new(), Publisher::new());
/// publisher.publish(&monitor.snapshot());
/// ```
#[derive(Default)]
pub struct Publisher {
    handles: HashMap<Sample, (Handle, u64)>,
    round: u64,
}

/// The place of a metric in the table, its suffix, and the values of its labels.
type Sample = (usize, &'static str, Vec<String>);

enum Handle {
    Counter(Counter),
    Gauge(Gauge),
}

impl Publisher {
    /// With no handles yet. They are made for the recorder that is installed when they are needed first.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets all metrics to what the snapshot says.
    pub fn publish(&mut self, snapshot: &Snapshot) {
        self.round += 1;
        for (place, metric) in METRICS.iter().enumerate() {
            (metric.read)(snapshot, &mut |suffix, labels, value| {
                self.set(place, metric, suffix, labels, value);
            });
        }
        // A state that is over is not left standing.
        for (handle, round) in self.handles.values() {
            if let Handle::Gauge(gauge) = handle
                && *round != self.round
            {
                gauge.set(0.0);
            }
        }
    }

    fn set(&mut self, place: usize, metric: &Metric, suffix: &'static str, labels: &[&str], value: f64) {
        let sample = (place, suffix, labels.iter().map(ToString::to_string).collect());
        let (handle, round) =
            self.handles.entry(sample).or_insert_with(|| (Handle::new(metric, suffix, labels), 0));
        *round = self.round;
        match handle {
            Handle::Gauge(gauge) => gauge.set(value),
            Handle::Counter(counter) => counter.absolute(whole(value)),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts, which are never below zero"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

impl Handle {
    fn new(metric: &Metric, suffix: &str, labels: &[&str]) -> Self {
        let name = format!("{}{suffix}", metric.name);
        let names = metric.labels.iter().copied().chain(Some("quantile"));
        let labels: Vec<_> =
            names.zip(labels).map(|(name, value)| Label::new(name, (*value).to_owned())).collect();
        let key = Key::from_parts(name.clone(), labels);
        let fractions = ["_dollars_total", "_seconds_total"].iter().any(|end| metric.name.ends_with(end));
        let counts = (metric.kind == Kind::Counter && !fractions) || suffix == "_count";
        let metadata = Metadata::new("seawall", Level::INFO, Some("seawall::monitor"));
        with_recorder(|recorder| {
            let (name, help) = (KeyName::from(name), metric.help.into());
            if counts {
                recorder.describe_counter(name, None, help);
                Self::Counter(recorder.register_counter(&key, &metadata))
            } else {
                recorder.describe_gauge(name, None, help);
                Self::Gauge(recorder.register_gauge(&key, &metadata))
            }
        })
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("handles", &self.handles.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests;
