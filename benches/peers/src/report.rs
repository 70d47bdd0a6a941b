//! The tables, for people and for programs.

use std::fmt::Write as _;

use crate::measure::Timing;

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
    pub measured: f64,
    pub limit: f64,
    /// Whether more is better.
    pub at_least: bool,
}

impl Bar {
    pub fn is_met(&self) -> bool {
        if self.at_least { self.measured >= self.limit } else { self.measured <= self.limit }
    }
}

/// The bars, a line each.
pub fn bars(bars: &[Bar]) -> String {
    bars.iter().fold(String::new(), |mut text, bar| {
        let (sign, verdict) =
            (if bar.at_least { ">=" } else { "<=" }, if bar.is_met() { "ok" } else { "SHORT" });
        let _ = writeln!(text, "BAR {} {:.2} {sign}{} {verdict}", bar.name, bar.measured, bar.limit);
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

/// As JSON: no name in it needs an escape.
pub fn json(lines: &[Line], bars: &[Bar]) -> String {
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
    let bars: Vec<String> = bars
        .iter()
        .map(|bar| {
            let (measured, limit, met) = (bar.measured, bar.limit, bar.is_met());
            format!(r#"{{"name":"{}","measured":{measured:.3},"limit":{limit},"met":{met}}}"#, bar.name)
        })
        .collect();
    format!("{{\"rows\":[{}],\"bars\":[{}]}}\n", rows.join(","), bars.join(","))
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
