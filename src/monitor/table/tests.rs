use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use prometheus_parse::{Scrape, Value};

use super::*;
use crate::monitor::alert::Alert;
use crate::monitor::{Breaker, Budget, LayerEvents, Refusals, Rule, Severity, Target};

/// A snapshot in which everything has happened, with names that want escaping.
pub(in crate::monitor) fn full() -> Snapshot {
    let mut figures = Figures::default();
    figures.outcomes.0 = [1; words::CLASSES];
    figures.refusals.0 = [2; words::KINDS];
    let latency = Latency {
        count: 3,
        sum: Duration::from_millis(750),
        p50: Duration::from_millis(200),
        ..Latency::default()
    };
    (figures.to_head, figures.to_content, figures.to_end) = (latency, latency, latency);
    let series = Series { five_minutes: figures.clone(), since_start: figures, ..Series::default() };
    let layer = LayerEvents {
        refusals: Refusals([1; words::KINDS]),
        would_refuse: 1,
        waits: 1,
        waited: Duration::from_millis(1500),
        abandoned: 1,
        gave_up: 1,
        no_target_left: 1,
        unpriced: 1,
        unreserved: 1,
        ..LayerEvents::named("a layer")
    };
    let alert = Alert {
        rule: Rule::Slow,
        severity: Severity::Warning,
        subject: "calls".into(),
        on: true,
        value: 2.0,
        limit: 1.2,
    };
    let gauges = vec![
        Gauge::InFlight(1),
        Gauge::Limit(2),
        Gauge::Queued(3),
        Gauge::Level { dimension: "tokens".into(), available: 4, capacity: 5 },
        Gauge::PausedFor(Duration::from_secs(6)),
        Gauge::Breaker(BreakerState::HalfOpen),
    ];
    Snapshot {
        calls: series.clone(),
        attempts: series.clone(),
        targets: vec![Target { upstream: "up\\\"1".into(), model: "line\nbreak".into(), series }],
        layers: vec![layer],
        breakers: vec![Breaker { name: "b".into(), key: "k".into(), state: BreakerState::Open, trips: 2 }],
        budgets: vec![Budget {
            name: "team".into(),
            percent: 80,
            spent: Usd::cents(82),
            limit: Usd::dollars(1),
            marks: 2,
        }],
        watched: vec![Watching { name: "h".into(), gauges }],
        alerts: vec![alert],
        ..Snapshot::default()
    }
}

fn parse(text: &str) -> Scrape {
    Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap()
}

#[test]
fn a_real_parser_reads_all_that_is_written() {
    let text = full().prometheus();
    let scrape = parse(&text);
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    // The parser gathers each summary into one sample, but leaves its sum and count by themselves.
    let quantiles = text.lines().filter(|line| line.contains("quantile=")).count();
    assert_eq!(scrape.samples.len(), samples - quantiles + quantiles / 5);
    let value = |name: &str, label: (&str, &str)| {
        let found =
            scrape.samples.iter().find(|s| s.metric == name && s.labels.get(label.0) == Some(label.1));
        match &found.unwrap_or_else(|| panic!("{name} {label:?}")).value {
            Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
            other => panic!("{other:?}"),
        }
    };
    assert!((value("seawall_calls_total", ("outcome", "success")) - 1.0).abs() < 1e-9);
    assert!((value("seawall_layer_wait_seconds_total", ("layer", "a layer")) - 1.5).abs() < 1e-9);
    assert!((value("seawall_breaker_state", ("state", "open")) - 1.0).abs() < 1e-9);
    assert!((value("seawall_breaker_state", ("state", "closed")) - 0.0).abs() < 1e-9);
    assert!((value("seawall_budget_spent_dollars", ("budget", "team")) - 0.82).abs() < 1e-9);
    assert!(text.contains(r#"upstream="up\\\"1",model="line\nbreak""#));
}

/// Debian has it in the package `prometheus`.
#[test]
fn promtool_finds_no_fault_where_it_is_installed() {
    let tool = Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).spawn();
    let Ok(mut tool) = tool else {
        eprintln!("skipped: promtool is not installed");
        return;
    };
    tool.stdin.take().unwrap().write_all(full().prometheus().as_bytes()).unwrap();
    assert!(tool.wait().unwrap().success(), "its words are above");
}

#[test]
fn names_and_types_follow_the_rules_of_the_format() {
    let mut seen = BTreeSet::new();
    for metric in METRICS {
        assert!(seen.insert(metric.name), "{} is there once", metric.name);
        assert!(metric.name.starts_with("seawall_"));
        assert!(metric.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", metric.name);
        assert!(!metric.help.is_empty() && metric.help.ends_with('.') && !metric.help.contains('\n'));
        assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
        for suffix in ["_count", "_sum", "_bucket", "_gauge", "_counter", "_milliseconds", "_ms"] {
            assert!(!metric.name.ends_with(suffix), "{}", metric.name);
        }
        if metric.kind == Kind::Summary {
            assert!(metric.name.ends_with("_seconds"));
        }
    }
}

#[test]
fn each_sample_has_the_labels_of_its_metric() {
    let snapshot = full();
    for metric in METRICS {
        let mut any = false;
        (metric.read)(&snapshot, &mut |suffix, labels, _| {
            any = true;
            let quantile = usize::from(metric.kind == Kind::Summary && suffix.is_empty());
            assert_eq!(labels.len(), metric.labels.len() + quantile, "{}", metric.name);
        });
        assert!(any, "{} is written when all has happened", metric.name);
    }
}

#[test]
fn the_documents_name_each_metric_and_no_other() {
    let documented: BTreeMap<_, _> = include_str!("../mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `seawall_"))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let labels: Vec<_> = cells[2].split(", ").map(|label| label.trim_matches('`')).collect();
            (format!("seawall_{}", cells[0].trim_matches('`')), (cells[1].to_owned(), labels.join(" ")))
        })
        .collect();
    let real: BTreeMap<_, _> = METRICS
        .iter()
        .map(|metric| {
            let labels = if metric.labels.is_empty() { "–".into() } else { metric.labels.join(" ") };
            (metric.name.to_owned(), (format!("{:?}", metric.kind).to_lowercase(), labels))
        })
        .collect();
    assert_eq!(documented, real);
}

#[test]
fn of_nothing_there_is_no_percentile() {
    let text = Snapshot::default().prometheus();
    assert!(text.contains("seawall_call_head_seconds{quantile=\"0.99\"} NaN\n"), "{text}");
    assert!(text.contains("seawall_call_head_seconds_count 0\n"));
    parse(&text);
}

#[test]
fn a_state_that_was_left_is_set_to_zero() {
    let mut snapshot = full();
    let ones = |snapshot: &Snapshot| {
        let text = snapshot.prometheus();
        let lines = text.lines().filter(|line| line.starts_with("seawall_breaker_state{"));
        lines.filter(|line| line.ends_with(" 1")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(ones(&snapshot)[0].contains("\"open\""));
    snapshot.breakers[0].state = BreakerState::Closed;
    assert_eq!(ones(&snapshot).len(), 1);
    assert!(ones(&snapshot)[0].contains("\"closed\""));
}

#[test]
fn the_report_is_aligned_and_tells_everything() {
    let report = full().to_string();
    let rows: Vec<_> =
        report.lines().filter(|line| line.starts_with("calls, ") || line.starts_with("attempts, ")).collect();
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row.chars().count() == rows[0].chars().count()), "{report}");
    for said in [
        "b of k: open, 2 trips",
        "team: passed 80 %, 82.0 %",
        "ALERT warning: slow",
        "4 of 5 tokens free",
        "paused for 6.00 s",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn json_has_the_names_of_the_struct() {
    let value: serde_json::Value = serde_json::from_str(&full().json()).unwrap();
    assert_eq!(value["calls"]["since_start"]["outcomes"]["success"], 1);
    assert_eq!(value["calls"]["five_minutes"]["to_head"]["p50"], 0.2);
    assert_eq!(value["breakers"][0]["state"], "open");
    assert_eq!(value["budgets"][0]["spent"], 0.82);
    assert_eq!(value["watched"][0]["gauges"][4]["paused_for"], 6.0);
    assert_eq!(value["alerts"][0]["rule"], "slow");
}
