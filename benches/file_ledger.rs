//! How many calls a second a ledger with a file bears, and what it adds to the latency of each: reserve, wait until that
//! is synced, settle. Many calls share one sync, so the figure is a curve over the calls at once.
#![allow(missing_docs, reason = "a bench has no users")]
#![allow(clippy::disallowed_types, reason = "a bench measures in the time of std")]
#![allow(clippy::unwrap_used, reason = "a bench that fails may panic; the line says where")]
#![allow(clippy::print_stdout, reason = "what it is for")]

use std::time::{Duration, Instant};

use seawall::call::Key;
use seawall::cost_guard::ledger::{Ask, FileLedger, FileLedgerBuilder, Reservation};
use seawall::cost_guard::{Budget, BudgetKey, Ledger, Spender, Usd, Window};

const LOTS: Usd = Usd::dollars(1_000_000_000);

/// How long each call took to be reserved, and the time for all.
async fn run(ledger: &FileLedger, at_once: u64, calls: u64) -> (Vec<Duration>, Duration) {
    let start = Instant::now();
    let tasks: Vec<_> = (0..at_once)
        .map(|task| {
            let ledger = ledger.clone();
            let tenant = Key::from(task % 100);
            tokio::spawn(async move {
                let mut waits = Vec::new();
                for _ in 0..calls / at_once {
                    let before = Instant::now();
                    let spender = Spender::default();
                    let mut ask = Ask::new(spender, Usd::cents(5));
                    ask.spender.tenant = Some(&tenant);
                    let Reservation::Later(later) = ledger.reserve(&ask) else { panic!("the file is asked") };
                    let granted = later.await.unwrap();
                    waits.push(before.elapsed());
                    ledger.settle(&granted.hold, Usd::cents(1), None);
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.unwrap());
    }
    ledger.flush().await.unwrap();
    waits.sort_unstable();
    (waits, start.elapsed())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::temp_dir().join(format!("seawall-bench-{}.redb", std::process::id()));
    for budgets in [1, 3] {
        let all = [
            Budget::new(LOTS, Window::TOTAL),
            Budget::new(LOTS, Window::DAY).by(BudgetKey::Tenant),
            Budget::new(LOTS, Window::MONTH),
        ];
        let builder = all.into_iter().take(budgets).fold(FileLedger::builder(), FileLedgerBuilder::budget);
        let ledger = builder.open(&path).unwrap();
        for at_once in [1, 64, 512, 2_048] {
            let calls = (at_once * 100).clamp(500, 100_000);
            let (waits, time) = run(&ledger, at_once, calls).await;
            let part = |percent: usize| waits[(waits.len() - 1) * percent / 100];
            println!(
                "{budgets} budgets, {at_once:>5} at once: {:>8} calls/s, added p50 {:?}, p99 {:?}",
                waits.len() as u128 * 1_000 / time.as_millis().max(1),
                part(50),
                part(99)
            );
        }
        ledger.close().await.unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
