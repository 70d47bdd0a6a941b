//! The evidence: what each set-up makes of six kinds of bad days, side by side.
//!
//! Five set-ups, from no protection to all layers in the order that the crate recommends, against a provider of 60 requests
//! a minute under steady load, in bursts at 17 and 40 times that rate, a flapping one with a healthy second, a slow one, and
//! one that freezes. Everything is in virtual time, so that hours pass in seconds, and the same in every run; with `--real`
//! the same code runs over sockets on loopback, shorter and faster than life: for about a minute.
//!
//! ```sh
//! cargo run --release --example storm
//! cargo run --release --example storm -- --real
//! cargo run --release --example storm -- --only ab --seed 3
//! cargo run --release --example storm -- --json storm.json --svg plots
//! ```
//!
//! All set-ups beyond the first make at most six attempts, with backoff from 500 ms and a budget of four retries for ten
//! calls, and take a broken answer for a failed attempt. Their breakers are those for a provider without a substitute
//! (`Settings::tolerant`), open for 2 to 4 s. A call is served if
//! its whole answer came within its caller's patience; latencies are those of the calls that were served. `attempts` are
//! those that the provider saw for each call (fewer than one where a breaker kept calls from it: it spares the provider, and
//! without a second one that costs calls); `cost` is what it billed for a thousand calls that were served, and `retries`
//! the share of it that went to attempts after the first.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to the person who runs it")]

#[path = "storm/plot.rs"]
mod plot;
#[path = "storm/provider.rs"]
mod provider;
#[path = "storm/report.rs"]
mod report;
#[path = "storm/run.rs"]
mod run;
#[path = "storm/scenario.rs"]
mod scenario;
#[path = "storm/setups.rs"]
mod setups;
mod support;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use run::Cell;
use scenario::Scenario;
use seawall::BoxError;
use setups::SetUp;
use tokio::task::JoinSet;

#[derive(Debug)]
struct Args {
    real: bool,
    seed: u64,
    /// The letters of the scenarios.
    only: Option<String>,
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut args = Self { real: false, seed: 7, only: None, json: None, svg: None };
        while let Some(word) = words.next() {
            match &*word {
                "--real" => args.real = true,
                "--seed" => args.seed = words.next()?.parse().ok()?,
                "--only" => args.only = Some(words.next()?),
                "--json" => args.json = Some(words.next()?.into()),
                "--svg" => args.svg = Some(words.next()?.into()),
                _ => return None,
            }
        }
        Some(args)
    }
}

fn main() -> ExitCode {
    let Some(args) = Args::parse(std::env::args().skip(1)) else {
        eprintln!("usage: storm [--real] [--seed NUMBER] [--only LETTERS] [--json FILE] [--svg DIRECTORY]");
        return ExitCode::from(2);
    };
    match storm(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("storm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn storm(args: &Args) -> Result<(), BoxError> {
    let mut scenarios = scenario::all(args.real);
    scenarios.retain(|scenario| args.only.as_ref().is_none_or(|only| only.contains(scenario.key)));
    let grid: Vec<(Scenario, SetUp)> =
        scenarios.iter().flat_map(|scenario| setups::ALL.map(|set_up| (scenario.clone(), set_up))).collect();
    let progress = Progress::of(grid.len());
    let cells = if args.real {
        over_sockets(&grid, args.seed, &progress)?
    } else {
        in_virtual_time(&grid, args.seed, &progress)?
    };
    progress.end();
    for scenario in &scenarios {
        println!("{}", report::table(scenario, &cells));
    }
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&report::json(&scenarios, &cells))?;
        std::fs::write(file, text + "\n")?;
        println!("figures: {}", file.display());
    }
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory)?;
        for (name, text) in plot::all(&scenarios, &cells) {
            let file = directory.join(name);
            std::fs::write(&file, text)?;
            println!("picture: {}", file.display());
        }
    }
    Ok(())
}

/// Each cell on a clock of its own, as many at once as there are processors.
fn in_virtual_time(
    grid: &[(Scenario, SetUp)],
    seed: u64,
    progress: &Progress,
) -> Result<Vec<Cell>, BoxError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some((scenario, set_up)) = grid.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cell = run::simulated(scenario, *set_up, seed);
            done.lock().unwrap_or_else(PoisonError::into_inner).push(cell);
            progress.step();
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(work);
        }
    });
    let cells: Result<Vec<_>, _> =
        done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect();
    Ok(sorted(cells?))
}

/// All cells of a few scenarios at once, since most of their time they wait; and no more, so that they do not wait for each
/// other.
#[tokio::main]
async fn over_sockets(
    grid: &[(Scenario, SetUp)],
    seed: u64,
    progress: &Progress,
) -> Result<Vec<Cell>, BoxError> {
    let mut cells = Vec::new();
    for some in grid.chunk_by(|(one, _), (other, _)| one.faster == other.faster) {
        let mut running = JoinSet::new();
        for (scenario, set_up) in some {
            running.spawn(run::real(scenario.clone(), *set_up, seed));
        }
        while let Some(cell) = running.join_next().await {
            cells.push(cell??);
            progress.step();
        }
    }
    Ok(sorted(cells))
}

/// As the table has them.
fn sorted(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.sort_by_key(|cell| (cell.scenario, setups::ALL.iter().position(|set_up| *set_up == cell.set_up)));
    cells
}

/// How far it is, where somebody sees it.
struct Progress {
    shown: bool,
    all: usize,
    done: AtomicUsize,
}

impl Progress {
    fn of(all: usize) -> Self {
        let progress = Self { shown: std::io::stderr().is_terminal(), all, done: AtomicUsize::new(0) };
        progress.show(0);
        progress
    }

    fn step(&self) {
        self.show(self.done.fetch_add(1, Ordering::Relaxed) + 1);
    }

    fn show(&self, done: usize) {
        if self.shown {
            eprint!("\r{done} of {} runs", self.all);
            let _ = std::io::stderr().flush();
        }
    }

    fn end(&self) {
        if self.shown {
            eprintln!("\r{:40}\r", "");
        }
    }
}
