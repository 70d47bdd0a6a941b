//! Policies of tower's as ours, and ours as tower's.

use std::future::Ready;
use std::num::NonZeroU32;

use tower::retry::Policy as TowerPolicy;
use tower::{Layer, ServiceBuilder, ServiceExt};

use super::*;
use crate::call::Call;
use crate::deadline::Deadline;

/// As the documentation of tower has it: so many times again, at once.
#[derive(Clone)]
struct Attempts(usize);

impl<E> TowerPolicy<Req, Res, E> for Attempts {
    type Future = Ready<()>;

    fn retry(&mut self, _request: &mut Req, result: &mut Result<Res, E>) -> Option<Ready<()>> {
        let failed = result.as_ref().map_or(true, |response| response.status().is_server_error());
        self.0 = self.0.checked_sub(1).filter(|_| failed)?;
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

/// Waits with a timer of its own, and writes into requests and results.
#[derive(Clone)]
struct Writing;

impl<E> TowerPolicy<Req, Res, E> for Writing {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, request: &mut Req, result: &mut Result<Res, E>) -> Option<tokio::time::Sleep> {
        request.headers_mut().append("again", HeaderValue::from_static("yes"));
        match result {
            Ok(response) if response.status() == 200 => {
                response.headers_mut().insert("seen", HeaderValue::from_static("yes"));
                None
            }
            _ => Some(tokio::time::sleep(secs(1))),
        }
    }

    fn clone_request(&mut self, request: &Req) -> Option<Req> {
        Some(request.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_towers_counts_down_anew_for_each_call() {
    let upstream = Upstream::statuses([500]);
    let service = RetryLayer::new(FromTower::new(Attempts(3))).layer(upstream.clone());
    for calls in [4, 8] {
        assert_eq!(service.clone().oneshot(post()).await.unwrap().status(), 500);
        assert_eq!(upstream.calls(), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn its_wait_is_waited_for_and_what_it_writes_is_sent_and_passed_on() {
    let upstream = Upstream::new([Reply::Fails, Reply::Says(503, &[]), Reply::Says(200, &[])]);
    let response =
        RetryLayer::new(FromTower::new(Writing)).layer(upstream.clone()).oneshot(post()).await.unwrap();
    assert_eq!(response.headers()["seen"], "yes");
    assert_eq!(upstream.gaps(), [secs(1), secs(1)]);
    let seen = upstream.seen();
    let written = seen.iter().map(|seen| seen.head.headers.get_all("again").iter().count());
    assert_eq!(written.collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn the_bounds_of_our_layer_hold_for_a_policy_of_towers_too() {
    let calls = async |request: Req, reply: Reply, policy: FromTower<Attempts>| {
        let upstream = Upstream::new([reply]);
        let _ = RetryLayer::new(policy).layer(upstream.clone()).oneshot(request).await;
        upstream.calls()
    };
    let many = || FromTower::new(Attempts(1_000));
    assert_eq!(calls(post(), Reply::Fails, many().attempts(NonZeroU32::new(5).unwrap())).await, 5);
    assert_eq!(calls(post(), Reply::Refuses(RefusalKind::Full), many()).await, 1, "it would refuse again");
    let mut shared = post();
    shared.extensions_mut().insert(Call { most_attempts: NonZeroU32::new(2), ..Call::default() });
    assert_eq!(calls(shared, Reply::Fails, many()).await, 2);
    let mut late = post();
    late.extensions_mut().insert(Deadline::within(Duration::ZERO));
    assert_eq!(calls(late, Reply::Fails, many()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_ours_serves_towers_layer() {
    let policy = IntoTower::new(steady().build().unwrap());
    let upstream = Upstream::new([
        Reply::Says(429, &[("retry-after", "2")]),
        Reply::Fails,
        Reply::Says(200, &[]),
        Reply::Says(503, &[]),
    ]);
    let service =
        ServiceBuilder::new().layer(tower::retry::RetryLayer::new(policy)).service(upstream.clone());
    assert_eq!(service.clone().oneshot(post()).await.unwrap().status(), 200);
    assert_eq!(upstream.gaps(), [secs(2), secs(1)], "the hint, then its own backoff");
    // Each call has its own three attempts.
    assert_eq!(service.oneshot(post()).await.unwrap().status(), 503);
    assert_eq!(upstream.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn under_towers_layer_ours_obeys_its_bounds_too() {
    let calls = async |request: Req, reply: Reply| {
        let upstream = Upstream::new([reply]);
        let policy = IntoTower::new(RetryPolicy::builder().ambiguous(true).build().unwrap());
        let layer = tower::retry::RetryLayer::new(policy);
        let _ = layer.layer(upstream.clone()).oneshot(request).await;
        upstream.calls()
    };
    assert_eq!(calls(post(), Reply::Fails).await, 3);
    assert_eq!(calls(post(), Reply::Refuses(RefusalKind::Open)).await, 1);
    assert_eq!(calls(post(), Reply::Says(400, &[])).await, 1);
    let mut once = post();
    once.extensions_mut().insert(crate::call::Once);
    assert_eq!(calls(once, Reply::Fails).await, 1);
    let mut shared = post();
    shared.extensions_mut().insert(Call { most_attempts: NonZeroU32::new(2), ..Call::default() });
    assert_eq!(calls(shared, Reply::Fails).await, 2);
    let mut late = post();
    late.extensions_mut().insert(Deadline::within(ms(50)));
    assert_eq!(calls(late, Reply::Fails).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_bounds_the_retries_of_towers_layer() {
    let budget = Budget::builder().ratio(0.0).reserve(2).build().unwrap();
    let policy = RetryPolicy::builder().ambiguous(true).attempts(10).budget(budget).build().unwrap();
    let upstream = Upstream::new([Reply::Fails]);
    let layer = tower::retry::RetryLayer::new(IntoTower::new(policy));
    assert!(layer.layer(upstream.clone()).oneshot(post()).await.is_err());
    assert_eq!(upstream.calls(), 3);
}
