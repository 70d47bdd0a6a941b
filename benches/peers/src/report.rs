//! The tables, for people and for programs.

use std::fmt::Write as _;

use crate::measure::Timing;
use crate::sizes::Size;

/// One measured row.
pub struct Line {
    pub layer: &'static str,
    pub ours: Timing,
    pub peer: &'static str,
    pub theirs: Timing,
    /// Ours, theirs.
    pub allocations: (u64, u64),
}

impl Line {
    pub fn ratio(&self) -> f64 {
        self.ours.least / self.theirs.least
    }
}

/// A bar, and how far off it is.
pub struct Bar {
    pub name: String,
    /// NaN where it could not be measured, infinite where it is beyond all measure.
    pub measured: f64,
    pub limit: f64,
    /// Whether more is better.
    pub at_least: bool,
}

impl Bar {
    pub fn is_met(&self) -> bool {
        if self.at_least { self.measured >= self.limit } else { self.measured <= self.limit }
    }

    /// Whether it is known to be missed.
    pub fn is_missed(&self) -> bool {
        !self.measured.is_nan() && !self.is_met()
    }
}

/// The bars, a line each.
pub fn bars(bars: &[Bar]) -> String {
    bars.iter().fold(String::new(), |mut text, bar| {
        let Bar { name, measured, limit, .. } = bar;
        let sign = if bar.at_least { ">=" } else { "<=" };
        let _ = if measured.is_nan() {
            writeln!(text, "BAR {name} - {sign}{limit} not-measured")
        } else {
            let verdict = if bar.is_met() { "ok" } else { "SHORT" };
            writeln!(text, "BAR {name} {measured:.2} {sign}{limit} {verdict}")
        };
        text
    })
}

/// As Markdown. Nanoseconds are the least of the run, with the median in brackets.
pub fn markdown(lines: &[Line]) -> String {
    let mut text = String::from(
        "| layer | ours ns | peer | peer ns | ratio | allocations ours / peer |\n|---|---|---|---|---|---|\n",
    );
    for line in lines {
        let Line { layer, ours, peer, theirs, allocations } = line;
        let _ = writeln!(
            text,
            "| {layer} | {:.1} ({:.1}) | {peer} | {:.1} ({:.1}) | {:.2} | {} / {} |",
            ours.least,
            ours.median,
            theirs.least,
            theirs.median,
            line.ratio(),
            allocations.0,
            allocations.1,
        );
    }
    text
}

/// The sizes as Markdown.
pub fn sizes(sizes: &[Size]) -> String {
    let mut text = String::from(
        "| layer | our future | on the heap | peer | its future | on the heap |\n|---|---|---|---|---|---|\n",
    );
    for Size { layer, ours, peer, theirs } in sizes {
        let _ = write!(text, "| {layer} | {} | {} | {peer} |", ours.future, ours.heap);
        let _ = match theirs {
            Some(theirs) => writeln!(text, " {} | {} |", theirs.future, theirs.heap),
            None => writeln!(text, " – | – |"),
        };
    }
    text
}

fn size_json(size: &Size) -> String {
    let Size { layer, ours, peer, theirs } = size;
    let (future, heap) = match theirs {
        Some(theirs) => (theirs.future.to_string(), theirs.heap.to_string()),
        None => ("null".into(), "null".into()),
    };
    format!(
        r#"{{"layer":"{layer}","ours_future_bytes":{},"ours_heap_bytes":{},"peer":"{peer}","peer_future_bytes":{future},"peer_heap_bytes":{heap}}}"#,
        ours.future, ours.heap,
    )
}

/// As JSON: no name in it needs an escape.
pub fn json(lines: &[Line], sizes: &[Size], shared: &[Shared], bars: &[Bar]) -> String {
    let rows: Vec<String> = lines
        .iter()
        .map(|line| {
            format!(
                r#"{{"layer":"{}","peer":"{}","ours_ns":{:.2},"ours_median_ns":{:.2},"peer_ns":{:.2},"peer_median_ns":{:.2},"ours_allocations":{},"peer_allocations":{}}}"#,
                line.layer, line.peer, line.ours.least, line.ours.median, line.theirs.least, line.theirs.median,
                line.allocations.0, line.allocations.1,
            )
        })
        .collect();
    let bars: Vec<String> = bars.iter().map(bar_json).collect();
    let sizes: Vec<String> = sizes.iter().map(size_json).collect();
    let shared: Vec<String> = shared.iter().map(shared_json).collect();
    format!(
        "{{\"rows\":[{}],\"sizes\":[{}],\"two_threads\":[{}],\"bars\":[{}]}}\n",
        rows.join(","),
        sizes.join(","),
        shared.join(","),
        bars.join(","),
    )
}

fn bar_json(bar: &Bar) -> String {
    let Bar { name, measured, limit, at_least } = bar;
    let met = if measured.is_nan() { "null".into() } else { bar.is_met().to_string() };
    let measured = if measured.is_finite() { format!("{measured:.3}") } else { "null".into() };
    format!(r#"{{"name":"{name}","measured":{measured},"limit":{limit},"at_least":{at_least},"met":{met}}}"#)
}

/// What two threads get through one service; `None` where no turn counted.
pub struct Shared {
    pub name: &'static str,
    pub part: Option<Timing>,
}

/// The throughput of two threads as Markdown.
pub fn shared(shared: &[Shared]) -> String {
    let mut text = String::from(
        "| shared by two threads | throughput of one thread's, best | median |\n|---|---|---|\n",
    );
    for Shared { name, part } in shared {
        let _ = match part {
            Some(part) => writeln!(text, "| {name} | {:.2} | {:.2} |", part.least, part.median),
            None => writeln!(text, "| {name} | not measured: the threads never ran at once | |"),
        };
    }
    text
}

fn shared_json(Shared { name, part }: &Shared) -> String {
    let (best, median) = match part {
        Some(part) => (format!("{:.3}", part.least), format!("{:.3}", part.median)),
        None => ("null".into(), "null".into()),
    };
    format!(r#"{{"name":"{name}","best":{best},"median":{median}}}"#)
}

/// The stored counts as Markdown: the compiler, then a line a layer.
pub fn instructions(stored: &str) -> String {
    let mut lines = stored.lines().filter(|line| !line.starts_with('#'));
    let compiler = lines.next().unwrap_or_default();
    let mut text = format!("By {compiler}.\n\n| a call | instructions |\n|---|---|\n");
    for (layer, count) in lines.filter_map(|line| line.rsplit_once(' ')) {
        let _ = writeln!(text, "| {} | {count} |", layer.replace('-', " "));
    }
    text
}

/// The page with another text between the marks of this name; `None` if it has none.
pub fn put(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (head, rest) = page.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}{text}{end}{tail}"))
}
