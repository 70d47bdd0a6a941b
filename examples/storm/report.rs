//! The figures of a cell, as a table and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::run::Cell;
use super::scenario::Scenario;

/// What a cell comes to. Latencies are those of the calls that were served, to the end of their answers.
pub(crate) struct Figures {
    pub(crate) calls: usize,
    /// In percent.
    pub(crate) success: f64,
    /// p50, p95 and p99, in seconds.
    pub(crate) latency: [f64; 3],
    pub(crate) attempts: f64,
    pub(crate) throttled: u64,
    /// In dollars for a thousand calls that were served, and the percentage of it that went to further attempts.
    pub(crate) cost: f64,
    pub(crate) again: f64,
}

impl Figures {
    pub(crate) fn of(cell: &Cell) -> Self {
        let mut took: Vec<Duration> = cell.calls.iter().filter_map(|(_, took)| *took).collect();
        took.sort_unstable();
        let at = |percent: usize| {
            let rank = (took.len() * percent).div_ceil(100).max(1) - 1;
            took.get(rank).map_or(0.0, Duration::as_secs_f64)
        };
        let (calls, served, tally) = (cell.calls.len(), took.len(), &cell.tally);
        Self {
            calls,
            success: percent(served, calls),
            latency: [50, 95, 99].map(at),
            attempts: percent(usize::try_from(tally.attempts).unwrap_or(0), calls) / 100.0,
            throttled: tally.throttled,
            cost: ratio(tally.billed, served as u64) / 1e6,
            again: ratio(tally.billed_again, tally.billed) * 100.0,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn percent(part: usize, whole: usize) -> f64 {
    ratio(part as u64, whole as u64) * 100.0
}

/// The rows of one scenario, under its heading.
pub(crate) fn table(scenario: &Scenario, cells: &[Cell]) -> String {
    let mut text = format!("({}) {}: {}\n", scenario.key, scenario.name, scenario.about);
    let _ = writeln!(
        text,
        "    {:<20} {:>9} {:>8} {:>8} {:>8} {:>6} {:>9} {:>8} {:>8}",
        "", "success", "p50", "p95", "p99", "429s", "attempts", "cost", "retries"
    );
    for cell in cells.iter().filter(|cell| cell.scenario == scenario.key) {
        let of = Figures::of(cell);
        let [p50, p95, p99] = of.latency;
        let _ = writeln!(
            text,
            "    {:<20} {:>7.2} % {p50:>6.1} s {p95:>6.1} s {p99:>6.1} s {:>6} {:>9.2} {:>8} {:>6.1} %",
            cell.set_up.name(),
            of.success,
            of.throttled,
            of.attempts,
            format!("${:.3}", of.cost),
            of.again,
        );
    }
    text
}

pub(crate) fn json(scenarios: &[Scenario], cells: &[Cell]) -> Value {
    let rows = cells.iter().map(|cell| {
        let of = Figures::of(cell);
        let name = scenarios.iter().find(|scenario| scenario.key == cell.scenario);
        json!({
            "scenario": name.map(|scenario| scenario.name),
            "set_up": cell.set_up.name(),
            "calls": of.calls,
            "success_percent": of.success,
            "p50_seconds": of.latency[0],
            "p95_seconds": of.latency[1],
            "p99_seconds": of.latency[2],
            "throttled": of.throttled,
            "attempts_per_call": of.attempts,
            "dollars_per_thousand_served": of.cost,
            "retries_percent_of_cost": of.again,
        })
    });
    Value::Array(rows.collect())
}
