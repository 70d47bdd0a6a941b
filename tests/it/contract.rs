//! The contract of `tower_service::Service`, kept by every gate's service.

use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http_body_util::BodyExt;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::OutcomeLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::gate::{End, GateLayer};
use seawall::timeout::TimeoutLayer;
use seawall::{BoxError, Failure, RefusalKind};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::support::{Answer, Probe, Req, TestGate, poll_once, read};

fn request() -> Req {
    Req::new(())
}

fn ready<S: Service<Req>>(service: &mut S) -> Poll<Result<(), S::Error>> {
    service.poll_ready(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn b173_the_instance_that_was_polled_ready_is_the_one_that_is_called() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    for _ in 0..3 {
        // The probe panics if a clone of it is called instead.
        service.ready().await.unwrap().call(request()).await.unwrap();
    }
    assert_eq!(probe.script.calls(), 3);
    assert_eq!(probe.script.polls_of_ready.load(SeqCst), 3, "asked once a call");
}

#[tokio::test]
async fn b173_the_stack_keeps_readiness_over_a_buffer_and_a_concurrency_limit() {
    let probe = Probe::new();
    let limited = ConcurrencyLimit::new(probe.clone(), 1);
    let buffered = tower::buffer::Buffer::new(limited, 4);
    let gate = TestGate::default();
    let layer = GateLayer::from_gate(gate.clone());
    let mut service = layer.layer(layer.layer(buffered));
    for answer in [Answer::Now, Answer::Later, Answer::Refused, Answer::Now] {
        gate.answer(answer);
        let mut call = std::pin::pin!(service.ready().await.unwrap().call(request()));
        if answer == Answer::Later {
            assert!(poll_once(call.as_mut()).is_pending());
            gate.answer(Answer::Now);
        }
        let result = call.await;
        assert_eq!(result.is_err(), answer == Answer::Refused);
    }
    assert_eq!(probe.script.calls(), 3);
    assert_eq!(gate.held(), 0);
}

#[tokio::test]
async fn b179_readiness_belongs_to_each_clone() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut one = GateLayer::from_gate(gate).layer(probe.clone());
    let mut two = one.clone();
    assert!(ready(&mut one).is_ready());
    assert!(ready(&mut two).is_ready());
    two.call(request()).await.unwrap();
    one.call(request()).await.unwrap();
    assert_eq!(probe.script.calls(), 2);
}

#[tokio::test]
async fn b179_a_clone_of_a_ready_service_is_not_ready() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut one = GateLayer::from_gate(gate).layer(probe.clone());
    assert!(ready(&mut one).is_ready());
    // Called without being polled: it must ready itself, not run an unready inner service.
    one.clone().call(request()).await.unwrap();
    assert_eq!(probe.script.calls(), 1);
}

#[tokio::test]
async fn b181_every_poll_asks_the_inner_service_again() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    assert!(matches!(ready(&mut service), Poll::Ready(Ok(()))));
    probe.script.failing_ready.store(1, SeqCst);
    assert!(matches!(ready(&mut service), Poll::Ready(Err(_))), "remembered readiness would hide the loss");
    assert_eq!(gate.held(), 0, "polling takes no permit");
}

#[tokio::test]
async fn b182_a_readiness_error_passes_unchanged_and_nothing_is_called() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    probe.script.failing_ready.store(1, SeqCst);
    let error = service.ready().await.map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the inner service is gone");
    assert!(error.refusal().is_none());
    assert_eq!((probe.script.calls(), gate.ends().len()), (0, 0));
}

#[tokio::test]
async fn b182_a_shut_gate_is_ready_and_refuses_from_call() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    gate.set_shut(true);
    gate.answer(Answer::Refused);
    let mut service = GateLayer::from_gate(gate).layer(probe.clone());
    // A busy inner service must not hide the refusal.
    probe.script.pending_ready.store(usize::MAX, SeqCst);
    assert!(matches!(ready(&mut service), Poll::Ready(Ok(()))));
    let error = service.call(request()).await.map(|_| ()).unwrap_err();
    assert_eq!(error.refusal().map(|refusal| refusal.kind()), Some(RefusalKind::Custom));
    assert_eq!(probe.script.polls_of_ready.load(SeqCst), 0);
}

#[tokio::test]
async fn a_gate_that_opens_between_poll_and_call_readies_a_clone() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    gate.set_shut(true);
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    assert!(ready(&mut service).is_ready());
    gate.set_shut(false);
    probe.script.pending_ready.store(3, SeqCst);
    let response = service.call(request()).await.unwrap();
    assert_eq!(probe.script.calls(), 1);
    read(response.into_body()).await;
    assert_eq!(gate.ends(), [End::Complete]);
}

#[tokio::test]
async fn b178_a_permit_comes_back_when_readiness_fails_after_the_wait() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    for _ in 0..100 {
        gate.answer(Answer::Later);
        probe.script.failing_ready.store(0, SeqCst);
        let mut call = std::pin::pin!(service.ready().await.unwrap().call(request()));
        assert!(poll_once(call.as_mut()).is_pending());
        probe.script.failing_ready.store(1, SeqCst);
        gate.answer(Answer::Now);
        assert!(call.await.is_err());
        assert_eq!(gate.held(), 0);
    }
    assert_eq!(gate.ends(), vec![End::Unsent; 100]);
    assert_eq!(probe.script.calls(), 0);
}

#[tokio::test]
async fn waiting_holds_no_readied_inner_service() {
    // One slot below, taken in `poll_ready`: if the waiting call kept it, the second call could never run, and the
    // first would wait for a permit that only the second gives back.
    let gate = TestGate::default();
    let limited = ConcurrencyLimit::new(Probe::new(), 1);
    let mut service = GateLayer::from_gate(gate.clone()).layer(limited);
    gate.answer(Answer::Later);
    let mut first = std::pin::pin!(service.ready().await.unwrap().call(request()));
    assert!(poll_once(first.as_mut()).is_pending());
    gate.answer(Answer::Now);
    let mut second = std::pin::pin!(service.ready());
    let second = match poll_once(second.as_mut()) {
        Poll::Ready(Ok(ready)) => ready.call(request()),
        _ => panic!("the waiting call holds the inner service's only slot"),
    };
    second.await.unwrap();
    first.await.unwrap();
}

#[tokio::test]
async fn a_refusal_frees_what_the_inner_service_had_reserved() {
    let gate = TestGate::default();
    let limited = ConcurrencyLimit::new(Probe::new(), 1);
    let mut refused = GateLayer::from_gate(gate.clone()).layer(limited);
    let mut other = refused.clone();
    gate.answer(Answer::Refused);
    assert!(refused.ready().await.unwrap().call(request()).await.is_err());
    // `refused` still lives, as a handle in a pool would.
    gate.answer(Answer::Now);
    let slot_is_free = matches!(ready(&mut other), Poll::Ready(Ok(())));
    assert!(slot_is_free);
    drop(refused);
}

#[tokio::test]
async fn own_types_pass_through_at_the_head() {
    let gate = TestGate::default();
    let service =
        GateLayer::from_gate(gate.clone()).at_head().layer(tower::service_fn(|n: u32| async move {
            if n > 1 { Err(BoxError::from("too many")) } else { Ok(n) }
        }));
    assert_eq!(service.clone().oneshot(1).await.unwrap(), 1);
    assert!(service.oneshot(2).await.is_err());
    assert_eq!(gate.ends(), [End::Complete, End::Failed]);
}

/// Each of our layers, and the stack of them, over a probe that panics when called unready, and over tower's own
/// services that hold what they reserved.
macro_rules! contracts {
    ($($name:ident: $layer:expr;)+) => {$(
        mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn b173_calls_what_it_readied() {
                let probe = Probe::new();
                let mut service = $layer.layer(probe.clone());
                for calls in 1..4 {
                    let response = service.ready().await.unwrap().call(request()).await.unwrap();
                    read(response.into_body().map_err(|error| BoxError::from(error).to_string())).await;
                    assert_eq!(probe.script.calls(), calls);
                }
                assert_eq!(probe.script.polls_of_ready.load(SeqCst), 3, "asked once a call");
                assert_eq!(probe.script.alive.now(), 0);
            }

            #[tokio::test(start_paused = true)]
            async fn b173_over_a_limit_of_one_and_a_buffer() {
                let limited = ConcurrencyLimit::new(Probe::new(), 1);
                let mut service = $layer.layer(tower::buffer::Buffer::new(limited, 2));
                for _ in 0..3 {
                    let response = service.ready().await.unwrap().call(request()).await.unwrap();
                    read(response.into_body().map_err(|error| BoxError::from(error).to_string())).await;
                }
            }

            #[tokio::test(start_paused = true)]
            async fn b182_passes_a_readiness_error_on_and_calls_nothing() {
                let probe = Probe::new();
                probe.script.failing_ready.store(1, SeqCst);
                let mut service = $layer.layer(probe.clone());
                for _ in 0..3 {
                    let error = service.ready().await.map(|_| ()).unwrap_err();
                    assert_eq!(error.to_string(), "the inner service is gone");
                }
                assert_eq!(probe.script.calls(), 0);
            }
        }
    )+};
}

contracts! {
    circuit_breaker: CircuitBreakerLayer::new();
    bulkhead: BulkheadLayer::new(2);
    timeout: TimeoutLayer::new(Duration::from_secs(9));
    outcome: OutcomeLayer::new();
    stack: ServiceBuilder::new()
        .layer(TimeoutLayer::new(Duration::from_secs(9)))
        .layer(CircuitBreakerLayer::new())
        .layer(BulkheadLayer::new(2))
        .layer(OutcomeLayer::new())
        .into_inner();
}

#[tokio::test(start_paused = true)]
async fn a_bulkhead_that_said_later_does_not_deadlock_over_a_limit_of_one() {
    let bulkhead = BulkheadLayer::new(1);
    let handle = bulkhead.gate().clone();
    let mut service = bulkhead.layer(ConcurrencyLimit::new(Probe::new(), 1));
    let first = service.ready().await.unwrap().call(request()).await.unwrap();
    let mut second = std::pin::pin!(service.ready().await.unwrap().call(request()));
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!((handle.in_flight(), handle.queued()), (1, 1));
    read(first.into_body()).await;
    let second = second.await.unwrap();
    assert_eq!(handle.in_flight(), 1);
    read(second.into_body()).await;
    assert_eq!((handle.in_flight(), handle.queued()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn b175_what_was_not_polled_ready_is_readied_and_never_runs_without_a_permit() {
    let probe = Probe::new();
    probe.script.pending_future.store(1, SeqCst);
    let layer = BulkheadLayer::new(1);
    let bulkhead = layer.gate().clone();
    let mut service = layer.layer(probe.clone());
    // The probe panics if it is called without having been polled ready.
    let mut first = Box::pin(service.call(request()));
    let mut second = Box::pin(service.call(request()));
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!((bulkhead.in_flight(), bulkhead.queued(), probe.script.calls()), (1, 1, 1));
    // Closed while it waits: a typed refusal, and no silent run.
    bulkhead.set_limit(0);
    let Poll::Ready(Err(error)) = poll_once(second.as_mut()) else { panic!("nothing more is admitted") };
    assert_eq!(error.refusal().unwrap().kind(), RefusalKind::Full);
    drop(first);
    assert_eq!((bulkhead.in_flight(), probe.script.calls()), (0, 1));
}
