//! What cannot be built, and what costs cannot be paid.

use std::time::Duration;

use tower::{Layer, ServiceExt};

use crate::refusal::RefusalKind;
use crate::token_bucket::tests::support::{instant, n, refusal};
use crate::token_bucket::{Cost, Quota, TokenBucketLayer};
use crate::{Verdict, classify};

fn field(builder: crate::token_bucket::TokenBucketBuilder) -> String {
    builder.build().unwrap_err().field().to_owned()
}

#[test]
fn wrong_settings_are_named_when_it_is_built() {
    let builder = TokenBucketLayer::builder;
    let a_minute = Quota::per_minute(n(60));
    assert_eq!(field(builder()), "dimensions");
    assert_eq!(field(builder().requests(a_minute).requests(a_minute)), "requests");
    for share in [0.0, -1.0, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(field(builder().requests(a_minute).headroom(share)), "headroom");
    }
    assert_eq!(field(builder().requests(Quota::per_day(n(1)).burst(n(1_000)))), "requests.burst");
    assert_eq!(field(builder().tokens(a_minute).strict()), "tokens.burst");
    assert_eq!(field(builder().requests(a_minute.burst(n(61)).strict())), "requests.burst");
    assert_eq!(field(builder().requests(a_minute).settled_by("token", |_| None)), "settled_by");
    assert_eq!(field(builder().requests(a_minute).leases(n(11))), "leases");
    assert_eq!(field(builder().requests(a_minute).tokens(a_minute).leases(n(1))), "leases");
    assert_eq!(field(builder().requests(a_minute).strict().leases(n(1))), "leases");
}

#[test]
fn new_takes_the_nearest_where_nobody_hears_of_an_error() {
    for quota in [
        Quota::per_second(n(u64::MAX)),
        Quota::per_day(n(1)).burst(n(u64::MAX)),
        Quota::one_every(Duration::MAX).unwrap(),
        Quota::one_every(Duration::MAX).unwrap().burst(n(9)).strict(),
        Quota::per_minute(n(6)).burst(n(9)).strict(),
        Quota::per_second(n(u64::MAX)).burst(n(u64::MAX)).strict(),
    ] {
        assert!(TokenBucketLayer::new(quota).gate().next_free(&[1]).is_some(), "{quota:?}");
    }
}

#[test]
fn the_default_bursts_are_ten_seconds_of_requests_and_a_minute_of_tokens() {
    let burst = |requests: Quota, tokens: Quota| {
        let layer = TokenBucketLayer::builder().requests(requests).tokens(tokens).build().unwrap();
        ["requests", "tokens"].map(|name| layer.gate().level(name).unwrap().burst)
    };
    assert_eq!(burst(Quota::per_minute(n(60)), Quota::per_minute(n(100))), [10, 100]);
    assert_eq!(burst(Quota::per_second(n(5)), Quota::per_second(n(7))), [5, 7], "no more than the amount");
    assert_eq!(burst(Quota::per_day(n(9)), Quota::per_day(n(1_440_000))), [1, 1_000]);
}

#[test]
fn headroom_leaves_a_share_of_rate_and_burst() {
    let layer =
        TokenBucketLayer::builder().requests(Quota::per_minute(n(600))).headroom(0.9).build().unwrap();
    let level = layer.gate().level("requests").unwrap();
    assert_eq!((level.burst, level.unit_every), (90, Duration::from_nanos(111_111_112)));
}

/// What is left of a reservation in a strict window counts from when it was made; an early time would take it all.
#[test]
fn strict_windows_and_leases_go_by_the_exact_clock() {
    let exact = |builder: crate::token_bucket::TokenBucketBuilder| {
        builder.build().unwrap().gate().state.config.is_exact()
    };
    let a_minute = || Quota::per_minute(n(60));
    assert!(!exact(TokenBucketLayer::builder().requests(a_minute()).tokens(a_minute())));
    assert!(exact(TokenBucketLayer::builder().requests(a_minute()).tokens(a_minute().burst(n(5)).strict())));
    assert!(exact(TokenBucketLayer::builder().requests(a_minute()).leases(n(2))));
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_is_no_number_is_refused_for_good() {
    let layer = TokenBucketLayer::builder()
        .blind()
        .dimension("units", Quota::per_second(n(10)), |cost: &f64| *cost)
        .classify(classify::from_fn(|_: Result<&(), &crate::BoxError>| Verdict::SUCCESS))
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(instant());
    for cost in [f64::NAN, f64::INFINITY, -1.0, 11.0, 1e300] {
        let error = refusal(&service.clone().oneshot(cost).await.unwrap_err());
        assert_eq!((error.kind(), error.retry_after()), (RefusalKind::TooLarge, None), "{cost}");
    }
    assert_eq!(layer.gate().level("units").unwrap().available, 10);
    service.oneshot(9.5).await.unwrap();
    assert_eq!(layer.gate().level("units").unwrap().available, 0, "rounded up");
    assert_eq!(Cost::from(-0.0).units(), 0);
}
