//! Providers that die and come back at random, and callers that leave at random: what must be true at every moment of it,
//! and after it. Runs for as many seconds as `SEAWALL_CHAOS_SECONDS` says, and without it not at all: see `scripts/chaos`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{join, join_all};
use http_body_util::BodyExt;
use seawall::time::{self, Instant};
use tokio::time::sleep;

use super::world::*;
use crate::provider::{Fault, Pace, Provider};

const CALLERS: usize = 64;
const TOTAL: Duration = Duration::from_secs(8);
/// What a busy machine may add to a deadline before a caller hears of it.
const SLACK: Duration = Duration::from_secs(3);

fn milliseconds(range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(fastrand::u64(range))
}

fn faults() -> Vec<(f64, Fault)> {
    vec![
        (0.03, Fault::status(500)),
        (0.02, Fault::status(503).retry_after(Duration::from_millis(300))),
        (0.02, Fault::status(429).retry_after(Duration::from_millis(200))),
        (0.02, Fault::Reset),
        (0.01, Fault::Cut { after: 20 }),
        (0.003, Fault::Stall { after: 30, wait: None }),
        (0.003, Fault::SlowFirstToken(LONG)),
        (0.003, Fault::Hang),
        (0.01, Fault::ErrorEvent { after: 0 }),
        (0.01, Fault::ErrorEvent { after: 9 }),
    ]
}

/// Kills and revives for so long.
async fn reaper(world: &World, until: Instant) {
    while time::now() < until {
        sleep(milliseconds(500..3_000)).await;
        let provider: &Provider = if fastrand::bool() { &world.first } else { &world.second };
        provider.kill().await;
        sleep(milliseconds(50..800)).await;
        provider.revive().await.unwrap();
    }
}

/// How one call went, in a word.
async fn call(world: &World) -> String {
    let stream = fastrand::u8(..4) > 0;
    let mut body = chat(stream);
    body["messages"][0]["content"] = format!("Say something, {}.", fastrand::u64(..)).into();
    let request = post("/v1/chat/completions", body.to_string());
    let began = time::now();
    if fastrand::u8(..20) == 0 {
        // Leaves before or after the head.
        return match tokio::time::timeout(milliseconds(0..60), world.send(request)).await {
            Ok(response) => format!("{} left at the head", response.status().as_u16()),
            Err(_) => "left before the head".to_owned(),
        };
    }
    let mut response = world.send(request).await;
    if fastrand::u8(..12) == 0 {
        for _ in 0..fastrand::usize(..40) {
            let _ = response.body_mut().frame().await;
        }
        return format!("{} left in the midst", response.status().as_u16());
    }
    let got = read(response).await;
    let took = began.elapsed();
    assert!(took < TOTAL + SLACK, "a call took {took:?}: {got:?}");
    let told = got.body.contains("\"error\"");
    if got.status == 200 && !got.broken && !told {
        assert_eq!(got.tokens(), TOKENS, "half an answer as a success: {got:?}");
        assert!(!stream || got.body.ends_with("data: [DONE]\n\n"), "{got:?}");
    }
    if got.status != 200 {
        assert!(told && !got.broken, "an error that says nothing: {got:?}");
    }
    format!(
        "{}{}{}",
        got.status,
        if got.broken { " broken" } else { "" },
        if told { " with an error" } else { "" }
    )
}

/// In bytes; nothing where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn providers_that_come_and_go_and_callers_who_leave() {
    let Some(seconds) = std::env::var("SEAWALL_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok()) else {
        eprintln!("not run: SEAWALL_CHAOS_SECONDS says for how long");
        return;
    };
    let (began, length) = (time::now(), Duration::from_secs(seconds));
    let world = World::with(Setup {
        total: TOTAL,
        limit: 4 * SHORT,
        open_for: SHORT / 2,
        log: 256,
        budget: "limit = \"1000000\"\nwindow = \"total\"",
        ..Setup::default()
    })
    .await;
    for provider in [&world.first, &world.second] {
        provider.rates(faults());
        provider.set_pace(Pace { token: Duration::from_millis(1), ..Pace::default() });
    }
    let ends: RefCell<BTreeMap<String, u64>> = RefCell::default();
    let warm = RefCell::new(None);
    let callers = join_all((0..CALLERS).map(async |_| {
        while began.elapsed() < length {
            let end = call(&world).await;
            if end.starts_with("50") {
                sleep(milliseconds(10..100)).await;
            }
            *ends.borrow_mut().entry(end).or_default() += 1;
            if began.elapsed() > length / 4 && warm.borrow().is_none() {
                *warm.borrow_mut() = Some(resident());
            }
        }
    }));
    join(callers, reaper(&world, began + length)).await;
    // All is over: nothing is held, and every bill is covered.
    for provider in [&world.first, &world.second] {
        provider.rates([]);
    }
    let (spent, billed) = world.settle().await;
    let (warm, last) = (warm.take().unwrap_or(0), resident());
    eprintln!("{:#?}", ends.into_inner());
    eprintln!("asked {:?}, spent {spent}, billed {billed} nano-dollars", world.asked());
    eprintln!("resident {} MB after a quarter, {} MB at the end", warm >> 20, last >> 20);
    assert!(last < warm + warm / 4 + (16 << 20), "memory grew from {warm} to {last}");
    while world.chat(true).await.status != 200 {}
}
