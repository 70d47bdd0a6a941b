//! Seawall beside its peers, in one run.
//!
//! `cargo run --release` prints the tables and a line a bar, writes both as Markdown and JSON under `target/`, and ends
//! with an error when a bar is missed; `-- --record` puts the tables into `BENCHMARKS.md` too. A part of it:
//!
//! - `-- behave` the faults, with an error where this crate shows one; it takes `--record` too.
//! - `-- rows PART` the rows of the layers with this in their name.
//! - `-- threads` what two threads share.
//! - `-- alone` the bars that no peer stands beside.
//! - `-- compile` what 16 layers cost the compiler, which takes a while and is otherwise only part of what is recorded.

mod alone;
mod behave;
mod compile;
mod drive;
mod measure;
mod ours;
mod report;
mod rows;
mod sizes;
mod stacks;
mod support;
mod theirs;
mod waiting;

use std::path::Path;
use std::process::ExitCode;

use drive::{Echo, Prompt};
use measure::{TURNS, Timing, allocations, paired, precise, two_threads};
use report::{Bar, Line, Shared};
use rows::Row;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime with a timer needs nothing that can be missing");
    let _inside = runtime.enter();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let record = args.iter().any(|arg| arg == "--record");
    match args.first().map(String::as_str) {
        Some("behave") => behaviour(record),
        Some("alone") => told(&alone::bars()),
        Some("compile") => told(&[compile::bar()]),
        Some("threads") => threads(),
        Some("rows") => some_rows(args.get(1).map_or("", String::as_str)),
        _ => compare(record),
    }
}

fn some_rows(part: &str) -> ExitCode {
    let all = [rows::bars(), rows::others(), rows::stacks(), rows::waits()];
    let mut rows: Vec<Row> = all.into_iter().flatten().filter(|row| row.layer.contains(part)).collect();
    let lines = lines(&mut rows);
    println!("{}", report::markdown(&lines));
    if lines.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn threads() -> ExitCode {
    let mut bars = Vec::new();
    let shared = shared(&mut bars);
    println!("{}", report::shared(&shared));
    told(&bars)
}

/// Prints bars, and fails where one is missed.
fn told(bars: &[Bar]) -> ExitCode {
    print!("{}", report::bars(bars));
    ended(bars)
}

/// A failure where a bar is missed.
fn ended(bars: &[Bar]) -> ExitCode {
    if bars.iter().any(Bar::is_missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
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

/// The same rows in two rounds: of each side the better one counts, since a machine can be slow for longer than a row takes.
fn lines(rows: &mut [Row]) -> Vec<Line> {
    let mut lines: Vec<Line> = rows.iter_mut().map(line).collect();
    for (line, row) in lines.iter_mut().zip(rows) {
        let (ours, theirs) = paired(&mut row.ours, &mut row.theirs, TURNS);
        (line.ours, line.theirs) = (line.ours.better(ours), line.theirs.better(theirs));
    }
    lines
}

fn row_bars(rows: &[Row], lines: &[Line]) -> Vec<Bar> {
    let limited = rows.iter().zip(lines).filter_map(|(row, line)| Some((row.bar?, line)));
    let both = limited.map(|(limit, line)| {
        let name = format!("{} / {}", line.layer, line.peer).replace(' ', "-");
        let allocated = Bar {
            name: format!("{name}:allocations"),
            measured: precise(line.allocations.0),
            limit: 0.0,
            at_least: false,
        };
        [Bar { name, measured: line.ratio(), limit, at_least: false }, allocated]
    });
    both.flatten().collect()
}

fn compare(record: bool) -> ExitCode {
    let mut rows = rows::bars();
    let mut measured = lines(&mut rows);
    let mut bars = row_bars(&rows, &measured);
    for mut rows in [rows::others(), rows::stacks(), rows::waits()] {
        measured.extend(lines(&mut rows));
    }
    let (sizes, shared) = (sizes::all(), shared(&mut bars));
    bars.extend(alone::bars());
    if record {
        bars.push(compile::bar());
    }
    let tables = [report::markdown(&measured), report::sizes(&sizes), report::shared(&shared)].join("\n");
    let said = report::bars(&bars);
    println!("{tables}\n{said}");
    if let Err(error) = write(&tables, &said, &report::json(&measured, &sizes, &shared, &bars), record) {
        eprintln!("the tables could not be written: {error}");
        return ExitCode::FAILURE;
    }
    ended(&bars)
}

/// Two threads on one service.
fn shared(bars: &mut Vec<Bar>) -> Vec<Shared> {
    fn numbers(service: &impl ours::Numbers) -> Option<Timing> {
        two_threads(service, [7; 2], TURNS / 4)
    }
    fn prompts(service: &impl ours::Prompts, tenants: [Prompt; 2]) -> Option<Timing> {
        two_threads(service, tenants, TURNS / 4)
    }
    let tenants = ["acme", "emca"].map(Prompt::of);
    let guard = ours::guard_by_tenant();
    let six = stacks::six_by_tenant();
    let measured = [
        ("tower ConcurrencyLimit", numbers(&theirs::concurrency_limit(Echo)), None),
        ("bulkhead", numbers(&ours::bulkhead()), None),
        ("circuit breaker", numbers(&ours::breaker()), None),
        ("token bucket", numbers(&ours::bucket()), Some(0.6)),
        ("token bucket, leases", numbers(&ours::bucket_with_leases()), Some(1.0)),
        ("token bucket, two dimensions", numbers(&ours::bucket_of_two()), Some(0.6)),
        ("token bucket in use", numbers(&ours::bucket_in_use()), Some(0.6)),
        ("cost guard, one key", prompts(&guard, [tenants[0]; 2]), Some(0.5)),
        ("cost guard, two keys", prompts(&guard, tenants), Some(1.0)),
        ("all six, without keys", prompts(&ours::all_six(), [tenants[0]; 2]), None),
        ("all six, one key", prompts(&six, [tenants[0]; 2]), Some(0.6)),
        ("all six, two keys", prompts(&six, tenants), Some(1.0)),
    ];
    for (name, part, bar) in &measured {
        let Some(limit) = *bar else { continue };
        let name = format!("{name} / two threads").replace(' ', "-");
        bars.push(Bar { name, measured: part.map_or(f64::NAN, |part| part.least), limit, at_least: true });
    }
    measured.into_iter().map(|(name, part, _)| Shared { name, part }).collect()
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
