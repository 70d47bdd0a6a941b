//! What must hold when things go wrong: a row a fault, each from a run, ours and each peer that has such a part.

mod breakers;
mod bulkheads;
mod rates;
mod retries;
mod subject;

use std::fmt::Write as _;

/// What a run found: it holds, or what came instead. `None`: the peer has no such part.
pub type Found = Option<Result<(), String>>;

/// The peers, in the order of the table.
pub const NAMES: [&str; 7] =
    ["seawall", "tower", "tower-resilience", "seatbelt", "failsafe", "governor", "throttle-net"];

/// One fault.
pub struct Row {
    pub must: &'static str,
    pub found: [Found; NAMES.len()],
}

/// Where it holds, and what to say where it does not.
fn holds(yes: bool, instead: impl FnOnce() -> String) -> Result<(), String> {
    if yes { Ok(()) } else { Err(instead()) }
}

/// All of them. Takes some seconds: breakers of peers know no other clock than the real one.
pub fn rows() -> Vec<Row> {
    breakers::rows()
        .into_iter()
        .chain(bulkheads::rows())
        .chain(rates::rows())
        .chain(retries::rows())
        .collect()
}

/// Whether ours holds wherever it was asked.
pub fn ours_hold(rows: &[Row]) -> bool {
    rows.iter().all(|row| matches!(row.found[0], Some(Ok(()))))
}

/// As Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let mut text =
        format!("| what must hold | {} |\n|---|{}\n", NAMES.join(" | "), "---|".repeat(NAMES.len()));
    for row in rows {
        let cells: Vec<String> = row.found.iter().map(cell).collect();
        let _ = writeln!(text, "| {} | {} |", row.must, cells.join(" | "));
    }
    text
}

fn cell(found: &Found) -> String {
    match found {
        None => "–".into(),
        Some(Ok(())) => "yes".into(),
        Some(Err(instead)) => format!("**no**: {instead}"),
    }
}
