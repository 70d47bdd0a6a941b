//! Budgets, and limits of others.

use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};

use super::world::*;
use crate::provider::{Fault, Limits, Style};

/// $20 and $30 a million tokens.
const DEAR: (u64, u64) = (20_000, 30_000);
/// Five cents, in nano-dollars.
const CENTS: u64 = 50_000_000;

#[tokio::test]
async fn a_hundred_calls_at_once_never_spend_more_than_the_budget() {
    let budget = "limit = \"0.05\"\nwindow = \"total\"";
    let world = World::with(Setup { budget, price: DEAR, ..Setup::default() }).await;
    // Each is billed $0.0019, so that all of them would cost $0.19.
    let all = join_all((0..100).map(|call| world.chat(call % 2 == 0))).await;
    let served = all.iter().filter(|got| got.status == 200).count();
    assert!((1..100).contains(&served), "{served} served");
    for got in all.iter().filter(|got| got.status != 200) {
        let (status, code, kind) = got.error();
        assert_eq!((status, kind.as_str()), (402, "insufficient_quota"));
        assert!(["budget_contended", "budget_exhausted"].contains(&&*code), "{code}");
    }
    let (spent, billed) = world.settle().await;
    assert!(billed <= CENTS, "{billed} billed");
    assert_eq!(spent, billed);
    // One after the other they use it up, and then nobody is served.
    let mut got = world.chat(false).await;
    while got.status == 200 {
        got = world.chat(false).await;
    }
    assert_eq!(got.error().0, 402);
    let (spent, billed) = world.settle().await;
    assert!(billed <= CENTS && spent == billed, "{spent} spent, {billed} billed");
}

#[tokio::test]
async fn the_budgets_of_two_clients_are_apart() {
    let more = r#"
[[clients]]
name = "team-a"
key = "secret-of-team-a"
[[clients]]
name = "team-b"
key = "secret-of-team-b"
"#;
    let budget = "limit = \"0.03\"\nwindow = \"total\"\nkey = \"client\"";
    let world = World::with(Setup { budget, price: DEAR, more, ..Setup::default() }).await;
    let ask = async |team: &str| {
        let mut request = post("/v1/chat/completions", chat(false).to_string());
        let key = format!("Bearer {}", secret(team));
        request.headers_mut().insert("authorization", key.parse().unwrap());
        world.ask(request).await
    };
    let mut served = 0;
    while ask("team-a").await.status == 200 {
        served += 1;
    }
    assert!(served > 0);
    assert_eq!(ask("team-a").await.error().0, 402);
    assert_served(&ask("team-b").await, "first");
    world.settle_to_the_bill().await;
    let stats: serde_json::Value = serde_json::from_str(&world.text("/stats").await).unwrap();
    let keys = stats["accounts"].as_array().unwrap().iter().map(|account| account["key"].as_str().unwrap());
    let mut keys = keys.collect::<Vec<_>>();
    keys.sort_unstable();
    assert_eq!(keys, ["team-a", "team-b"]);
    assert!(!stats.to_string().contains("secret-of-"));
}

#[tokio::test]
async fn a_storm_of_limits_is_answered_by_the_second_and_ends_the_asking() {
    let world = World::with(Setup { first: "requests_per_minute = 60000", ..Setup::default() }).await;
    world.first.always(Fault::status(429).retry_after(Duration::from_secs(3_600)));
    for got in join_all((0..50).map(|call| world.chat(call % 2 == 0))).await {
        assert_served(&got, "second");
    }
    let asked = world.first.requests();
    assert!((1..=50).contains(&asked), "each call asked at most once: {asked}");
    for got in join_all((0..50).map(|call| world.chat(call % 2 == 0))).await {
        assert_served(&got, "second");
    }
    assert_eq!(world.first.requests(), asked, "nobody asks while the limit holds");
    world.settle_to_the_bill().await;
}

#[tokio::test]
async fn real_limits_of_a_provider_are_kept_and_nobody_is_lost() {
    let world = World::with(Setup { first: "requests_per_minute = 20", ..Setup::default() }).await;
    world.first.set_limits(Some(Limits::per_minute(20, 0).style(Style::OpenAi)));
    let all = join_all((0..60).map(|call| world.chat(call % 2 == 0))).await;
    for got in &all {
        assert_served(got, got.by());
    }
    let refused = world.first.seen().iter().filter(|seen| seen.status == Some(429)).count();
    assert_eq!(refused, 0, "the own limit keeps within theirs");
    assert_eq!(all.iter().filter(|got| got.by() == "first").count(), world.first.requests());
    world.settle_to_the_bill().await;
}

/// The seconds after which it makes sense to come back.
fn after(got: &Got) -> Option<u64> {
    got.headers.get("retry-after").map(|value| value.to_str().unwrap().parse().unwrap())
}

#[tokio::test]
async fn refusals_have_the_shape_that_clients_read_and_a_time_to_come_back() {
    // 429: its own limit at both targets.
    let first = "requests_per_minute = 1\n[upstreams.first.limits]\nmax_wait = \"1ms\"";
    let world = World::with(Setup { first, ..Setup::default() }).await;
    let to_first = "targets = [{ upstream = \"first\", model = \"model-a\" }]";
    let both = "targets = [{ upstream = \"first\", model = \"model-a\" }, { upstream = \"second\", model = \"model-b\" }]";
    world.rewrite(|text| text.replace(both, to_first));
    world.gateway.reload().unwrap();
    assert_served(&world.chat(false).await, "first");
    let got = world.chat(false).await;
    assert_eq!(got.error(), (429, "rate_limited".to_owned(), "rate_limit_error".to_owned()));
    assert!((1..=60).contains(&after(&got).unwrap()), "{got:?}");
    // 402: spent for the day at both targets, until the day is over.
    let budget = "limit = \"0.002\"\nwindow = \"day\"";
    let world = World::with(Setup { budget, ..Setup::default() }).await;
    let mut got = world.chat(false).await;
    while got.status == 200 {
        got = world.chat(false).await;
    }
    assert_eq!(got.error(), (402, "budget_exhausted".to_owned(), "insufficient_quota".to_owned()));
    assert!((1..=86_400).contains(&after(&got).unwrap()), "{got:?}");
    // 503: every slot is taken.
    let world = World::new().await;
    world.rewrite(|text| {
        text.replace("max_concurrent = 200", "max_concurrent = 1") + "\n[bulkhead]\nqueue = 0\n"
    });
    world.gateway.reload().unwrap();
    world.first.always(Fault::Hang);
    world.second.always(Fault::Hang);
    let holds = async { join(world.chat(false), world.chat(false)).await };
    let asks = async {
        world.first.when(|log| !log.is_empty()).await;
        world.second.when(|log| !log.is_empty()).await;
        world.chat(false).await
    };
    let got = match select(Box::pin(holds), Box::pin(asks)).await {
        Either::Left((held, _)) => panic!("{held:?}"),
        Either::Right((got, _)) => got,
    };
    assert_eq!(got.error(), (503, "full".to_owned(), "server_error".to_owned()));
    // 504: the time is over.
    let world = World::with(Setup { total: SHORT, ..Setup::default() }).await;
    world.first.always(Fault::Hang);
    let got = world.chat(false).await;
    assert_eq!(got.error(), (504, "timeout_total".to_owned(), "server_error".to_owned()));
}
