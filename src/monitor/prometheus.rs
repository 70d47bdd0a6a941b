//! The text that Prometheus scrapes.

use std::fmt::Write;

use super::Snapshot;
use super::table::{Kind, METRICS, Metric};

/// The content type of [`Snapshot::prometheus`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Snapshot {
    /// As text for Prometheus, of the content type [`PROMETHEUS_CONTENT_TYPE`](super::PROMETHEUS_CONTENT_TYPE). The
    /// [module](super) has a table of the names, which never change.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::with_capacity(8192);
        for metric in METRICS {
            family(&mut text, metric, self);
        }
        text
    }
}

fn family(text: &mut String, metric: &Metric, snapshot: &Snapshot) {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Summary => "summary",
    };
    let mut any = false;
    (metric.read)(snapshot, &mut |suffix, labels, value| {
        if !std::mem::replace(&mut any, true) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {} {kind}", metric.name, metric.help, metric.name);
        }
        let _ = write!(text, "{}{suffix}", metric.name);
        let names = metric.labels.iter().copied().chain(Some("quantile"));
        for (at, (name, value)) in names.zip(labels).enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            text.push_str(name);
            text.push_str("=\"");
            value.chars().for_each(|char| escape(text, char));
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = if value.is_nan() { writeln!(text, " NaN") } else { writeln!(text, " {value}") };
    });
}

fn escape(text: &mut String, char: char) {
    match char {
        '\\' => text.push_str("\\\\"),
        '"' => text.push_str("\\\""),
        '\n' => text.push_str("\\n"),
        char => text.push(char),
    }
}
