//! Faults that users of other breakers reported.

use tower::timeout::Timeout;

use super::*;
use crate::gate::{ByModel, Gate};

#[tokio::test(start_paused = true)]
async fn b029_a_half_open_breaker_admits_its_probes_and_no_more() {
    for permits in [1, 3] {
        let layer = simple().probes(permits).build().unwrap();
        let upstream = Upstream::default();
        open(&layer, &upstream).await;
        tokio::time::advance(secs(30)).await;
        upstream.answer(200);
        upstream.delay(millis(100));
        let before = upstream.calls();
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let service = over(&layer, &upstream);
            all.spawn(async move { call(&service).await });
        }
        tokio::time::sleep(millis(1)).await;
        let refused =
            std::iter::from_fn(|| all.try_join_next()).filter(|done| matches!(done, Ok(Err(_)))).count();
        assert_eq!(upstream.calls() - before, permits as usize);
        assert_eq!(refused, 50 - permits as usize, "at once");
        all.join_all().await;
    }
}

#[tokio::test(start_paused = true)]
async fn b031_a_probe_that_never_settles_does_not_block_recovery() {
    let layer = simple().probes(1).probe_successes(1).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    let (mut mock, mut upstream_handle) = tower_test::mock::pair::<Request<()>, Answer>();
    mock.ready().await.unwrap();
    let hanging = tokio::spawn(layer.layer(mock).oneshot(Request::new(())));
    let (_, answer) = upstream_handle.next_request().await.unwrap();
    upstream.answer(200);
    let service = over(&layer, &upstream);
    assert!(call(&service).await.is_err(), "its slot is out");
    tokio::time::advance(secs(30)).await;
    assert_eq!(call(&service).await, Ok(200), "its lease is over");
    assert_eq!(layer.gate().state(), BreakerState::Closed);
    answer.send_error("too late");
    assert!(hanging.await.unwrap().is_err());
    assert_eq!(layer.gate().state(), BreakerState::Closed);
    assert_eq!(layer.gate().snapshot().consecutive_failures, 0);
    assert_eq!(layer.gate().snapshot().late, 1);
}

#[tokio::test(start_paused = true)]
async fn b032_a_dropped_probe_gives_its_slot_back_and_has_no_vote() {
    let layer = simple().probes(1).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    upstream.answer(200);
    upstream.delay(millis(100));
    let service = over(&layer, &upstream);
    assert!(tokio::time::timeout(millis(10), call(&service)).await.is_err());
    let snapshot = layer.gate().snapshot();
    assert_eq!(
        (snapshot.state, snapshot.probes_out, snapshot.probe_successes),
        (BreakerState::HalfOpen, 0, 0)
    );
    assert_eq!(call(&service).await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn b034_late_failures_neither_open_again_nor_push_the_time_back() {
    let log = Log::default();
    let layer = simple().open_for(secs(10)).observer(log.observer()).build().unwrap();
    let upstream = Upstream::answering(503);
    let mut calls = tokio::task::JoinSet::new();
    for step in 1..=10 {
        upstream.delay(millis(500 * step));
        let service = over(&layer, &upstream);
        calls.spawn(async move { call(&service).await });
        tokio::task::yield_now().await;
    }
    calls.join_all().await;
    assert_eq!(log.count("Closed Open Consecutive"), 1);
    // Opened at 1.5 s; it is 5 s now.
    assert_eq!(layer.gate().snapshot().open_left, Some(millis(6_500)));
    assert_eq!(layer.gate().snapshot().late, 7);
    tokio::time::advance(millis(6_500)).await;
    upstream.delay(Duration::ZERO);
    assert!(call(&over(&layer, &upstream)).await.is_ok(), "a probe at the trip + 10 s");
}

#[tokio::test(start_paused = true)]
async fn b035_client_errors_do_not_trip() {
    let layer = simple().build().unwrap();
    let upstream = Upstream::answering(400);
    let service = over(&layer, &upstream);
    for status in [400, 413, 422, 404, 403, 429] {
        upstream.answer(status);
        for _ in 0..10 {
            assert_eq!(call(&service).await, Ok(status));
        }
    }
    assert_eq!(layer.gate().state(), BreakerState::Closed);
    open(&layer, &upstream).await;
}

#[tokio::test(start_paused = true)]
async fn b037_a_caller_who_leaves_is_no_failure() {
    let log = Log::default();
    let layer = simple().observer(log.observer()).build().unwrap();
    let upstream = Upstream::answering(200).after(millis(50));
    let service = over(&layer, &upstream);
    for _ in 0..20 {
        assert!(tokio::time::timeout(millis(10), call(&service)).await.is_err());
    }
    assert_eq!(call(&service).await, Ok(200));
    let snapshot = layer.gate().snapshot();
    assert_eq!((snapshot.state, snapshot.failures, snapshot.abandoned), (BreakerState::Closed, 0, 20));
    assert_eq!(log.count("abandoned"), 20);
}

#[tokio::test(start_paused = true)]
async fn b038_a_timeout_inside_opens_the_breaker_of_a_hung_upstream() {
    let layer = simple().build().unwrap();
    let upstream = Upstream::answering(200).after(HANGS);
    let service = layer.layer(Timeout::new(upstream.service(), secs(1)));
    for _ in 0..10 {
        assert!(service.clone().oneshot(Request::new(())).await.is_err());
    }
    assert_eq!(layer.gate().state(), BreakerState::Open);
    assert_eq!(upstream.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn b038_a_timeout_outside_does_as_configured() {
    for (counts_after, state) in [(millis(900), BreakerState::Open), (secs(60), BreakerState::Closed)] {
        let layer = simple().abandoned_counts_after(counts_after).build().unwrap();
        let upstream = Upstream::answering(200).after(HANGS);
        let service = Timeout::new(over(&layer, &upstream), secs(1));
        for _ in 0..10 {
            assert!(service.clone().oneshot(Request::new(())).await.is_err());
        }
        assert_eq!(layer.gate().state(), state);
    }
}

#[tokio::test(start_paused = true)]
async fn b040_a_minimum_above_the_window_cannot_be_built() {
    let error = CircuitBreakerLayer::builder().count_window(5).minimum_calls(10).build().unwrap_err();
    assert_eq!(error.field(), "minimum_calls");
}

#[tokio::test(start_paused = true)]
async fn b041_sparse_failures_do_not_add_up() {
    let layer = simple().consecutive_failures(3, secs(5)).build().unwrap();
    let upstream = Upstream::answering(503);
    let service = over(&layer, &upstream);
    for _ in 0..4 {
        assert!(call(&service).await.is_ok());
        tokio::time::advance(millis(4_900)).await;
    }
    assert_eq!(layer.gate().state(), BreakerState::Closed);
    tokio::time::advance(secs(5)).await;
    for _ in 0..3 {
        assert!(call(&service).await.is_ok());
        tokio::time::advance(millis(400)).await;
    }
    assert_eq!(layer.gate().state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn b043_half_open_uses_the_same_classifier() {
    // What a status counts as while closed, it counts as while half-open.
    for (status, fails) in [(404, false), (400, false), (429, false), (503, true), (500, true)] {
        let layer = simple().probes(1).build().unwrap();
        let upstream = Upstream::default();
        let service = over(&layer, &upstream);
        upstream.answer(status);
        assert!(call(&service).await.is_ok());
        assert_eq!(layer.gate().snapshot().consecutive_failures, usize::from(fails), "{status} while closed");
        layer.gate().reset();
        open(&layer, &upstream).await;
        tokio::time::advance(secs(30)).await;
        upstream.answer(status);
        assert!(call(&service).await.is_ok());
        let expected = if fails { BreakerState::Open } else { BreakerState::HalfOpen };
        assert_eq!(layer.gate().state(), expected, "{status} while half-open");
    }
}

#[tokio::test(start_paused = true)]
async fn b044_one_failed_probe_opens_again_whatever_the_minimum() {
    let layer = simple().minimum_calls(10).probes(3).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    let service = over(&layer, &upstream);
    assert_eq!(call(&service).await, Ok(503));
    upstream.answer(200);
    let refusal = call(&service).await.unwrap_err();
    assert_eq!(refusal.retry_after(), Some(secs(60)), "a fresh wait");
}

#[tokio::test(start_paused = true)]
async fn b047_the_probe_comes_exactly_when_the_open_time_is_over() {
    let layer = simple().build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    let service = over(&layer, &upstream);
    tokio::time::advance(millis(29_999)).await;
    assert_eq!(call(&service).await.unwrap_err().retry_after(), Some(millis(1)));
    tokio::time::advance(millis(1)).await;
    assert!(call(&service).await.is_ok());
}

fn asking(model: &str) -> Request<()> {
    let mut request = Request::new(());
    let call = crate::call::Call { model: Some(model.into()), ..crate::call::Call::default() };
    request.extensions_mut().insert(call);
    request
}

#[tokio::test(start_paused = true)]
async fn b049_one_failing_model_does_not_block_another() {
    let layer = simple().keyed(ByModel).key_class("model").max_keys(2.try_into().unwrap()).build().unwrap();
    let (bad, good) = (Upstream::answering(503), Upstream::answering(200));
    let (bad_service, good_service) = (over(&layer, &bad), over(&layer, &good));
    for _ in 0..10 {
        let _ = ask(&bad_service, asking("a")).await;
        assert_eq!(ask(&good_service, asking("b")).await, Ok(200));
    }
    let state = |model: &str| layer.gate().get(&model.into()).state();
    assert_eq!((state("a"), state("b")), (BreakerState::Open, BreakerState::Closed));
    assert_eq!(bad.calls(), 3);
    let refusal = ask(&bad_service, asking("a")).await.unwrap_err();
    assert_eq!(
        (refusal.key_class(), refusal.key().map(crate::call::Key::as_str)),
        (Some("model"), Some("a"))
    );
    for number in 0..100 {
        let _ = ask(&good_service, asking(&format!("model {number}"))).await;
    }
    assert!(layer.gate().len() <= 2, "bounded");
    assert_eq!(state("a"), BreakerState::Open, "and no flood of keys makes it forget an outage");
}

#[tokio::test(start_paused = true)]
async fn b050_a_poisonous_request_is_charged_to_one_target() {
    let upstream = Upstream::answering(500);
    let layers: Vec<_> = (0..3).map(|_| simple().first_target_only(true).build().unwrap()).collect();
    let chain = async || {
        let mut failed_elsewhere = false;
        for layer in &layers {
            let mut request = Request::new(());
            let mark = crate::call::Call { failed_elsewhere, ..crate::call::Call::default() };
            request.extensions_mut().insert(mark);
            match ask(&over(layer, &upstream), request).await {
                Ok(200) => return true,
                Ok(_) => failed_elsewhere = true,
                Err(_) => {}
            }
        }
        false
    };
    for _ in 0..3 {
        assert!(!chain().await);
    }
    let states: Vec<_> = layers.iter().map(|layer| layer.gate().state()).collect();
    assert_eq!(states, [BreakerState::Open, BreakerState::Closed, BreakerState::Closed]);
    upstream.answer(200);
    assert!(chain().await, "a good request is served");
}

#[tokio::test(start_paused = true)]
async fn b052_released_slots_do_not_enlarge_the_allowance() {
    let layer = simple().probes(2).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    upstream.delay(HANGS);
    for _ in 0..100 {
        let service = over(&layer, &upstream);
        assert!(tokio::time::timeout(Duration::from_nanos(1), call(&service)).await.is_err());
    }
    let mut handles: Vec<_> = (0..5).map(|_| over(&layer, &upstream)).collect();
    let started: Vec<_> = handles.iter_mut().map(|handle| handle.call(Request::new(()))).collect();
    assert_eq!(layer.gate().snapshot().probes_out, 2);
    drop(started);
    assert_eq!(layer.gate().snapshot().probes_out, 0);
}

#[tokio::test(start_paused = true)]
async fn b178_an_inner_service_that_fails_to_be_ready_costs_no_slot() {
    let layer = simple().probes(1).build().unwrap();
    open(&layer, &Upstream::default()).await;
    for _ in 0..100 {
        let (mock, mut upstream) = tower_test::mock::pair::<Request<()>, Answer>();
        let mut service = layer.layer(mock);
        // Polled while shut, so that the inner service is made ready after the admission.
        service.ready().await.unwrap();
        tokio::time::advance(secs(30)).await;
        upstream.send_error("gone");
        assert!(service.call(Request::new(())).await.is_err());
        assert_eq!(layer.gate().snapshot().probes_out, 0);
        assert_eq!(layer.gate().state(), BreakerState::HalfOpen, "nothing was sent: no vote");
        layer.gate().reset();
        open(&layer, &Upstream::default()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn b182_an_open_breaker_is_ready_and_refuses_from_call() {
    let layer = simple().build().unwrap();
    open(&layer, &Upstream::default()).await;
    let (mock, mut upstream) = tower_test::mock::pair::<Request<()>, Answer>();
    upstream.allow(0);
    let mut service = layer.layer(mock);
    assert!(Gate::<Request<()>>::shut(layer.gate()));
    service.ready().await.expect("a busy inner service does not hide the refusal");
    let error = service.call(Request::new(())).await.unwrap_err();
    assert_eq!(crate::refusal::find(&*error).map(|refusal| refusal.kind()), Some(RefusalKind::Open));
    tokio::time::advance(secs(30)).await;
    assert!(!Gate::<Request<()>>::shut(layer.gate()), "a probe may pass");
    upstream.send_error("gone");
    assert!(service.ready().await.is_err(), "the inner service's own error passes");
}

#[tokio::test(start_paused = true)]
async fn b194_an_outcome_is_counted_once() {
    let layer = simple().consecutive_failures(4, secs(60)).build().unwrap();
    let upstream = Upstream::answering(503);
    let service = over(&layer, &upstream);
    for _ in 0..3 {
        assert!(call(&service).await.is_ok());
    }
    let snapshot = layer.gate().snapshot();
    assert_eq!((snapshot.state, snapshot.calls, snapshot.failures), (BreakerState::Closed, 3, 3));
}
