//! One bucket a key, and a lease a thread.

use std::num::NonZeroUsize;

use tower::{Layer, ServiceExt};

use crate::call::Key;
use crate::gate::{Admission, Gate};
use crate::token_bucket::tests::support::{advance, instant, n, per_second};
use crate::token_bucket::{Quota, TokenBucketLayer};
use crate::{Verdict, classify};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_flood_of_keys_is_bounded_and_resets_nobody() {
    let layer = TokenBucketLayer::builder()
        .requests(per_second(1, 2))
        .blind()
        .keyed_by(|key: &u64| Some(Key::from(*key)))
        .max_keys(NonZeroUsize::new(1_000).unwrap())
        .refuse()
        .build()
        .unwrap();
    let gate = layer.gate();
    let admitted = |key: u64| matches!(gate.admit(&mut { key }), Admission::Now(_));
    assert_eq!([admitted(0), admitted(0), admitted(0)], [true, true, false]);
    let keys = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let flood = (1..keys).filter(|key: &u64| admitted(*key)).count();
    assert!(gate.len() <= 1_000);
    assert!(flood < 2_100, "beyond the bound all share one bucket: {flood}");
    assert!(!admitted(0), "the hot key is as exhausted as before");
    // Once those are full again, they make room.
    advance(Duration::from_secs(2)).await;
    assert!((2_000_000..2_000_500).all(admitted));
    assert!(gate.len() <= 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_paused_lowered_or_held_is_not_at_rest() {
    use crate::gate::PerKey;
    let layer = TokenBucketLayer::builder().requests(per_second(10, 10)).refuse().build().unwrap();
    let bucket = layer.gate();
    assert!(bucket.at_rest());
    let held = bucket.clone();
    assert!(!bucket.at_rest(), "somebody has a handle");
    drop(held);
    bucket.pause(Duration::from_secs(1));
    assert!(!bucket.at_rest(), "paused");
    bucket.resume();
    bucket.set_quota("requests", per_second(9, 9)).unwrap();
    assert!(!bucket.at_rest(), "not as a fresh one");
    bucket.set_quota("requests", per_second(10, 10)).unwrap();
    assert!(bucket.at_rest());
    let _ = bucket.admit(&mut ());
    assert!(!bucket.at_rest(), "not full");
    advance(Duration::from_millis(100)).await;
    assert!(bucket.at_rest());
}

#[tokio::test(start_paused = true)]
async fn with_leases_no_more_is_admitted_than_the_stated_bound() {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_day(n(1_000)).burst(n(1_000)))
        .leases(n(16))
        .refuse()
        .build()
        .unwrap();
    let gate = layer.gate().clone();
    let threads = 8;
    let passed: usize = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..threads)
            .map(|_| {
                let gate = gate.clone();
                scope.spawn(move || {
                    (0..10_000).filter(|_| matches!(gate.admit(&mut ()), Admission::Now(_))).count()
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    // One flows in each 86 s.
    assert!(passed <= 1_000, "{passed}: what is leased was taken from the bucket");
    assert!(passed >= 1_000 - threads * 16, "{passed}: no more is left over than one lease a thread");
}

#[tokio::test(start_paused = true)]
async fn a_lease_does_not_outlive_a_pause() {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_second(n(1_000)))
        .leases(n(16))
        .classify(classify::from_fn(|_: Result<&(), &crate::BoxError>| Verdict::SUCCESS))
        .refuse()
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(instant());
    service.clone().oneshot(()).await.unwrap();
    layer.gate().pause(Duration::from_secs(5));
    assert!(service.clone().oneshot(()).await.is_err());
    advance(Duration::from_secs(5)).await;
    assert!(service.oneshot(()).await.is_ok());
}
