//! Seawall beside its peers, in one run.
//!
//! `cargo run --release` prints the tables and a line a bar, writes both as Markdown and JSON under `target/`, and ends
//! with an error when a bar is missed. `-- --record` puts the tables into `BENCHMARKS.md` too. `-- behave` runs the faults
//! alone, and ends with an error where this crate shows one; it takes `--record` too.

mod alone;
mod behave;
mod drive;
mod measure;
mod ours;
mod report;
mod rows;
mod support;
mod theirs;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use drive::Prompt;
use measure::{TURNS, allocations, paired, precise, two_threads};
use report::{Bar, Line};
use rows::Row;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime with a timer needs nothing that can be missing");
    let _inside = runtime.enter();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let record = args.iter().any(|arg| arg == "--record");
    if args.first().is_some_and(|command| command == "behave") { behaviour(record) } else { compare(record) }
}

fn behaviour(record: bool) -> ExitCode {
    let rows = behave::rows();
    println!("{}", behave::markdown(&rows));
    if let Err(error) = if record { write_behaviour(&rows) } else { Ok(()) } {
        eprintln!("the table could not be written: {error}");
        return ExitCode::FAILURE;
    }
    if behave::ours_hold(&rows) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn line(row: &mut Row) -> Line {
    let (ours, theirs) = paired(&mut row.ours, &mut row.theirs, TURNS);
    let allocations = (allocations(&mut row.ours), allocations(&mut row.theirs));
    Line { layer: row.layer, ours, peer: row.peer, theirs, allocations }
}

fn compare(record: bool) -> ExitCode {
    let (mut lines, mut bars) = (Vec::new(), Vec::new());
    for mut row in rows::bars() {
        let line = line(&mut row);
        let name = format!("{} / {}", row.layer, row.peer).replace(' ', "-");
        if let Some(limit) = row.bar {
            bars.push(Bar { name: name.clone(), measured: line.ratio(), limit, at_least: false });
            let measured = precise(line.allocations.0);
            bars.push(Bar { name: format!("{name}:allocations"), measured, limit: 0.0, at_least: false });
        }
        lines.push(line);
    }
    lines.extend(rows::others().iter_mut().map(line));
    let shared = shared(&mut bars);
    bars.extend(alone::bars());
    let table = format!("{}\n{shared}", report::markdown(&lines));
    let told = report::bars(&bars);
    println!("{table}\n{told}");
    if let Err(error) = write(&table, &told, &report::json(&lines, &bars), record) {
        eprintln!("the tables could not be written: {error}");
        return ExitCode::FAILURE;
    }
    if bars.iter().all(Bar::is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Two threads on one service. There are two processors at least, or nothing is told.
fn shared(bars: &mut Vec<Bar>) -> String {
    fn numbers(service: &impl ours::Numbers) -> Option<measure::Timing> {
        two_threads(service, [7; 2], TURNS / 4)
    }
    let tenants = ["acme", "emca"].map(Prompt::of);
    let by_tenant = ours::guard_by_tenant();
    let measured = [
        ("tower ConcurrencyLimit", numbers(&theirs::concurrency_limit()), None),
        ("bulkhead", numbers(&ours::bulkhead()), Some(0.6)),
        ("circuit breaker", numbers(&ours::breaker()), Some(0.6)),
        ("token bucket", numbers(&ours::bucket()), Some(0.6)),
        ("token bucket, two dimensions", numbers(&ours::bucket_of_two()), Some(0.6)),
        ("cost guard, one key", two_threads(&by_tenant, [tenants[0]; 2], TURNS / 4), Some(0.5)),
        ("cost guard, two keys", two_threads(&by_tenant, tenants, TURNS / 4), Some(1.0)),
    ];
    let mut text = String::from(
        "| shared by two threads | throughput of one thread's, best | median |\n|---|---|---|\n",
    );
    for (name, part, bar) in measured {
        let Some(part) = part else { continue };
        let _ = writeln!(text, "| {name} | {:.2} | {:.2} |", part.least, part.median);
        if let Some(limit) = bar {
            let name = format!("{name} / two threads").replace(' ', "-");
            bars.push(Bar { name, measured: part.least, limit, at_least: true });
        }
    }
    text
}

/// Leaves the tables under `target/`; all that was found goes into `BENCHMARKS.md` too, if it is to be recorded.
fn write(table: &str, bars: &str, json: &str, record: bool) -> std::io::Result<()> {
    let text = format!("{table}\n```text\n{bars}```\n");
    std::fs::write(here().join("target/peers.md"), &text)?;
    std::fs::write(here().join("target/peers.json"), json)?;
    if !record {
        return Ok(());
    }
    put("tables", &text)?;
    write_behaviour(&behave::rows())
}

/// What needs no quiet machine: the faults, and the instructions that are stored.
fn write_behaviour(rows: &[behave::Row]) -> std::io::Result<()> {
    let counts = std::fs::read_to_string(here().join("instructions.txt"))?;
    put("behaviour", &behave::markdown(rows))?;
    put("instructions", &report::instructions(&counts))
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Puts a text into its place in `BENCHMARKS.md`.
fn put(name: &str, text: &str) -> std::io::Result<()> {
    let page = here().join("../../BENCHMARKS.md");
    let told = report::put(&std::fs::read_to_string(&page)?, name, text);
    let told =
        told.ok_or_else(|| std::io::Error::other(format!("BENCHMARKS.md has no place for the {name}")))?;
    std::fs::write(&page, told)
}
