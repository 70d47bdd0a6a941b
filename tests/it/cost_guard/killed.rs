//! A process that is killed in the middle of its calls, fifty times over one file.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seawall::cost_guard::ledger::{Ask, FileLedger, Reservation};
use seawall::cost_guard::{Budget, Ledger, Spender, Usd, Window};

/// Where the child finds its file.
const FILE: &str = "SEAWALL_TEST_LEDGER";
const CALLS: u64 = 1_000;
const TASKS: u64 = 50;
const KILLS: u64 = 50;
/// What is reserved for a call, in nano-dollars.
const BOUND: u64 = 1_000;

fn budget() -> Budget {
    Budget::new(Usd::dollars(1_000), Window::TOTAL)
}

/// One line, in one write: what was written before the kill arrives.
fn say(word: &str, nanos: u64) {
    let line = format!("\n#{word} {nanos}\n");
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
    let _ = std::io::stdout().lock().flush();
}

/// Runs in the child: calls whose provider says on standard output what it is asked for and what it bills.
#[tokio::test]
async fn the_child_makes_calls_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let ledger = FileLedger::open(PathBuf::from(file), budget()).unwrap();
    let tasks = (0..TASKS).map(|task| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            for call in 0..CALLS / TASKS {
                say("reserves", BOUND);
                let Reservation::Later(later) =
                    ledger.reserve(&Ask::new(Spender::default(), Usd::nanos(BOUND)))
                else {
                    panic!("there is room, and the file is asked")
                };
                let granted = later.await.unwrap();
                let cost = (task * 37 + call * 101) % (BOUND + 1);
                say("bills", cost);
                tokio::task::yield_now().await;
                ledger.settle(&granted.hold, Usd::nanos(cost), None);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    say("is-done", 0);
    std::future::pending::<()>().await;
}

/// What was reserved and what was billed in a process that is killed after so many words.
fn killed_after(words: u64, file: &Path) -> (u64, u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cost_guard::killed::the_child_makes_calls_until_it_is_killed", "--nocapture"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut reserved, mut billed, mut heard) = (0, 0, 0);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((word, nanos)) = line.strip_prefix('#').and_then(|line| line.split_once(' ')) else {
            continue;
        };
        let nanos: u64 = nanos.parse().unwrap();
        match word {
            "reserves" => reserved += nanos,
            "bills" => billed += nanos,
            _ => {}
        }
        heard += 1;
        if heard == words || word == "is-done" {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(heard >= words.min(2 * CALLS), "the child ended by itself after {heard} words");
    (reserved, billed)
}

#[tokio::test]
async fn a_process_that_is_killed_fifty_times_forgets_nothing_and_frees_nothing_twice() {
    let file = std::env::temp_dir().join(format!("seawall-killed-{}.redb", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let mut before = 0;
    for kill in 0..KILLS {
        // From the first call to the last ones.
        let (reserved, billed) = killed_after(1 + kill * 41, &file);
        let spent = spent(&file).await;
        assert!(spent >= before + billed, "kill {kill}: {spent} after {before}, but {billed} was billed");
        assert!(
            spent <= before + reserved,
            "kill {kill}: {spent} after {before}, but {reserved} was reserved"
        );
        before = spent;
    }
    std::fs::remove_file(&file).unwrap();
}

async fn spent(file: &Path) -> u64 {
    let mut seen = Vec::new();
    // Opened once more it says the same: the calls of a dead process are charged once.
    for _ in 0..2 {
        let ledger = FileLedger::open(file, budget()).unwrap();
        let account = ledger.account("total budget", "").unwrap();
        assert_eq!((account.reserved, ledger.unwritten()), (Usd::ZERO, 0));
        seen.push(account.spent.as_nanos());
        ledger.close().await.unwrap();
    }
    assert_eq!(seen[0], seen[1]);
    seen[0]
}
