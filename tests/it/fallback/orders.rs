//! In which order targets are asked, and which are passed over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::fallback::{FallbackLayer, Order, Route, Standing, Target};
use seawall::{Failure, RefusalKind};
use tower::{Service, ServiceExt};

use super::provider::*;

fn three() -> Route {
    Route::to("large")
        .target(Target::at("a").weight(3))
        .target(Target::at("b").weight(1))
        .target(Target::at("c").weight(0))
}

fn healthy() -> Providers {
    Providers::new()
        .on("a", [ok().after(3 * SECOND)])
        .on("b", [ok().after(SECOND)])
        .on("c", [ok().after(2 * SECOND)])
}

async fn asked_by(layer: FallbackLayer, providers: &Providers, calls: usize) -> HashMap<String, usize> {
    let mut client = client(layer, providers);
    for _ in 0..calls {
        let _ = client.ready().await.unwrap().call(request(CHAT)).await;
    }
    let mut counts = HashMap::new();
    providers.asked().into_iter().for_each(|host| *counts.entry(host).or_default() += 1);
    counts
}

#[tokio::test(start_paused = true)]
async fn weights_share_the_calls_and_none_is_for_need_only() {
    let counts =
        asked_by(FallbackLayer::new(routes(three().order(Order::Weighted))), &healthy(), 1_000).await;
    assert!((650..850).contains(&counts["a"]), "three of four, within six sigma: {counts:?}");
    assert_eq!(counts.get("c"), None);
    let failing = Providers::new().on("a", [Reply::Reset]).on("b", [Reply::Reset]).on("c", [ok()]);
    assert_eq!(ask(FallbackLayer::new(routes(three().order(Order::Weighted))), &failing).await.by(), "c");
}

#[tokio::test(start_paused = true)]
async fn the_cheapest_is_asked_first_and_an_unknown_price_last() {
    let prices = HashMap::from([("b", 9), ("c", 2)]);
    let layer = FallbackLayer::builder(routes(three().order(Order::Cheapest)))
        .price(move |target, _| prices.get(target.upstream().name().as_str()).copied());
    let failing = Providers::new().on("a", [ok()]).on("b", [Reply::Reset]).on("c", [Reply::Reset]);
    assert_eq!(ask(layer.build().unwrap(), &failing).await.by(), "a");
    assert_eq!(failing.asked(), ["c", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn the_fastest_gets_most_calls_and_the_others_are_tried_again() {
    let counts = asked_by(FallbackLayer::new(routes(three().order(Order::Fastest))), &healthy(), 1_000).await;
    assert!(counts["b"] > 700, "{counts:?}");
    assert!(counts["a"] > 5 && counts["c"] > 5, "a target that got faster is found: {counts:?}");
}

fn with_health(standings: &[(&'static str, Standing)]) -> FallbackLayer {
    let standings: HashMap<_, _> = standings.iter().copied().collect();
    let health = move |target: &Target| {
        standings.get(target.upstream().name().as_str()).copied().unwrap_or(Standing::Serves)
    };
    FallbackLayer::builder(routes(three())).health(health).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_serve_now_is_passed_over() {
    let layer = with_health(&[("a", Standing::Out(None)), ("b", Standing::Busy)]);
    let got = ask(layer, &healthy()).await;
    assert_eq!(got.by(), "c");
    let told = got.served.unwrap().attempts().to_string();
    assert_eq!(told, "a: passed over (Out), b: passed over (Busy)");
}

#[tokio::test(start_paused = true)]
async fn where_none_serves_a_busy_one_is_asked_and_else_the_first_to_open_with_a_probe() {
    let out = |seconds| Standing::Out(Some(Duration::from_secs(seconds)));
    let providers = healthy();
    let got = ask(with_health(&[("a", out(1)), ("b", out(1)), ("c", Standing::Busy)]), &providers).await;
    assert_eq!((got.by(), providers.seen()[0].call.as_ref().unwrap().probe), ("c", false));
    let providers = Providers::new().on("b", [Reply::Reset]);
    let layer = with_health(&[("a", out(9)), ("b", out(2)), ("c", Standing::Out(None))]);
    assert!(try_ask(layer, &providers).await.is_err());
    assert_eq!(providers.asked(), ["b"], "one probe, and no walk over all the open ones");
    assert!(providers.seen()[0].call.as_ref().unwrap().probe);
}

#[tokio::test(start_paused = true)]
async fn a_target_too_small_for_the_estimate_is_not_asked_unless_all_are() {
    let words = "word ".repeat(4_000);
    let body = format!(r#"{{"model":"large","messages":[{{"role":"user","content":"{words}"}}]}}"#);
    let route = Route::to("large")
        .target(Target::at("a").context(1_000))
        .target(Target::at("b").context(2_000))
        .target(Target::at("c").context(100_000));
    let providers = healthy();
    let layer = FallbackLayer::new(routes(route));
    let got = read(client(layer, &providers).oneshot(request(&body)).await.unwrap()).await;
    assert_eq!((got.by(), providers.asked().len()), ("c", 1));
    let small =
        Route::to("large").target(Target::at("a").context(1_000)).target(Target::at("b").context(2_000));
    let got =
        read(client(FallbackLayer::new(routes(small)), &providers).oneshot(request(&body)).await.unwrap())
            .await;
    assert_eq!(got.by(), "b", "an estimate may err: the largest says itself what is too long");
}

#[tokio::test(start_paused = true)]
async fn health_is_asked_anew_for_each_hop() {
    let down = Arc::new(AtomicBool::new(false));
    let (state, asked) = (down.clone(), Arc::new(Mutex::new(0)));
    let health = move |target: &Target| {
        *asked.lock().unwrap() += 1;
        let out = target.upstream().name().as_str() == "b" && state.swap(true, SeqCst);
        if out { Standing::Out(None) } else { Standing::Serves }
    };
    let layer = FallbackLayer::builder(routes(three())).health(health).build().unwrap();
    let providers = Providers::new().on("a", [Reply::Reset]).on("c", [ok()]);
    let got = ask(layer, &providers).await;
    assert_eq!(got.served.unwrap().attempts().to_string(), "a: Transient, b: passed over (Out)");
    assert!(down.load(SeqCst));
}

#[tokio::test(start_paused = true)]
async fn nobody_allowed_is_a_refusal_of_its_own() {
    let mut request = request(CHAT);
    request.extensions_mut().insert(seawall::call::Overrides::new().only(["nobody"]));
    let providers = healthy();
    let error = client(FallbackLayer::new(routes(three())), &providers).oneshot(request).await.err().unwrap();
    assert_eq!(error.refusal().unwrap().kind(), RefusalKind::NoTarget);
    assert!(providers.asked().is_empty());
}
