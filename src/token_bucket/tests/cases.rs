//! Reported faults of other limiters, each of which must not happen here.

use std::time::Duration;

use futures_util::future::join_all;
use tower::{Layer, ServiceExt};

use crate::refusal::RefusalKind;
use crate::token_bucket::bucket::{Bucket, Rate, TICKS};
use crate::token_bucket::core::Core;
use crate::token_bucket::queue::{Joined, Polled, Waiter};
use crate::token_bucket::tests::support::{
    Job, advance, few, instant, millis, n, passes, per_second, refusal,
};
use crate::token_bucket::{Quota, TokenBucketLayer};
use crate::{Verdict, classify};

fn any() -> impl Fn(Result<&(), &crate::BoxError>) -> Verdict + Copy {
    |_: Result<&(), &crate::BoxError>| Verdict::SUCCESS
}

/// `quota` of requests, refusing what cannot pass now.
macro_rules! refusing {
    ($quota:expr) => {
        TokenBucketLayer::builder()
            .requests($quota)
            .classify(classify::from_fn(any()))
            .refuse()
            .build()
            .unwrap()
            .at_head()
    };
}

fn rate(quota: Quota) -> Rate {
    quota.rate(1_000_000, Duration::from_secs(10)).unwrap()
}

/// How many single units of a rate pass when asked for at each of these instants (nanoseconds).
fn admitted(rate: Rate, instants: impl Iterator<Item = u64>) -> u64 {
    let bucket = Bucket::new(rate, &[]);
    instants.map(|at| u64::from(bucket.take(at * TICKS, &few(&[1])).is_ok())).sum()
}

const SECOND: u64 = 1_000_000_000;

#[tokio::test(start_paused = true)]
async fn b053_clones_and_services_of_one_layer_share_one_bucket() {
    let layer = refusing!(per_second(5, 5));
    let services: Vec<_> = (0..100).map(|_| layer.layer(instant()).clone()).collect();
    let passed = join_all(services.iter().map(|service| passes(service, ()))).await;
    assert_eq!(passed.iter().filter(|passed| **passed).count(), 5);
    let other = refusing!(per_second(5, 5));
    assert!(passes(&other.layer(instant()), ()).await, "a second layer is a second bucket");
}

#[test]
fn b055_after_any_idle_time_the_burst_is_exact() {
    for idle in [0, 4, 5, 6, 60, 86_400] {
        let burst = std::iter::repeat_n(idle * SECOND, 10);
        assert_eq!(admitted(rate(per_second(1, 5)), burst), 5, "after {idle} s");
    }
}

#[tokio::test(start_paused = true)]
async fn b056_what_is_left_recovers_and_the_wait_is_the_smallest_that_helps() {
    let layer = refusing!(per_second(1, 5));
    let service = layer.layer(instant());
    for _ in 0..5 {
        assert!(passes(&service, ()).await);
    }
    assert_eq!(layer.gate().next_free(&[1]), Some(Duration::from_secs(1)));
    assert_eq!(layer.gate().next_free(&[3]), Some(Duration::from_secs(3)));
    assert_eq!(layer.gate().next_free(&[6]), None, "more than it ever holds");
    advance(Duration::from_secs(2)).await;
    let level = layer.gate().level("requests").unwrap();
    assert_eq!((level.available, level.full_in), (2, Duration::from_secs(3)));
    for left in [1, 0] {
        assert!(passes(&service, ()).await);
        assert_eq!(layer.gate().level("requests").unwrap().available, left);
    }
    let error = service.clone().oneshot(()).await.unwrap_err();
    assert_eq!(refusal(&error).retry_after(), Some(Duration::from_secs(1)));
}

#[test]
fn b058_parts_of_a_unit_that_flowed_in_are_not_thrown_away() {
    let one_in_ten = rate(Quota::one_every(Duration::from_secs(10)).unwrap().burst(n(3)));
    let bucket = Bucket::new(one_in_ten, &[]);
    let at = |seconds: u64| bucket.take(seconds * SECOND * TICKS, &few(&[1])).is_ok();
    assert_eq!([0, 0, 0, 9, 10, 25, 29, 30].map(at), [true, true, true, false, true, true, false, true]);

    let mut random = fastrand::Rng::with_seed(58);
    let mut now = 0;
    let polls = std::iter::from_fn(|| {
        now += random.u64(0..SECOND);
        (now < 3_600 * SECOND).then_some(now)
    });
    let passed = admitted(rate(Quota::per_minute(n(6)).burst(n(2))), polls);
    assert!((360..=362).contains(&passed), "{passed} in an hour at 6 a minute");
}

#[test]
fn b059_however_often_it_is_asked_the_inflow_is_the_same() {
    for (quota, expected) in [
        (Quota::per_minute(n(1)), 60 / 60),
        (Quota::per_second(n(10)), 600),
        (Quota::per_second(n(999)), 59_940),
    ] {
        for step in [1_000_000, 100_000_000, 999_000_000] {
            let rate = rate(quota.burst(n(1_000)));
            let bucket = Bucket::new(rate, &[]);
            bucket.take(0, &few(&[1_000])).unwrap();
            let mut passed = 0;
            for at in (0..=60 * SECOND).step_by(step) {
                while bucket.take(at * TICKS, &few(&[1])).is_ok() {
                    passed += 1;
                }
            }
            let late = u64::try_from(step).unwrap() / rate.interval.div_ceil(TICKS) + 1;
            assert!(passed <= expected && passed + late >= expected, "{passed} of {expected} by {step} ns");
        }
    }
}

#[test]
fn b061_a_strict_quota_holds_in_every_window_and_a_burst_adds_no_more_than_itself() {
    let greedy = |rate: Rate| {
        let bucket = Bucket::new(rate, &[]);
        let mut times = Vec::new();
        for at in (0..300 * SECOND).step_by(50_000_000) {
            while bucket.take(at * TICKS, &few(&[1])).is_ok() {
                times.push(at);
            }
        }
        let within = |from: u64| times.iter().filter(|at| (from..from + 60 * SECOND).contains(*at)).count();
        times.iter().map(|&from| within(from)).max()
    };
    assert_eq!(greedy(rate(Quota::per_minute(n(15)).strict())), Some(15));
    assert_eq!(greedy(rate(Quota::per_minute(n(15)).burst(n(6)).strict())), Some(15));
    assert_eq!(
        greedy(rate(Quota::per_minute(n(15)).burst(n(15)))),
        Some(29),
        "burst and inflow, as documented"
    );
}

#[test]
fn b062_a_limit_of_one_admits_the_first() {
    for (limit, expected) in [(1, [true, false, true, false]), (2, [true, true, true, true])] {
        let bucket = Bucket::new(Rate { interval: 10 * SECOND * TICKS / limit, burst: 1 }, &[]);
        let passed = [0, 5, 10, 15].map(|at| bucket.take(at * SECOND * TICKS, &few(&[1])).is_ok());
        assert_eq!(passed, expected, "{limit} in 10 s");
    }
}

#[test]
fn b070_high_rates_are_exact_to_a_thousandth() {
    let mut quotas: Vec<_> = [1, 7, 59, 61, 700, 40_000, 120_000, 999_999_937, 1_000_000_000]
        .map(|m| Quota::per_minute(n(m)))
        .into();
    quotas.push(Quota::per_day(n(1)));
    for quota in quotas {
        for headroom in [1_000_000, 900_000] {
            let rate = quota.rate(headroom, Duration::ZERO).unwrap();
            let ideal = quota.period().as_nanos() as f64 * TICKS as f64 * 1e6
                / (quota.amount().get() as f64 * f64::from(headroom));
            let error = rate.interval as f64 / ideal - 1.0;
            assert!((-1e-12..0.001).contains(&error), "{quota:?}: {error}");
        }
    }
    let fast = TokenBucketLayer::builder().requests(Quota::per_second(n(u64::MAX))).build().unwrap_err();
    assert_eq!(fast.field(), "requests.amount");
}

#[test]
fn b071_a_quota_says_what_it_means() {
    let text = |quota: Quota| format!("{quota:?}");
    assert_eq!(text(Quota::per_second(n(4_000))), "Quota(4000 per 1s: 4000/s)");
    assert_eq!(text(Quota::per_minute(n(30)).burst(n(5))), "Quota(30 per 60s: 0.5/s, burst 5)");
    assert_eq!(text(Quota::per_day(n(24)).strict()), "Quota(24 per 86400s: 1/h, strict)");
    assert_eq!(text(Quota::one_every(Duration::from_secs(4)).unwrap()), "Quota(1 per 4s: 0.25/s)");
    assert_eq!(Quota::one_every(Duration::ZERO), None);
    let second = (0..SECOND).step_by(100_000);
    assert_eq!(admitted(rate(Quota::per_second(n(4_000)).burst(n(2))), second), 4_001);
}

#[tokio::test(start_paused = true)]
async fn b073_those_behind_a_heavy_waiter_who_leaves_go_on_at_once() {
    let layer = TokenBucketLayer::builder()
        .dimension("units", per_second(1, 10), |job: &Job| job.cost)
        .classify(classify::from_fn(any()))
        .max_wait(Duration::MAX)
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(instant());
    assert!(passes(&service, Job::of(7)).await);
    let mut heavy = tokio_test::task::spawn(service.clone().oneshot(Job::of(10)));
    let mut light = tokio_test::task::spawn(service.clone().oneshot(Job::of(2)));
    assert!(heavy.poll().is_pending() && light.poll().is_pending());
    drop(heavy);
    assert!(light.is_woken(), "no time has passed, and nothing else was given back");
    assert!(light.poll().is_ready());
    assert_eq!((layer.gate().waiters(), layer.gate().level("units").unwrap().available), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn b074_a_large_request_is_served_in_its_turn() {
    let layer = TokenBucketLayer::builder()
        .dimension("units", per_second(100, 50), |job: &Job| job.cost)
        .classify(classify::from_fn(any()))
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(instant());
    for _ in 0..20 {
        // Greedy callers, who come again as soon as they were served.
        let service = service.clone();
        tokio::spawn(async move {
            loop {
                let _ = service.clone().oneshot(Job::of(1)).await;
            }
        });
    }
    advance(Duration::from_secs(5)).await;
    tokio::time::sleep(millis(10)).await;
    let started = crate::time::now();
    service.oneshot(Job::of(50)).await.unwrap();
    // Twenty units are before it in the line, and fifty are its own: 700 ms at 100 a second.
    let waited = started.elapsed();
    assert!(waited <= millis(720), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn b076_a_refusal_names_its_dimension_limit_key_and_wait() {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(60)).burst(n(2)))
        .tokens(Quota::per_minute(n(6_000)))
        .classify(classify::from_fn(any()))
        .keyed_by(|_: &Job| Some("acme".into()))
        .key_class("tenant")
        .refuse()
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(instant());
    service.clone().oneshot(Job::tokens(5_000, 500)).await.unwrap();
    let error = refusal(&service.clone().oneshot(Job::tokens(900, 100)).await.unwrap_err());
    assert_eq!((error.kind(), error.dimension()), (RefusalKind::RateLimited, Some("tokens")));
    assert_eq!((error.key_class(), error.limit()), (Some("tenant"), Some("6000 per 60s")));
    assert_eq!(
        error.to_string(),
        "token_bucket of acme is at its limit (tokens: 6000 per 60s); try again in 5s"
    );
    service.clone().oneshot(Job::tokens(100, 100)).await.unwrap();
    let error = refusal(&service.clone().oneshot(Job::tokens(1, 1)).await.unwrap_err());
    assert_eq!((error.dimension(), error.limit()), (Some("requests"), Some("60 per 60s")));
    let error = refusal(&service.clone().oneshot(Job::tokens(6_000, 1)).await.unwrap_err());
    assert_eq!((error.kind(), error.dimension()), (RefusalKind::TooLarge, Some("tokens")));
    assert_eq!(error.retry_after(), None, "no wait helps");
}

/// Heavy requests (80 of a burst of 100, at 100 a second) among light ones of 1.
#[test]
fn heavy_requests_get_their_fair_share_at_every_load() {
    for (light, grabbing) in [(50.0, 0.805), (80.0, 0.617), (95.0, 0.27), (105.0, 0.003)] {
        let core =
            Core::new(Bucket::new(Rate { interval: SECOND * TICKS / 100, burst: 100 }, &[]), usize::MAX);
        let mut random = fastrand::Rng::with_seed(74);
        let (mut now, mut next_heavy) = (0.0, 1.0);
        // Of those who came, who was served by the end.
        let (mut came, mut served, mut tickets) = (0.0, 0.0, Vec::new());
        while now < 500.0 {
            now += -(1.0 - random.f64()).ln() / light;
            while next_heavy <= now {
                came += 1.0;
                match core.join(ticks(next_heavy), waiter(80)).unwrap() {
                    Joined::Granted(_) => served += 1.0,
                    Joined::Waits { ticket, .. } => tickets.push(ticket),
                    Joined::Refused(_) => unreachable!("all wait as long as it takes"),
                }
                next_heavy += 10.0;
            }
            core.join(ticks(now), waiter(1)).unwrap();
        }
        let noop = || std::task::Waker::noop().clone();
        for ticket in tickets {
            served +=
                f64::from(u8::from(matches!(core.poll(ticks(now), ticket, noop()), Polled::Granted(..))));
        }
        let (share, fair) = (served / came, (100.0 / (light + 8.0_f64)).min(1.0));
        assert!(share >= fair * 0.97, "{share} of the heavy ones at {light} light ones, fair are {fair}");
        assert!(share > grabbing);
    }
}

fn waiter(cost: u64) -> Waiter {
    Waiter::new(few(&[cost]), u64::MAX, 0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a test")]
fn ticks(seconds: f64) -> u64 {
    (seconds * 1e9) as u64 * TICKS
}

#[tokio::test(start_paused = true)]
async fn w12_a_readied_service_that_is_dropped_has_taken_nothing() {
    let layer = refusing!(per_second(5, 5));
    let service = layer.layer(instant::<()>());
    for _ in 0..5 {
        let mut readied = service.clone();
        ServiceExt::<()>::ready(&mut readied).await.unwrap();
    }
    assert_eq!(layer.gate().level("requests").unwrap().available, 5);
}

#[tokio::test(start_paused = true)]
async fn w13_a_wait_that_is_known_to_be_too_long_is_refused_at_once() {
    let layer = TokenBucketLayer::builder()
        .requests(Quota::per_minute(n(1)))
        .classify(classify::from_fn(any()))
        .max_wait(millis(500))
        .build()
        .unwrap()
        .at_head();
    let service = layer.layer(instant());
    let started = crate::time::now();
    assert!(passes(&service, ()).await);
    let error = refusal(&service.clone().oneshot(()).await.unwrap_err());
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(
        (error.kind(), error.retry_after()),
        (RefusalKind::RateLimited, Some(Duration::from_secs(60)))
    );
}

#[tokio::test(start_paused = true)]
async fn w14_after_rest_the_handle_says_what_would_pass() {
    let layer = refusing!(per_second(5, 5));
    let service = layer.layer(instant());
    for _ in 0..5 {
        assert!(passes(&service, ()).await);
    }
    assert_eq!(layer.gate().level("requests").unwrap().available, 0);
    advance(Duration::from_secs(3_600)).await;
    assert_eq!(layer.gate().level("requests").unwrap().available, 5);
}
