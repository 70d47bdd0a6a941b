//! A call that is dropped, or panics, at any point gives back everything, once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::OutcomeLayer;
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::gate::{End, GateLayer};
use seawall::monitor::BreakerState;
use seawall::timeout::TimeoutLayer;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::support::{Answer, PanicIn, Probe, Req, TestGate, poll_once, read};

/// Drives a call and its body; gives up after `polls` polls. Says whether it came to its end.
fn drive(gates: &[TestGate], probe: &Probe, polls: usize) -> bool {
    let outer = GateLayer::from_gate(gates[0].clone());
    let inner = GateLayer::from_gate(gates[1].clone());
    let mut service = outer.layer(inner.layer(probe.clone()));
    let mut left = polls;
    let mut spend = || left.checked_sub(1).map(|rest| left = rest).is_some();
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if !spend() {
            return false;
        }
        if let Poll::Ready(ready) = service.poll_ready(&mut cx) {
            ready.unwrap();
            break;
        }
    }
    let mut call = Box::pin(service.call(Req::new(())));
    let response = loop {
        if !spend() {
            return false;
        }
        if let Poll::Ready(result) = poll_once(call.as_mut()) {
            break result.unwrap();
        }
        for gate in gates {
            gate.answer(Answer::Now);
        }
    };
    drop(call);
    let mut body = Box::pin(response.into_body());
    loop {
        if !spend() {
            return false;
        }
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Ready(None) => return true,
            Poll::Ready(Some(frame)) => drop(frame.unwrap()),
            Poll::Pending => {}
        }
    }
}

fn scripted_probe() -> Probe {
    let probe = Probe::new();
    probe.script.pending_ready.store(2, SeqCst);
    probe.script.pending_future.store(2, SeqCst);
    *probe.script.frames.lock().unwrap() = vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")];
    probe
}

#[test]
fn dropped_after_any_number_of_polls_every_gauge_is_back() {
    for waiting in [[false, false], [true, false], [false, true], [true, true]] {
        let mut ended = false;
        for polls in 0..64 {
            let gates = [TestGate::default(), TestGate::default()];
            for (gate, waiting) in gates.iter().zip(waiting) {
                gate.answer(if waiting { Answer::Later } else { Answer::Now });
            }
            let probe = scripted_probe();
            ended = drive(&gates, &probe, polls);
            for gate in &gates {
                assert_eq!(gate.held(), 0, "after {polls} polls a permit is still out");
                assert!(gate.ends().len() <= 1, "after {polls} polls: settled {:?}", gate.ends());
                let expected = if ended { End::Complete } else { End::Abandoned };
                for end in gate.ends() {
                    assert!(
                        end == expected || (end == End::Unsent && !ended),
                        "after {polls} polls: {end:?}"
                    );
                }
            }
            assert_eq!(probe.script.alive.now(), 0, "after {polls} polls the inner call lives on");
        }
        assert!(ended, "64 polls are enough to come to the end");
    }
}

#[test]
fn b080_an_answer_that_nobody_polls_for_gives_its_permit_back() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    assert!(service.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    let call = service.call(Req::new(()));
    assert_eq!(gate.held(), 1, "the permit exists before the first poll");
    drop(call);
    assert_eq!((gate.held(), gate.ends()), (0, vec![End::Abandoned]));
}

#[test]
fn a_panic_anywhere_gives_back_everything_and_harms_no_other_call() {
    for (place, expected) in [
        (PanicIn::Ready, vec![]),
        (PanicIn::Call, vec![End::Failed]),
        (PanicIn::Future, vec![End::Failed]),
        (PanicIn::Body, vec![End::Broken]),
    ] {
        let gates = [TestGate::default(), TestGate::default()];
        let probe = scripted_probe();
        *probe.script.panic_in.lock().unwrap() = Some(place);
        let run = catch_unwind(AssertUnwindSafe(|| drive(&gates, &probe, 64)));
        assert!(run.is_err(), "the panic of {place:?} is the caller's to see");
        for gate in &gates {
            assert_eq!((gate.held(), gate.ends()), (0, expected.clone()), "after a panic in {place:?}");
        }
        assert_eq!(probe.script.alive.now(), 0);

        *probe.script.panic_in.lock().unwrap() = None;
        assert!(drive(&gates, &probe, 64), "the next call is served");
    }
}

#[test]
fn a_panic_in_readiness_after_the_wait_is_no_failure_of_the_upstream() {
    let (gate, probe) = (TestGate::default(), Probe::new());
    gate.answer(Answer::Later);
    let mut service = GateLayer::from_gate(gate.clone()).layer(probe.clone());
    assert!(service.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    let mut call = Box::pin(service.call(Req::new(())));
    assert!(poll_once(call.as_mut()).is_pending());
    gate.answer(Answer::Now);
    *probe.script.panic_in.lock().unwrap() = Some(PanicIn::Ready);
    assert!(catch_unwind(AssertUnwindSafe(|| poll_once(call.as_mut()))).is_err());
    drop(call);
    assert_eq!((gate.held(), gate.ends()), (0, vec![End::Unsent]));
}

/// The real layers: a bulkhead of one with a call in it, so that the call under test waits; a breaker above; both
/// clocks. Dropped after any number of polls.
#[tokio::test(start_paused = true)]
async fn the_stack_gives_everything_back_after_any_number_of_polls() {
    let mut longest = 0;
    for busy in [false, true] {
        for polls in 0..48 {
            let breaker = CircuitBreakerLayer::new();
            let bulkhead = BulkheadLayer::new(1);
            let (breakers, slots) = (breaker.gate().clone(), bulkhead.gate().clone());
            let probe = scripted_probe();
            let stack = ServiceBuilder::new()
                .layer(TimeoutLayer::new(Duration::from_secs(60)))
                .layer(breaker)
                .layer(bulkhead)
                .layer(OutcomeLayer::new())
                .service(probe.clone());
            let mut other = busy.then(|| Box::pin(stack.clone().oneshot(Req::new(()))));
            if let Some(other) = &mut other {
                assert!(poll_once(other.as_mut()).is_pending());
                assert!(poll_once(other.as_mut()).is_pending());
                assert!(poll_once(other.as_mut()).is_pending());
            }
            let mut stack = stack;
            let mut left = polls;
            let mut call = Box::pin(async move {
                let response = stack.ready().await.unwrap().call(Req::new(())).await.unwrap();
                read(response.into_body()).await;
            });
            let mut ended = false;
            while left > 0 && !ended {
                left -= 1;
                ended = poll_once(call.as_mut()).is_ready();
                if left == polls / 2 {
                    other = None;
                }
            }
            drop(call);
            drop(other);
            if ended {
                longest = longest.max(polls - left);
            }
            assert_eq!((slots.in_flight(), slots.queued()), (0, 0), "after {polls} polls");
            assert_eq!(probe.script.alive.now(), 0, "after {polls} polls");
            let snapshot = breakers.snapshot();
            assert_eq!(
                (snapshot.probes_out, breakers.state()),
                (0, BreakerState::Closed),
                "after {polls} polls"
            );
        }
    }
    assert!((8..47).contains(&longest), "the calls came to their end, and not at once: {longest} polls");
}
