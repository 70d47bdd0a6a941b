//! The table that a person reads.

use std::fmt;
use std::time::Duration;

use super::snapshot::{Figures, Series, Snapshot, float};
use super::{Gauge, Latency, words};

/// A table for a terminal: calls and attempts over each span, targets over the last hour, then what is out of the
/// ordinary. Nothing is cut off; names are as long as they are.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "up {}, in flight: {} calls", time(self.uptime), self.calls_in_flight)?;
        write!(f, ", {} attempts", self.attempts_in_flight)?;
        match self.attempts_a_call() {
            Some(each) => writeln!(f, "; {each:.2} attempts a call\n")?,
            None => writeln!(f, "\n")?,
        }
        let mut spans = Table::new(&HEADS);
        for (name, series) in [("calls", &self.calls), ("attempts", &self.attempts)] {
            for (span, figures) in named_spans(series) {
                spans.row(row(&format!("{name}, {span}"), figures));
            }
        }
        spans.fmt(f)?;
        if !self.targets.is_empty() {
            let mut targets = Table::new(&TARGET_HEADS);
            for target in &self.targets {
                let name = format!("{}/{}", target.upstream, target.model);
                targets.row(row(&name, &target.series.hour));
            }
            writeln!(f)?;
            targets.fmt(f)?;
        }
        self.rest(f)
    }
}

const HEADS: [&str; 14] = [
    "",
    "count",
    "a second",
    "success",
    "head p50",
    "p99",
    "content p50",
    "p99",
    "end p50",
    "p99",
    "tok/s in",
    "tok/s out",
    "retries",
    "cost",
];
/// The same, of targets over an hour.
const TARGET_HEADS: [&str; 14] = {
    let mut heads = HEADS;
    heads[0] = "target, 1 h";
    heads
};

fn named_spans(series: &Series) -> [(&'static str, &Figures); 4] {
    [
        ("1 min", &series.minute),
        ("5 min", &series.five_minutes),
        ("1 h", &series.hour),
        ("all", &series.since_start),
    ]
}

fn row(name: &str, figures: &Figures) -> Vec<String> {
    let success = figures.success_rate().map_or("-".into(), |rate| format!("{:.2} %", rate * 100.0));
    let mut cells =
        vec![name.into(), figures.count().to_string(), format!("{:.2}", figures.per_second()), success];
    for latency in [figures.to_head, figures.to_content, figures.to_end] {
        cells.extend([percentile(latency, latency.p50), percentile(latency, latency.p99)]);
    }
    cells.push(format!("{:.1}", figures.input_per_second()));
    cells.push(format!("{:.1}", figures.output_per_second()));
    cells.push(format!("{}+{}", figures.retries, figures.fallbacks));
    cells.push(figures.money.spent.to_string());
    cells
}

fn percentile(latency: Latency, value: Duration) -> String {
    if latency.count == 0 { "-".into() } else { time(value) }
}

/// As long as it has to be: `850 us`, `12.3 ms`, `4.56 s`, `12 min`, `3.4 h`.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 0.001 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.2} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

impl Snapshot {
    fn rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = self.calls.hour.outcomes.iter().skip(1).filter(|(_, count)| *count > 0);
        let failed: Vec<_> =
            failed.map(|(class, count)| format!("{count} {}", words::class_word(class))).collect();
        if !failed.is_empty() {
            writeln!(f, "\nnot well in 1 h: {}", failed.join(", "))?;
        }
        let money = self.calls.hour.money;
        if money.charged > 0 {
            let each = self.calls.hour.cost_each().unwrap_or_default();
            write!(f, "\ncost in 1 h: {}, of it {} for retries and fallbacks", money.spent, money.extra)?;
            writeln!(f, ", {each:.6} $ a call; {} was reserved", money.reserved)?;
        }
        let mut lines = Vec::new();
        for breaker in &self.breakers {
            let of = if breaker.key.is_empty() { String::new() } else { format!(" of {}", breaker.key) };
            let state = words::state_word(breaker.state);
            lines.push(format!("{}{of}: {state}, {} trips", breaker.name, breaker.trips));
        }
        for layer in self.layers.iter().filter(|layer| layer.refusals.total() > 0) {
            lines.push(format!("{}: {:?} refused", layer.name, layer.refusals));
        }
        for budget in &self.budgets {
            let share = 100.0 * float(budget.spent.as_nanos()) / float(budget.limit.as_nanos().max(1));
            let (spent, limit) = (budget.spent, budget.limit);
            lines.push(format!(
                "{}: passed {} %, {share:.1} % ({spent} of {limit})",
                budget.name, budget.percent
            ));
        }
        for watching in &self.watched {
            let gauges: Vec<_> = watching.gauges.iter().map(ToString::to_string).collect();
            lines.push(format!("{}: {}", watching.name, gauges.join(", ")));
        }
        lines.extend(self.alerts.iter().map(|alert| format!("ALERT {alert}")));
        if !lines.is_empty() {
            writeln!(f)?;
        }
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InFlight(count) => write!(f, "{count} in flight"),
            Self::Limit(count) => write!(f, "limit {count}"),
            Self::Queued(count) => write!(f, "{count} waiting"),
            Self::Level { dimension, available, capacity } => {
                write!(f, "{available} of {capacity} {dimension} free")
            }
            Self::PausedFor(wait) if wait.is_zero() => f.write_str("no pause"),
            Self::PausedFor(wait) => write!(f, "paused for {}", time(*wait)),
            Self::Breaker(state) => f.write_str(words::state_word(*state)),
        }
    }
}

/// Rows whose columns are as wide as they have to be; the first is flush left, the others right.
struct Table {
    widths: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(heads: &[&str]) -> Self {
        let mut table = Self { widths: vec![0; heads.len()], rows: Vec::new() };
        table.row(heads.iter().map(ToString::to_string).collect());
        table
    }

    fn row(&mut self, cells: Vec<String>) {
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.chars().count());
        }
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            for (at, (cell, &width)) in row.iter().zip(&self.widths).enumerate() {
                match at {
                    0 => write!(f, "{cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
