//! Faults of other breakers for tower, found by reading and running them.

use super::*;

/// W1: a count window that only counts up.
#[tokio::test(start_paused = true)]
async fn a_long_good_time_does_not_make_it_blind() {
    let layer = CircuitBreakerLayer::builder()
        .without_consecutive_failures()
        .count_window(10)
        .minimum_calls(10)
        .build()
        .unwrap();
    let upstream = Upstream::answering(200);
    let service = over(&layer, &upstream);
    for _ in 0..1000 {
        assert!(call(&service).await.is_ok());
    }
    upstream.answer(503);
    for _ in 0..5 {
        assert!(call(&service).await.is_ok());
    }
    assert_eq!(layer.gate().state(), BreakerState::Open, "five of the last ten");
}

/// W2: probes counted in a window that forgets them.
#[tokio::test(start_paused = true)]
async fn good_probes_close_it_however_far_apart_they_come() {
    let layer = simple().window(millis(50)).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    upstream.answer(200);
    let service = over(&layer, &upstream);
    tokio::time::advance(secs(30)).await;
    for _ in 0..3 {
        assert_eq!(call(&service).await, Ok(200));
        tokio::time::advance(secs(600)).await;
    }
    assert_eq!(layer.gate().state(), BreakerState::Closed);
}

/// W3: answers of calls that were admitted while closed decide for half-open.
#[tokio::test(start_paused = true)]
async fn late_answers_neither_open_nor_close_it() {
    for late in [503, 200] {
        let layer = simple().probe_successes(1).probes(1).build().unwrap();
        let upstream = Upstream::answering(late).after(secs(40));
        let mut before = tokio::task::JoinSet::new();
        for _ in 0..5 {
            let service = over(&layer, &upstream);
            before.spawn(async move { call(&service).await });
        }
        tokio::task::yield_now().await;
        upstream.delay(Duration::ZERO);
        open(&layer, &upstream).await;
        tokio::time::sleep(secs(30)).await;
        upstream.delay(HANGS);
        let probing = over(&layer, &upstream);
        let probe = tokio::spawn(async move { call(&probing).await });
        before.join_all().await;
        assert_eq!(layer.gate().state(), BreakerState::HalfOpen, "late {late}");
        assert_eq!(layer.gate().snapshot().late, 5);
        probe.abort();
    }
}

/// W4: a slow probe counts as a good one.
#[tokio::test(start_paused = true)]
async fn a_slow_probe_does_not_close_it() {
    let layer = simple().slow_call_rate(millis(10), 1.0).probe_successes(1).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    upstream.answer(200);
    upstream.delay(millis(100));
    assert_eq!(call(&over(&layer, &upstream)).await, Ok(200));
    assert_eq!(layer.gate().state(), BreakerState::Open);
}

/// W5: panics are not recorded. (Timeouts outside: b038.)
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_inner_service_is_a_failure() {
    let layer = simple().build().unwrap();
    let service = layer.layer(tower::service_fn(|request: Request<()>| async move {
        assert!(request.headers().contains_key("host"), "a bug");
        Ok::<Answer, BoxError>(Response::new(body("")))
    }));
    for _ in 0..3 {
        let service = service.clone();
        let ended = tokio::spawn(async move { service.oneshot(Request::new(())).await.is_ok() }).await;
        assert!(ended.unwrap_err().is_panic());
    }
    assert_eq!(layer.gate().state(), BreakerState::Open);
    let refused = service.oneshot(Request::new(())).await.unwrap_err();
    assert!(crate::refusal::find(&*refused).is_some(), "and it goes on refusing in good order");
}

/// W6: a hung probe refuses all others as long as it hangs. (See also b031.)
#[tokio::test(start_paused = true)]
async fn hung_probes_do_not_refuse_all_others_for_ever() {
    let layer = simple().probe_lease(secs(5)).probe_successes(1).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    upstream.delay(HANGS);
    let mut hung = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let service = over(&layer, &upstream);
        hung.spawn(async move { call(&service).await });
    }
    tokio::task::yield_now().await;
    upstream.delay(Duration::ZERO);
    upstream.answer(200);
    let service = over(&layer, &upstream);
    assert!(call(&service).await.is_err());
    tokio::time::advance(secs(5)).await;
    assert_eq!(call(&service).await, Ok(200));
    assert_eq!(layer.gate().state(), BreakerState::Closed);
}

/// W7: a readied handle is no promise. Here an open breaker is ready at once, and `call` decides.
#[tokio::test(start_paused = true)]
async fn two_readied_handles_and_one_slot_end_as_one_probe_and_one_refusal() {
    let layer = simple().probes(1).build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    tokio::time::advance(secs(30)).await;
    upstream.answer(200);
    let (mut first, mut second) = (over(&layer, &upstream), over(&layer, &upstream));
    first.ready().await.unwrap();
    second.ready().await.unwrap();
    let (one, other) = (first.call(Request::new(())), second.call(Request::new(())));
    assert!(one.await.is_ok());
    let error = other.await.err().unwrap();
    assert_eq!(crate::refusal::find(&*error).map(|refusal| refusal.kind()), Some(RefusalKind::Open));
}

/// W8, W9: waiters that sleep past a reset, or poll. Here nobody waits: what the handle does holds for the next call.
#[tokio::test(start_paused = true)]
async fn what_the_handle_does_holds_for_the_next_call() {
    let layer = simple().build().unwrap();
    let upstream = Upstream::default();
    open(&layer, &upstream).await;
    let service = over(&layer, &upstream);
    upstream.answer(200);
    layer.gate().force_closed();
    assert_eq!(call(&service).await, Ok(200));
    layer.gate().force_open();
    let refusal = call(&service).await.unwrap_err();
    assert_eq!(refusal.retry_after(), None, "nobody knows for how long");
    layer.gate().probe_now();
    assert_eq!(call(&service).await, Ok(200));
    assert_eq!(layer.gate().snapshot().probe_successes, 1);
    layer.gate().reset();
    assert_eq!(layer.gate().state(), BreakerState::Closed);
    assert_eq!(layer.gate().snapshot().calls, 0);
}
