//! What has no room is passed over: the handles of the gates below say so.

use seawall::bulkhead::BulkheadLayer;
use seawall::call::{IntakeLayer, OutcomeLayer};
use seawall::fallback::{FallbackLayer, Skip};
use seawall::gate::ByUpstream;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use tower::{ServiceBuilder, ServiceExt};

use super::provider::*;

/// Whom the call was served by, and why a target was passed over.
fn story(got: &Got) -> (&str, Vec<Skip>) {
    let passed = got.served.as_ref().unwrap().attempts().as_slice().iter();
    (got.by(), passed.filter_map(seawall::fallback::Attempt::skipped_for).collect())
}

#[tokio::test(start_paused = true)]
async fn a_full_bulkhead_is_passed_over_and_asked_where_no_other_serves() {
    let bulkhead = BulkheadLayer::builder(1).queue(1).keyed(ByUpstream).build().unwrap();
    let layer = FallbackLayer::builder(routes(route())).health(bulkhead.gate().clone()).build().unwrap();
    let slow = || steps(vec![send(TOKEN), Step::Stall]);
    let providers = Providers::new().on("a", [slow(), ok()]).on("b", [ok()]);
    let below = ServiceBuilder::new().layer(bulkhead.clone()).layer(OutcomeLayer::new());
    let client = over(IntakeLayer::new(), layer, below.service(providers.clone()));
    let ask = async || read(client.clone().oneshot(request(CHAT)).await.unwrap()).await;

    let running = client.clone().oneshot(request(CHAT)).await.unwrap();
    let at_a = bulkhead.gate().get(&"a".into());
    assert_eq!((at_a.in_flight(), at_a.is_full()), (1, false), "there is a place in the queue");
    let mut waiting = tokio_test::task::spawn(client.clone().oneshot(request(CHAT)));
    assert!(waiting.poll().is_pending());
    assert!(at_a.is_full());
    assert_eq!(story(&ask().await), ("b", vec![Skip::Busy]));
    assert_eq!((at_a.in_flight(), at_a.queued()), (1, 1), "nobody was pushed into it");

    // Where both are full the first is asked: its bulkhead refuses, and so does the other's.
    let at_b = bulkhead.gate().get(&"b".into());
    at_b.set_limit(0);
    let error = client.clone().oneshot(request(CHAT)).await.err().unwrap();
    let told = seawall::fallback::Attempts::find(&*error).unwrap().to_string();
    assert_eq!(told, "a: Refused, b: Refused");

    drop((running, waiting));
    assert_eq!(story(&ask().await), ("a", vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_paused_for_longer_than_anybody_waits_is_passed_over() {
    let quota = Quota::per_minute(600.try_into().unwrap());
    let bucket = TokenBucketLayer::builder().requests(quota).keyed(ByUpstream).build().unwrap();
    let layer = FallbackLayer::builder(routes(route())).health(bucket.gate().clone()).build().unwrap();
    let providers = Providers::new().on("a", [ok()]).on("b", [ok()]);
    let below = ServiceBuilder::new().layer(bucket.clone()).layer(OutcomeLayer::new());
    let client = over(IntakeLayer::new(), layer, below.service(providers));
    let ask = async || read(client.clone().oneshot(request(CHAT)).await.unwrap()).await;

    let at_a = bucket.gate().get(&"a".into());
    at_a.pause(5 * SECOND);
    let got = ask().await;
    assert_eq!(story(&got), ("a", vec![]), "a wait of 5 s is within the patience of 10 s");
    at_a.pause(60 * SECOND);
    assert_eq!(story(&ask().await), ("b", vec![Skip::Busy]));
    at_a.resume();
    assert_eq!(story(&ask().await), ("a", vec![]));
}
